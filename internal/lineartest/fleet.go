package lineartest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// memberVariable tells a process that was started here what it is.
const memberVariable = "LINEARTEST_MEMBER"

// patience bounds the wait for what must come. It is no measure of anything.
const patience = 3 * time.Minute

// Member is one process of a fleet, as it is told in its environment.
type Member struct {
	Place   string `json:"place"` // directory of what is tested
	Seed    uint64 `json:"seed"`  // of this process
	Process int    `json:"process"`
	Slot    int    `json:"slot"` // the place in the fleet; who follows after a kill has the same
	Clients int    `json:"clients"`
	Board   string `json:"board"`
	File    string `json:"file"`
}

// Self returns what this process is in a fleet; ok is false when it is the test itself.
func Self() (m Member, ok bool) {
	text := os.Getenv(memberVariable)
	if text == "" {
		return m, false
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		panic(err)
	}
	return m, true
}

// Record opens the file of the process's history, and the board.
func Record[I, O any](m Member, open func(O) bool) (*Recorder[I, O], error) {
	b, err := OpenBoard(m.Board)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(m.File, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &Recorder[I, O]{Board: b, Process: m.Process, Open: open, file: f}, nil
}

// Plan is how a fleet is treated. Counts are in operations.
type Plan struct {
	Slots, Clients int
	Kill, Pause    int64         // one each so many, on average
	Suspend, Step  int64         // of the machine; of its wall clock
	Drift, Reboot  int64         // a clock changes its rate between one and two; all processes are killed and time begins anew
	Rate           time.Duration // that passes on the clocks with each operation
	Longest        time.Duration // of a suspend
	Stopped        time.Duration // the longest that a process is paused, in real time
}

// Counts are what was done to a fleet.
type Counts struct{ Processes, Kills, Pauses, Suspends, Steps, Drifts, Reboots int }

// Fleet is the processes of a test and who torments them.
type Fleet struct {
	Board  Board
	Counts Counts

	t     *testing.T
	plan  Plan
	dir   string
	seed  uint64
	rng   *rand.Rand
	slots []*process
	all   []*process
}

type process struct {
	Member
	cmd     *exec.Cmd
	stderr  bytes.Buffer
	done    chan struct{}
	err     error         // how it ended, once done is closed
	ended   [Clocks]int64 // the clocks when it was gone
	killed  bool
	stopped time.Time // until when it is paused; zero when it is not
}

// Run starts a fleet on place, torments it until it has done most operations, and waits for it.
func Run(t *testing.T, place string, seed uint64, most int64, plan Plan) *Fleet {
	t.Helper()
	f := &Fleet{t: t, plan: plan, dir: t.TempDir(), seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), slots: make([]*process, plan.Slots)}
	board, err := NewBoard(filepath.Join(f.dir, "board"), most, plan.Rate)
	if err != nil {
		t.Fatal(err)
	}
	f.Board = board
	defer f.end(place)
	for i := range f.slots {
		f.start(i, place)
	}
	f.torment(place)
	f.finish()
	return f
}

func (f *Fleet) start(slot int, place string) {
	f.t.Helper()
	n := len(f.all) + 1
	p := &process{
		Member: Member{Place: place, Seed: f.rng.Uint64(), Process: n, Slot: slot, Clients: f.plan.Clients,
			Board: filepath.Join(f.dir, "board"), File: filepath.Join(f.dir, fmt.Sprintf("process-%04d", n))},
		done: make(chan struct{}),
	}
	self, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	text, err := json.Marshal(p.Member)
	if err != nil {
		f.t.Fatal(err)
	}
	p.cmd = exec.Command(self, "-test.run=^$")
	p.cmd.Env = append(os.Environ(), memberVariable+"="+string(text))
	p.cmd.Stderr = &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		p.ended = f.Board.Now()
		close(p.done)
	}()
	f.slots[slot] = p
	f.all = append(f.all, p)
	f.Counts.Processes++
}

// torment does everything to the fleet that its plan says until the fleet has done its operations.
func (f *Fleet) torment(place string) {
	acts := f.acts(place)
	next := make([]int64, len(acts))
	for i, a := range acts {
		next[i] = f.after(a.each)
	}
	last, since := f.Board.Done(), time.Now()
	for !f.Board.Over() && !f.t.Failed() {
		time.Sleep(time.Millisecond)
		f.goOn(time.Now())
		f.fill(place)
		now := f.Board.Done()
		if now != last {
			last, since = now, time.Now()
		} else if time.Since(since) > patience {
			f.t.Fatalf("nothing was answered for %v, after %d operations", patience, now)
		}
		for i, a := range acts {
			if a.each > 0 && now >= next[i] {
				next[i] = now + f.after(a.each)
				a.do()
			}
		}
	}
}

type act struct {
	each int64
	do   func()
}

func (f *Fleet) acts(place string) []act {
	return []act{
		{f.plan.Kill, func() { f.kill(f.slots[f.rng.IntN(len(f.slots))]) }},
		{f.plan.Pause, f.pause},
		{f.plan.Suspend, f.suspend},
		{f.plan.Step, f.stepWall},
		{f.plan.Drift, f.drift},
		{f.plan.Reboot, func() { f.reboot(place) }},
	}
}

