package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"interlock/internal/sandbox/cgroup"
	"interlock/internal/sandbox/process"
)

// tick is how often limits are compared with CLOCK_BOOTTIME. The ticker itself stands still in
// suspend; the comparison does not, so a limit that passed meanwhile is noticed at the first tick.
const tick = 100 * time.Millisecond

// supervisor lives in a process of its own. It holds no lock, no store and no network
// connection: it starts one tree, watches it, ends all of it, and says how it ended.
type supervisor struct {
	spec     Spec
	facts    Facts
	id       Identity
	status   *json.Encoder
	commands chan string // "go", or why to end: "stopped", "engine gone"
	tree     *tree
	log      *sessionLog
	changed  atomic.Int64 // boot time of the last change in a watched directory
}

// superviseMain is the hidden subcommand. Its descriptors: 3 is the control pipe, 4 the status.
func superviseMain(redact []Redact) int {
	// bubblewrap dies with the thread that started it, so that thread must live as long as this.
	runtime.LockOSThread()
	// Also what the engine itself inherited from the operator's shell must not reach the tree.
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return report("supervise", err)
	}
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGPIPE, unix.SIGTSTP)
	s := &supervisor{status: json.NewEncoder(os.NewFile(4, "status")), commands: make(chan string, 4)}
	control := bufio.NewReader(os.NewFile(3, "control"))
	if err := s.prepare(control, redact); err != nil {
		s.say(message{Setup: err.Error()})
		return 1
	}
	go s.listen(control)
	return s.run()
}

// say tells the engine. When that fails the engine is gone, which listen notices.
func (s *supervisor) say(m message) { _ = s.status.Encode(m) }

// prepare makes everything that identifies the session, and says it.
func (s *supervisor) prepare(control *bufio.Reader, redact []Redact) error {
	line, err := control.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("control pipe: %w", err)
	}
	var in supervision
	if err := json.Unmarshal(line, &in); err != nil {
		return fmt.Errorf("control pipe: %w", err)
	}
	s.spec = in.Spec
	s.facts = Facts{Bwrap: in.Bwrap, NoNesting: in.NoNesting, Landlock: in.Landlock}
	if s.log, err = newSessionLog(s.spec.Log, s.spec.Limits.Log); err != nil {
		return err
	}
	if len(s.spec.Secrets) > 0 {
		if len(redact) == 0 {
			return errors.New("there are secrets to be kept out of the log, and this program cannot do that")
		}
		s.log.redact = redact[0](keptLog{s.log}, s.spec.Secrets)
	}
	// All orphans of the tree become children of this process, and are reaped and counted here.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("subreaper: %w", err)
	}
	self, err := process.Self()
	if err != nil {
		return err
	}
	s.id = Identity{Session: s.spec.Session, PID: self.PID, Start: self.Start, Boot: self.Boot}
	s.tree = &tree{policy: s.spec.Policy, facts: s.facts, log: s.log, stdin: s.spec.Stdin}
	if err := s.choose(in.Place); err != nil {
		return errors.Join(err, s.tree.end(context.Background()))
	}
	s.say(message{Identity: &s.id})
	return nil
}

// choose takes the best way to end the whole tree that this machine has.
func (s *supervisor) choose(place cgroup.Place) error {
	group, err := cgroup.Make(place, s.spec.Session, cgroup.Limits{Tasks: s.spec.Limits.Tasks, Memory: s.spec.Limits.Memory})
	if err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	s.tree.group, s.id.Cgroup, s.id.Tasks, s.id.Memory = group, group.Main, group.Tasks, group.Memory
	if group.Main != "" {
		s.id.Way = "cgroup"
		return nil
	}
	if s.spec.Policy.Level == Landlock && group.Tasks != "" {
		s.id.Way = "cgroup1" // it cannot write to the cgroups, so it cannot leave
		return nil
	}
	if s.spec.Policy.Level != Full {
		s.id.Way, s.id.Record = "subreaper", s.spec.Log+".end"
		return nil
	}
	// The namespace's first process must be known before the identity is saved, so bubblewrap
	// starts now. Its last stage, which is ours, waits to be released before it does anything.
	s.id.Way = "pidns"
	init, err := s.tree.start(true)
	if err != nil {
		return err
	}
	s.id.Init, s.id.InitAt = init.PID, init.Start
	return nil
}

