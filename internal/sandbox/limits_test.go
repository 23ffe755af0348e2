package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"interlock/internal/sandbox"
)

// levels are all that confine or supervise.
var levels = []sandbox.Level{sandbox.Full, sandbox.Landlock, sandbox.None}

// need returns the facts of a machine that has a level, or skips with the reason.
func need(t *testing.T, level sandbox.Level) sandbox.Facts {
	t.Helper()
	f := inspect()
	if err := f.Check(level); err != nil {
		if os.Getenv("INTERLOCK_CI") != "" {
			t.Fatalf("this may not be skipped in CI: %v", err)
		}
		t.Skipf("level %s cannot be tested here: %v", level, err)
	}
	return f
}

// bounded is a place with a limit of each kind; it skips where they cannot be held.
func bounded(t *testing.T, level sandbox.Level, script string) *place {
	t.Helper()
	f := need(t, level)
	p := newPlace(t, f, level, script)
	p.spec.Limits.Tasks, p.spec.Limits.Memory = 64, 96<<20
	if text := f.Unheld(p.spec.Limits); text != "" {
		t.Skip(text)
	}
	if level != sandbox.Full { // our own program, which Full shows at a place of its own
		exe, err := os.Executable()
		must(t, err)
		p.spec.Policy.Argv[2] = strings.ReplaceAll(script, sandbox.BinaryInside, exe)
	}
	return p
}

// atLevels runs a test at each level, without its main cgroup too: version 1 holds the limits then.
func atLevels(t *testing.T, test func(t *testing.T, level sandbox.Level, noMain bool)) {
	t.Parallel()
	for _, level := range levels {
		for _, noMain := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/main=%t", level, !noMain), func(t *testing.T) {
				t.Parallel()
				test(t, level, noMain)
			})
		}
	}
}

func withoutMain(t *testing.T, f *sandbox.Facts) {
	if f.Tasks == f.Cgroup || f.Memory == f.Cgroup {
		t.Skip("version 2 holds the limits here")
	}
	f.Cgroup = ""
}

// limitsGone fails when a cgroup of the session is left.
func limitsGone(t *testing.T, id sandbox.Identity) {
	t.Helper()
	for _, dir := range []string{id.Cgroup, id.Tasks, id.Memory} {
		if _, err := os.Stat(dir); dir != "" && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the cgroup %s is left: %v", dir, err)
		}
	}
}

// end waits for a bounded session and says how it ended.
func (p *place) end() (sandbox.Result, sandbox.Identity) {
	p.t.Helper()
	s := p.start()
	r, err := s.Wait(p.t.Context())
	must(p.t, err)
	return r, s.Identity()
}

// TestTaskLimit: at most so many processes, and the session ends with that reason. The storm is
// one of 200 processes that sleep, so that a limit that fails harms nobody.
func TestTaskLimit(t *testing.T) {
	atLevels(t, func(t *testing.T, level sandbox.Level, noMain bool) {
		p := bounded(t, level, "i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); echo n; done; wait")
		if noMain {
			withoutMain(t, &p.facts)
		}
		began := time.Now()
		r, id := p.end()
		if r.Why != "tasks" || time.Since(began) > 30*time.Second {
			t.Errorf("%+v after %s", r, time.Since(began))
		}
		out := p.output()
		if n := strings.Count(out, "n\n"); n > 70 || !strings.Contains(out, "limit of tasks") {
			t.Errorf("%d processes were started:\n%s", n, out)
		}
		limitsGone(t, id)
	})
}

// TestMemoryLimit: one that takes 256 MiB where 96 are allowed.
func TestMemoryLimit(t *testing.T) {
	atLevels(t, func(t *testing.T, level sandbox.Level, noMain bool) {
		for _, script := range []string{self + "hog", "(" + self + "hog); echo went on; sleep 60"} {
			p := bounded(t, level, script)
			if noMain {
				withoutMain(t, &p.facts)
			}
			r, id := p.end()
			if out := p.output(); r.Why != "memory" || strings.Contains(out, "hog done") || !strings.Contains(out, "limit of memory") {
				t.Errorf("%+v:\n%s", r, out)
			}
			limitsGone(t, id)
		}
	})
}

// TestWithinLimits: what needs less is not disturbed, and without limits there are no cgroups of
// version 1.
func TestWithinLimits(t *testing.T) {
	t.Parallel()
	for _, level := range levels {
		p := bounded(t, level, "for i in 1 2 3 4 5 6 7 8; do sleep 0.1 & done; wait; echo fine")
		r, id := p.end()
		if r.Why != "exit" || r.Exit != 0 || !strings.Contains(p.output(), "fine") {
			t.Errorf("level %s: %+v\n%s", level, r, p.output())
		}
		limitsGone(t, id)
		p = newPlace(t, need(t, level), level, "echo fine")
		if _, id = p.end(); id.Tasks != "" || id.Memory != "" {
			t.Errorf("level %s: %+v", level, id)
		}
	}
}

// TestSupervisorKilledLeavesNoLimit: the cgroups of every hierarchy are gone after End.
func TestSupervisorKilledLeavesNoLimit(t *testing.T) {
	atLevels(t, func(t *testing.T, level sandbox.Level, noMain bool) {
		m := mark(t)
		p := bounded(t, level, clinging(m)+"sleep "+m)
		if noMain {
			withoutMain(t, &p.facts)
		}
		s := p.startClinging(m)
		id := s.Identity()
		must(t, syscall.Kill(id.PID, syscall.SIGKILL))
		proof, err := sandbox.End(t.Context(), id)
		// A process at level none could have left; what is in the cgroups is ended all the same.
		if unproved := errors.Is(err, sandbox.ErrNotProved); unproved != (id.Way == "subreaper") || !unproved && proof == "" {
			t.Errorf("%s: %q, %v", id.Way, proof, err)
		}
		eventually(t, "no process is left", func() bool { return len(marked(m)) == 0 })
		limitsGone(t, id)
	})
}

func TestUnheldLimitsAreNamed(t *testing.T) {
	t.Parallel()
	f := sandbox.Facts{TasksReason: "no pids here", MemoryReason: "no memory here"}
	text := f.Unheld(sandbox.Limits{Tasks: 1, Memory: 1})
	for _, want := range []string{"tasks and memory", "no pids here", "no memory here", "systemd-run"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	f.Tasks = "/x"
	if text = f.Unheld(sandbox.Limits{Tasks: 1, Memory: 1}); strings.Contains(text, "tasks") || f.Unheld(sandbox.Limits{Tasks: 1}) != "" {
		t.Errorf("%q", text)
	}
}