func (f *Fleet) after(each int64) int64 { return 1 + f.rng.Int64N(max(1, 2*each)) }

func (f *Fleet) kill(p *process) {
	if !p.killed {
		p.killed = true
		f.Counts.Kills++
		f.signal(p, syscall.SIGKILL)
	}
}

// signal fails the test when it cannot be sent to a process that is still there.
func (f *Fleet) signal(p *process, s syscall.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		f.t.Errorf("signal %v: %v", s, err)
	}
}

func (f *Fleet) pause() {
	p := f.slots[f.rng.IntN(len(f.slots))]
	if p.killed || !p.stopped.IsZero() {
		return
	}
	f.signal(p, syscall.SIGSTOP)
	p.stopped = time.Now().Add(time.Millisecond + time.Duration(f.rng.Int64N(int64(f.plan.Stopped))))
	f.Counts.Pauses++
	if f.rng.IntN(2) == 0 {
		f.suspend() // so that its leases run out while it can do nothing
	}
}

// goOn continues what was paused for long enough: one that was stopped in its turn to write keeps all
// others waiting.
func (f *Fleet) goOn(now time.Time) {
	for _, p := range f.slots {
		if !p.stopped.IsZero() && now.After(p.stopped) {
			p.stopped = time.Time{}
			f.signal(p, syscall.SIGCONT)
		}
	}
}

// suspend lets time pass in which no process did anything.
func (f *Fleet) suspend() {
	d := f.rng.Int64N(int64(f.plan.Longest))
	for i := range f.Board.now {
		f.Board.now[i].Add(d)
	}
	f.Counts.Suspends++
}

// stepWall sets the wall clock back or forward, by up to two hours.
func (f *Fleet) stepWall() {
	f.Board.wall.Add(f.rng.Int64N(int64(4*time.Hour)) - int64(2*time.Hour))
	f.Counts.Steps++
}

func (f *Fleet) drift() {
	f.Board.rate[f.rng.IntN(Clocks)].Store(int64(f.plan.Rate) * (1 + f.rng.Int64N(2)))
	f.Counts.Drifts++
}

// reboot ends all processes, and begins another boot whose clocks start at a second.
func (f *Fleet) reboot(place string) {
	for _, p := range f.slots {
		f.kill(p)
	}
	for _, p := range f.slots {
		f.wait(p)
	}
	f.Board.boot.Add(1)
	for i := range f.Board.now {
		f.Board.now[i].Store(int64(time.Second))
	}
	f.Counts.Reboots++
	f.fill(place)
}

// fill starts a process in the place of each that has ended.
func (f *Fleet) fill(place string) {
	for i, p := range f.slots {
		select {
		case <-p.done:
			f.judge(p)
			if !f.Board.Over() {
				f.start(i, place)
			}
		default:
		}
	}
}

// judge fails the test when a process has ended that nobody has killed.
func (f *Fleet) judge(p *process) {
	if p.err != nil && !p.killed {
		f.t.Errorf("process %d ended by itself: %v\n%s", p.Process, p.err, p.stderr.String())
	}
}

func (f *Fleet) wait(p *process) {
	select {
	case <-p.done:
	case <-time.After(patience):
		f.t.Fatalf("process %d does not end", p.Process)
	}
}

// finish lets everybody end what it does.
func (f *Fleet) finish() {
	f.goOn(time.Now().Add(time.Hour))
	for _, p := range f.slots {
		f.wait(p)
		f.judge(p)
	}
}

// end leaves no process behind, whatever has become of the test: what a killed process had started
// may still be writing.
func (f *Fleet) end(place string) {
	for _, p := range f.all {
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		left := using(place)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			f.t.Errorf("processes that are left in %s: %v", place, left)
			return
		}
	}
}

// using returns the processes that have been started in a directory, or were told its name.
func using(dir string) (found []int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range all {
		pid, err := strconv.Atoi(filepath.Base(proc))
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(proc, "cmdline")) // it may have ended by now
		at, _ := os.Readlink(filepath.Join(proc, "cwd"))
		if bytes.Contains(line, []byte(dir)) || at == dir || strings.HasPrefix(at, dir+"/") {
			found = append(found, pid)
		}
	}
	return found
}

// Histories returns what all processes have recorded.
func Histories[I, O any](f *Fleet) ([]Operation[I, O], error) {
	var all []Operation[I, O]
	var mu sync.Mutex
	var wg sync.WaitGroup
	errs := make([]error, len(f.all))
	for i, p := range f.all {
		wg.Go(func() {
			ops, err := read[I, O](p.File, p.ended)
			if errors.Is(err, os.ErrNotExist) {
				err = nil // it was killed before it had asked for anything
			}
			mu.Lock()
			defer mu.Unlock()
			all, errs[i] = append(all, ops...), err
		})
	}
	wg.Wait()
	return all, errors.Join(errs...)
}
