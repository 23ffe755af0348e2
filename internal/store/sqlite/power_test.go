package sqlite_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"interlock/internal/run"
	"interlock/internal/store/sqlite"
)

const powerVariable = "SQLITE_TEST_POWER"

// told is what the traced process was told that it is kept.
type told struct {
	Revision int64     // of run r1
	Fence    run.Fence // of the key "key"
}

// workAndTell is what the traced process does: it makes a state, writes to it, closes it, opens it
// again and goes on, over a reservation of fences and a cut of the log. It tells each outcome.
func workAndTell(dir string) int {
	var at told
	say := func() error { return json.NewEncoder(os.Stdout).Encode(at) }
	err := func() error {
		for round := range 3 {
			s, err := sqlite.Open(background, dir, sqlite.Options{})
			if err != nil {
				return err
			}
			s.SetLogMost(100 << 10)
			if err := powerRound(s, round, &at, say); err != nil {
				return err
			}
			if err := s.Close(); err != nil {
				return err
			}
		}
		return nil
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func powerRound(s *sqlite.Store, round int, at *told, say func() error) error {
	h := run.Holder{ID: fmt.Sprint("h", round)}
	r := aRun("r1", 1)
	var l run.Lease
	var err error
	if round == 0 {
		l, r, err = s.Claim(background, h, r, run.LeaseTTL)
	} else if r, err = s.Load(background, "r1"); err == nil {
		l, err = s.Acquire(background, h, "repo#1", run.LeaseTTL, 0)
	}
	for range 8 {
		if err != nil {
			return err
		}
		at.Revision = r.Revision
		if err := say(); err != nil {
			return err
		}
		k, err := s.Acquire(background, h, "key", run.LeaseTTL, 0)
		if err != nil {
			return err
		}
		at.Fence = k.Fence
		if err := errors.Join(say(), s.Release(background, k)); err != nil {
			return err
		}
		r, err = s.Save(background, l, r, run.Failed{Findings: "x"})
		if err != nil {
			return err
		}
	}
	if err := s.SubmitSQL(background, nil, nil, fmt.Sprintf("UPDATE fences SET fence = fence + %d WHERE key = 'key'", sqlite.FenceStep-12)); err != nil {
		return err
	}
	return s.Release(background, l)
}

// TestPowerLoss traces what a process writes and syncs, and then lets the power fail at every
// point of it: what was not synced is lost, kept, or kept in part and out of order. Each time the
// state opens, holds everything that the process had been told, and hands out no fence twice.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	events := trace(t)
	var states []state
	d := newDisk()
	var at told
	rng := rand.New(rand.NewPCG(1, 2))
	syncs, acks, writes := 0, 0, 0
	for i, e := range events {
		if e.ack != nil {
			at = *e.ack
			acks++
			continue
		}
		if e.is("fsync", "fdatasync") {
			syncs++
		} else {
			writes++
		}
		d.apply(t, e)
		// Before a sync the most is at stake; of the other points a part is enough.
		ways := []string{"lost", "kept", "mixed"}
		if i+1 < len(events) && !events[i+1].is("fsync", "fdatasync") {
			if rng.IntN(5) != 0 {
				continue
			}
			ways = ways[rng.IntN(3):][:1]
		}
		for _, how := range ways {
			s := state{d.fail(how, rng), at, fmt.Sprintf("%s after event %d, %s of %s", how, i, e.call, e.path)}
			if !slices.ContainsFunc(states[max(0, len(states)-8):], s.same) {
				states = append(states, s)
			}
		}
	}
	if acks < 40 || syncs < 40 || len(states) < 200 {
		t.Fatalf("the trace has %d outcomes told, %d writes, %d syncs, %d states: it does not see what it should", acks, writes, syncs, len(states))
	}
	var failed atomic.Int32
	var wg sync.WaitGroup
	next := make(chan state)
	for range runtime.NumCPU() {
		wg.Go(func() {
			for s := range next {
				if err := s.holds(t); err != nil && failed.Add(1) <= 5 {
					t.Errorf("%s: %v", s.when, err)
				}
			}
		})
	}
	for _, s := range states {
		next <- s
	}
	close(next)
	wg.Wait()
	t.Logf("%d writes, %d syncs, %d outcomes told; the power failed in %d states, %d were wrong", writes, syncs, acks, len(states), failed.Load())
}

// state is what a disk holds after the power failed, and what had been told by then.
type state struct {
	files map[string][]byte
	told  told
	when  string
}

func (s state) same(o state) bool {
	if s.told != o.told || len(s.files) != len(o.files) {
		return false
	}
	for name, content := range s.files {
		if other, ok := o.files[name]; !ok || !bytes.Equal(content, other) {
			return false
		}
	}
	return true
}

// holds opens the state as it is.
func (s state) holds(t *testing.T) (err error) {
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for name, content := range s.files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	if _, there := s.files[sqlite.DatabaseName]; !there && s.told.Revision > 0 {
		return errors.New("the database is gone")
	}
	db, err := sqlite.Open(background, dir, sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if why := db.Raised(); why != "" {
		return fmt.Errorf("taken for an older copy: %s", why)
	}
	if s.told.Revision > 0 {
		r, err := db.Load(background, "r1")
		if err != nil {
			return err
		}
		h, err := db.History(background, "r1")
		if err != nil {
			return err
		}
		if r.Revision < s.told.Revision || r.Revision > s.told.Revision+1 || int64(len(h.Events)) != r.Revision-1 {
			return fmt.Errorf("told revision %d, kept %d with %d events", s.told.Revision, r.Revision, len(h.Events))
		}
	}
	held, _, err := db.Lease(background, "key")
	if err != nil {
		return err
	}
	l, err := db.Acquire(background, run.Holder{ID: "after"}, "key", run.LeaseTTL, held.Fence)
	if err == nil && l.Fence <= s.told.Fence {
		err = fmt.Errorf("told fence %d, handed out %d", s.told.Fence, l.Fence)
	}
	return err
}

// trace runs the process under strace.
func trace(t *testing.T) []event {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		missing(t, "strace is not installed (Debian: strace), so writes cannot be traced")
	}
	self, err := os.Executable()
	must(t, err)
	dir := filepath.Join(t.TempDir(), "state")
	must(t, os.Mkdir(dir, 0o700))
	log := filepath.Join(t.TempDir(), "trace")
	cmd := exec.CommandContext(t.Context(), strace, "-f", "-y", "-xx", "-s", "1000000", "-o", log, "-e", "signal=none",
		"-e", "trace=open,openat,creat,write,pwrite64,ftruncate,fallocate,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,link,linkat", self)
	cmd.Env = append(os.Environ(), powerVariable+"="+dir)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && bytes.Contains(exit.Stderr, []byte("ptrace")) {
			missing(t, "nothing can be traced here: "+string(exit.Stderr))
		}
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(log)
	must(t, err)
	events := parse(t, string(b), dir)
	told := 0
	for _, e := range events {
		if e.ack != nil {
			told++
		}
	}
	if lines := bytes.Count(out, []byte("\n")); lines != told {
		t.Fatalf("the process told %d outcomes, the trace has %d", lines, told)
	}
	return events
}

// missing skips a test, or fails it where nothing may be skipped.
func missing(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("INTERLOCK_CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}
