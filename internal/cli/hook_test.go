package cli_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// killedAfter starts the work, and has the repository's own hook kill the engine with SIGKILL as soon
// as a ref below prefix has been moved there: what was done outside is done, and nothing says so.
func killedAfter(t *testing.T, prefix string) *project {
	t.Helper()
	p := newProject(t, slowAgent, "HURRY")
	pid := filepath.Join(filepath.Dir(p.repo), "pid")
	first := p.start(p.work()...)
	p.write(pid, strconv.Itoa(first.cmd.Process.Pid), 0o600)
	p.write(filepath.Join(p.repo, ".git", "hooks", "post-receive"),
		"#!/bin/sh\nwhile read old new ref; do case $ref in "+prefix+"*) kill -9 $(cat '"+pid+"') && rm '"+pid+"';; esac; done\n", 0o755)
	if code := first.wait(); code != -int(syscall.SIGKILL) {
		t.Fatalf("the engine ended with %d, want SIGKILL\n%s", code, first.out)
	}
	p.dead()
	return p
}

// TestKilledByTheRepository: an engine that dies in the very moment in which the repository takes
// what it pushes has done that; whoever goes on finds it and does it no second time.
func TestKilledByTheRepository(t *testing.T) {
	t.Parallel()
	t.Run("resumed", func(t *testing.T) {
		t.Parallel()
		p := killedAfter(t, "refs/heads/interlock/")
		head := p.git("-C", p.repo, "rev-parse", "interlock/issue-1")
		p.must(0, p.work()...)
		p.once()
		if now := p.git("-C", p.repo, "rev-parse", "interlock/issue-1"); now != head {
			t.Errorf("the branch was moved from %s to %s", head, now)
		}
	})
	// A cancel cannot take back what is there: it names the branch.
	t.Run("canceled", func(t *testing.T) {
		t.Parallel()
		p := killedAfter(t, "refs/heads/interlock/")
		head := p.git("-C", p.repo, "rev-parse", "interlock/issue-1")
		p.must(0, "cancel", "1", "--repo", p.repo, "--reason", "not needed")
		if rows := p.runs(); len(rows) != 1 || rows[0].State != "canceled" {
			t.Errorf("runs: %+v, want one canceled", rows)
		}
		if out := p.must(0, "show", "1", "--repo", p.repo); !strings.Contains(out, head) || !strings.Contains(out, "is there already") {
			t.Errorf("it does not name the branch that is there:\n%s", out)
		}
		if changes := p.refs("refs/interlock/changes/"); len(changes) != 0 {
			t.Errorf("changes: %q, want none", changes)
		}
	})
}