// listen turns the control pipe and SIGTERM into commands, until the engine is gone.
func (s *supervisor) listen(control *bufio.Reader) {
	term := make(chan os.Signal, 1)
	signal.Notify(term, unix.SIGTERM)
	go func() {
		for range term {
			s.post("stopped")
		}
	}()
	for {
		line, err := control.ReadBytes('\n')
		if err != nil {
			s.post("engine gone")
			return
		}
		var word string
		if json.Unmarshal(line, &word) == nil {
			s.post(word)
		}
	}
}

// post never blocks: once four commands wait, a stop is among them or comes from end of file.
func (s *supervisor) post(word string) {
	select {
	case s.commands <- word:
	default:
	}
}

// run waits for the release, then for the end, and confirms it.
func (s *supervisor) run() int {
	began := bootTime()
	why := <-s.commands
	if why == "go" {
		began = bootTime()
		why = s.work(began)
	}
	if hit := s.tree.group.Hit(); why == "exit" && hit != "" {
		why = hit // what ended is what was refused or killed at the limit
	}
	s.finish()
	if why == "setup" {
		s.say(message{Setup: s.tree.trouble()})
		return 1
	}
	r := Result{Exit: -1, Why: why, Tree: s.tree.proof(), Dropped: s.log.dropped(), Took: bootTime() - began}
	if why == "exit" {
		r.Exit, r.Signal = s.tree.status()
	}
	s.say(message{Result: &r})
	return 0
}

// work starts the command and returns why it must end or has ended.
func (s *supervisor) work(began time.Duration) string {
	if _, err := s.tree.start(false); err != nil {
		s.tree.err = err
		return "setup"
	}
	if err := s.tree.release(); err != nil {
		s.tree.err = err
		return "setup"
	}
	stop := make(chan struct{})
	defer close(stop)
	if s.spec.Limits.Idle > 0 {
		go s.watch(stop)
	}
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-s.tree.exited:
			if s.tree.failedSetup() {
				return "setup"
			}
			return "exit"
		case word := <-s.commands:
			if word != "go" {
				return word
			}
		case <-t.C:
			if why := s.overdue(began); why != "" {
				return why
			}
		}
	}
}

// overdue names the limit that has passed.
func (s *supervisor) overdue(began time.Duration) string {
	now, l := bootTime(), s.spec.Limits
	if l.Total > 0 && now-began >= l.Total {
		return "total"
	}
	active := max(began, s.log.last(), time.Duration(s.changed.Load()))
	if l.Idle > 0 && now-active >= l.Idle {
		return "idle"
	}
	return s.tree.group.Hit()
}

// finish ends whatever is left of the tree, always, also after a normal exit. It does not give
// up: a process that cannot be killed now may die later. The end is then recorded, before anyone
// is told of it.
func (s *supervisor) finish() {
	if hit := s.tree.group.Hit(); hit != "" {
		s.log.note("the session ran into its limit of " + hit)
	}
	s.say(message{Ending: true})
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		ctx, cancel := context.WithTimeout(context.Background(), endBound)
		err := s.tree.end(ctx)
		cancel()
		if err == nil {
			break
		}
		time.Sleep(pause)
	}
	if s.id.Record != "" {
		if err := writeRecord(s.id); err != nil {
			s.log.note("the end could not be recorded: " + err.Error())
		}
	}
	s.log.close()
}

// writeRecord leaves the confirmation where End finds it; a half-written one proves nothing.
func writeRecord(id Identity) error {
	b, err := json.Marshal(id)
	if err != nil {
		return err
	}
	tmp := id.Record + ".new"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(tmp, id.Record)
}

// tail is what the log holds from offset on, at most 2 KiB, in one printable line.
func tail(path string, offset int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, offset, 2048))
	if err != nil {
		return ""
	}
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(b), "?"))
	return strings.TrimSpace(text)
}
