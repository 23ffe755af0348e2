//go:build failpoint

package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// background starts a command that is to be stopped, cut off or interrupted.
func (p *project) background(env []string, args ...string) *started {
	p.t.Helper()
	cmd, out := p.command(env, args...)
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return &started{p, cmd, out}
}

// stopped waits until a process has stopped itself.
func (s *started) stopped() {
	s.p.t.Helper()
	s.p.eventually("the process is stopped", func() bool {
		data, err := os.ReadFile("/proc/" + strconv.Itoa(s.cmd.Process.Pid) + "/stat")
		return err == nil && strings.Contains(string(data), ") T ")
	})
}

// TestAuthorityOfStoppedHolder: a holder is stopped between its last look at its authority and a
// write; another one takes over, in the same state directory or from another; the first goes on,
// and its write is refused where it is written: in the store, and on the forge.
func TestAuthorityOfStoppedHolder(t *testing.T) {
	for name, c := range map[string]struct {
		point     string
		elsewhere bool
		why       string
	}{
		"save":                       {"before save delivered", false, "the lease is no longer held"},
		"push":                       {"before push branch", false, "the lease is no longer held"},
		"push of other installation": {"before push branch", true, "claim on the forge was lost"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, crashAgent, "Please answer.")
			first := p.background([]string{"INTERLOCK_STOPPOINT=" + c.point}, p.work()...)
			first.stopped()
			next := p
			if c.elsewhere {
				next = p.elsewhere()
			}
			next.must(3, p.work()...) // a stopped holder is not a dead one
			if c.elsewhere {
				next.age(16 * time.Minute)
			} else {
				p.expire()
			}
			next.must(0, p.work()...)
			head, claim := p.git("-C", p.repo, "rev-parse", "interlock/issue-1"), p.claim().Hash
			before := next.runs()[0]
			first.signal(syscall.SIGCONT)
			if code := first.wait(); code != 9 || !strings.Contains(first.out.String(), c.why) {
				t.Errorf("the first ended with %d, want 9 and %q\n%s", code, c.why, first.out)
			}
			if strings.Contains(first.out.String(), "pushed: ") {
				t.Errorf("it says that it has pushed:\n%s", first.out)
			}
			if now := p.git("-C", p.repo, "rev-parse", "interlock/issue-1"); now != head {
				t.Errorf("the branch was moved to %s", now)
			}
			if now := p.claim().Hash; now != claim {
				t.Errorf("the claim was moved to %s", now)
			}
			if now := next.runs()[0]; now != before {
				t.Errorf("the run was saved as %+v, it was %+v", now, before)
			}
			next.once()
			p.dead()
		})
	}
}

// TestAuthorityWhenStoreBlocks: a store that does not answer for longer than the lease may be trusted
// ends the session, while it still does not answer.
func TestAuthorityWhenStoreBlocks(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "slowly")
	first := p.background([]string{"INTERLOCK_SOONER_TRUST=3", "INTERLOCK_SOONER_RENEWALS=3"}, p.work()...)
	p.eventually("the agent works", func() bool { return strings.Contains(p.agentLog(), "WORKING") })
	runs := p.runs()
	if len(p.processesOf(runs)) == 0 {
		t.Fatal("the processes of the session are not seen")
	}
	give := p.block()
	defer give()
	p.eventually("the session is ended", func() bool { return len(p.processesOf(runs)) == 0 })
	give()
	if code := first.wait(); code != 9 || !strings.Contains(first.out.String(), "not renewed in time") {
		t.Errorf("it ended with %d, want 9\n%s", code, first.out)
	}
	p.must(0, p.work()...)
	p.once()
}

// block takes the turn to write the state, as another process would that hangs in the midst of it.
func (p *project) block() (give func()) {
	p.t.Helper()
	f, err := os.OpenFile(filepath.Join(p.state, "state.lock"), os.O_RDWR, 0)
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return func() { _ = f.Close() }
}

// hangs makes the repository's own hook hang when a branch is pushed, until go is called. It
// returns a function that tells whether one hangs.
func (p *project) hangs() (hanging func() bool, goOn func()) {
	p.t.Helper()
	dir := p.t.TempDir()
	hang, there := filepath.Join(dir, "hang"), filepath.Join(dir, "there")
	p.write(hang, "", 0o600)
	hook := filepath.Join(p.repo, ".git", "hooks", "pre-receive")
	if err := os.MkdirAll(filepath.Dir(hook), 0o700); err != nil {
		p.t.Fatal(err)
	}
	p.write(hook, "#!/bin/sh\ngrep -q refs/heads/ || exit 0\n: > "+there+"\nwhile test -e "+hang+"; do sleep 0.05; done\n", 0o700)
	return func() bool { _, err := os.Stat(there); return err == nil }, func() { _ = os.Remove(hang) }
}

// TestAuthorityOfHangingPush: a push whose hook hangs is given a while at the first interrupt and
// none at the second; nothing is lost by either, and what is left of it publishes nothing later.
func TestAuthorityOfHangingPush(t *testing.T) {
	for name, grace := range map[string]string{"first interrupt": "20", "second interrupt": "1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, crashAgent, "Please answer.")
			hanging, goOn := p.hangs()
			defer goOn()
			first := p.background([]string{"INTERLOCK_SOONER_GRACE=" + grace}, p.work()...)
			p.eventually("the hook hangs", hanging)
			first.signal(syscall.SIGINT)
			if grace == "1" {
				stop := first.again(syscall.SIGINT)
				defer stop()
			}
			if code := first.wait(); code != 130 {
				t.Errorf("it ended with %d, want 130\n%s", code, first.out)
			}
			if said := strings.Contains(first.out.String(), "stopped at once"); said != (grace == "1") {
				t.Errorf("stopped at once: %t\n%s", said, first.out)
			}
			if own := strings.Contains(first.out.String(), "interlock: interrupted: run "); own == (grace == "1") {
				t.Errorf("the engine itself came to an end: %t\n%s", own, first.out)
			}
			if got := p.refs("refs/heads/interlock/"); len(got) != 0 {
				t.Errorf("pushed: %q", got)
			}
			goOn()
			p.must(0, p.work()...)
			p.dead()
			p.once()
		})
	}
}

// again sends a signal again and again, since two that come together count as one.
func (s *started) again(sig syscall.Signal) (stop func()) {
	ctx, cancel := context.WithCancel(s.p.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(200 * time.Millisecond); ctx.Err() == nil; {
			select {
			case <-tick.C:
				_ = s.cmd.Process.Signal(sig)
			case <-ctx.Done():
			}
		}
	}()
	return func() { cancel(); <-done }
}
