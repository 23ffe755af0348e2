package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// slowAgent commits a first step, says so, and finishes when the test puts a file where only its
// own prompt could tell it: it waits until it is ended unless the issue says HURRY.
const slowAgent = `#!/bin/sh
set -e
if ! test -f step1; then
	echo one > step1
	git add step1
	git commit -q -m 'step 1'
fi
echo WORKING
if test "$INTERLOCK_ATTEMPT" = 1; then
	(setsid sleep 600 >/dev/null 2>&1 &)
	grep -q HURRY "$INTERLOCK_PROMPT_FILE" && sleep 4 || sleep 600
fi
echo fixed > answer
git commit -q -am 'answer'
`

// TestHeldThroughSymlink starts the same work twice, the second time by another path.
func TestHeldThroughSymlink(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "HURRY")
	first := p.start(p.work()...)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(p.repo, link); err != nil {
		t.Fatal(err)
	}
	other := p.work()
	other[2] = link
	out := p.must(3, other...)
	if !strings.Contains(out, "issue 1 is held by process ") || !strings.Contains(out, "next: ") {
		t.Errorf("the refusal does not name the holder or what to do:\n%s", out)
	}
	out = p.must(4, append(other, "--wait", "60s")...)
	if !strings.Contains(out, "in review") {
		t.Errorf("after the wait:\n%s", out)
	}
	if code := first.wait(); code != 0 {
		t.Errorf("the first ended with %d\n%s", code, first.out)
	}
	p.once()
}

// TestStoppedHolderIsNotDead: a process that is only stopped keeps what it holds.
func TestStoppedHolderIsNotDead(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "HURRY")
	first := p.start(p.work()...)
	first.signal(syscall.SIGSTOP)
	p.must(3, p.work()...)
	first.signal(syscall.SIGCONT)
	if code := first.wait(); code != 0 {
		t.Errorf("the first ended with %d\n%s", code, first.out)
	}
	p.once()
}

// TestCancelReachesRunningAgent cancels from another process while the agent works.
func TestCancelReachesRunningAgent(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "slowly")
	first := p.start(p.work()...)
	if len(p.processes()) == 0 {
		t.Error("the test does not see the processes of a session that runs")
	}
	p.must(0, "cancel", p.runs()[0].ID, "--reason", "not needed")
	if code := first.wait(); code != 1 {
		t.Errorf("the holder ended with %d, want 1\n%s", code, first.out)
	}
	p.dead()
	p.givenBack("canceled", "not needed")
	p.must(1, "cancel", p.runs()[0].ID)
}

// TestCancelOfDeadHolder cancels what nobody holds any more.
func TestCancelOfDeadHolder(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "slowly")
	first := p.start(p.work()...)
	first.signal(syscall.SIGKILL)
	first.wait()
	p.must(0, "cancel", p.runs()[0].ID, "--reason", "not needed")
	p.dead()
	p.givenBack("canceled", "not needed")
}

// givenBack demands that the issue is free again and says why.
func (p *project) givenBack(state, why string) {
	p.t.Helper()
	if rows := p.runs(); len(rows) != 1 || rows[0].State != state {
		p.t.Errorf("runs: %+v, want one %s", rows, state)
	}
	labels, assignees, comments := p.issue()
	if len(assignees) != 0 || len(labels) > 1 || !strings.Contains(strings.Join(comments, "\n"), why) {
		p.t.Errorf("labels %q, assignees %q, comments %q", labels, assignees, comments)
	}
	if got := p.refs("refs/heads/interlock/"); len(got) != 0 {
		p.t.Errorf("branches %q, want none", got)
	}
	claim := p.git("-C", p.repo, "log", "-1", "--format=%B", "refs/interlock/claims/1")
	if !strings.Contains(claim, "released") {
		p.t.Errorf("the claim is not released: %q", claim)
	}
}

// TestInterruptKeepsEverything: Ctrl-C stops cleanly, and the same command goes on.
func TestInterruptKeepsEverything(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "slowly")
	first := p.start(p.work()...)
	first.signal(syscall.SIGINT)
	if code := first.wait(); code != 130 {
		t.Errorf("after SIGINT: %d, want 130\n%s", code, first.out)
	}
	p.dead()
	if out := first.out.String(); !strings.Contains(out, "\n  next: interlock --state-dir "+p.state+" run ") || !strings.Contains(out, "\n  then: ") {
		t.Errorf("no word of how to go on:\n%s", first.out)
	}
	if rows := p.runs(); rows[0].Spent != 0 || rows[0].State != "implementing" {
		t.Errorf("a session that was stopped by its operator counts: %+v", rows)
	}
	p.must(0, p.work()...)
	p.once()
	if log := p.git("-C", p.repo, "log", "--format=%s", "interlock/issue-1"); strings.Count(log, "step 1") != 1 {
		t.Errorf("commits of the branch: %q", log)
	}
}

// TestSecondInterruptIsAtOnce: nothing is lost even then.
func TestSecondInterruptIsAtOnce(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "slowly")
	first := p.start(p.work()...)
	first.signal(syscall.SIGINT)
	time.Sleep(100 * time.Millisecond)
	first.signal(syscall.SIGINT)
	if code := first.wait(); code != 130 {
		t.Errorf("after two: %d, want 130\n%s", code, first.out)
	}
	p.dead()
	p.must(0, p.work()...)
	p.once()
}

// TestBaseMoved: what still merges goes on, what does not goes back to the agent.
func TestBaseMoved(t *testing.T) {
	t.Parallel()
	t.Run("merges", func(t *testing.T) {
		t.Parallel()
		p := newProject(t, slowAgent, "HURRY")
		first := p.start(p.work()...)
		verified := p.git("-C", p.repo, "rev-parse", "main")
		p.commit("other", "moved\n")
		if code := first.wait(); code != 0 {
			t.Fatalf("exit %d\n%s", code, first.out)
		}
		p.once()
		if out := p.must(0, "change", "show", "1", "--repo", p.repo); !strings.Contains(out, verified) {
			t.Errorf("the change does not record the base it was verified on:\n%s", out)
		}
	})
	t.Run("conflicts", func(t *testing.T) {
		t.Parallel()
		agent := slowAgent + `
if test "$INTERLOCK_ATTEMPT" = 2; then
	grep -q 'no longer merges' "$INTERLOCK_PROMPT_FILE"
	base=$(grep -o 'has moved to [0-9a-f]*' "$INTERLOCK_PROMPT_FILE" | cut -d' ' -f4)
	git merge -q -X ours -m 'take in the base' "$base"
fi
`
		agent = strings.Replace(agent, "git commit -q -am 'answer'", "git commit -q -am 'answer' || true", 1)
		p := newProject(t, agent, "HURRY")
		first := p.start(p.work()...)
		p.commit("answer", "moved\n")
		if code := first.wait(); code != 0 {
			t.Fatalf("exit %d\n%s", code, first.out)
		}
		if rows := p.runs(); rows[0].Attempt != 2 {
			t.Errorf("attempts: %+v, want 2", rows)
		}
		p.git("-C", p.repo, "merge-base", "--is-ancestor", "main", "interlock/issue-1")
	})
}

// TestClaimTaken: another writer of the repository takes the claim ref; nothing of ours is
// pushed after that, and the work is kept.
func TestClaimTaken(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "HURRY")
	first := p.start(p.work()...)
	ref := "refs/interlock/claims/1"
	message := strings.ReplaceAll(p.git("-C", p.repo, "log", "-1", "--format=%B", ref), p.nonce(), strings.Repeat("0", 32))
	tree := p.git("-C", p.repo, "rev-parse", ref+"^{tree}")
	theirs := p.git("-C", p.repo, "-c", "user.name=T", "-c", "user.email=t@localhost", "commit-tree", tree, "-p", ref, "-m", message)
	p.git("-C", p.repo, "update-ref", ref, theirs)
	if code := first.wait(); code != 9 {
		t.Errorf("exit %d, want 9\n%s", code, first.out)
	}
	if got := p.refs("refs/heads/interlock/"); len(got) != 0 {
		t.Errorf("pushed without the claim: %q", got)
	}
	if got := p.git("-C", p.repo, "rev-parse", ref); got != theirs {
		t.Errorf("the claim of another was moved to %s", got)
	}
	if out := p.must(0, "show", p.runs()[0].ID); !strings.Contains(out, "claim") {
		t.Errorf("show does not say why:\n%s", out)
	}
}

// nonce reads the nonce of the claim from the store's effects.
func (p *project) nonce() string {
	p.t.Helper()
	out := p.must(0, "show", p.runs()[0].ID)
	_, after, ok := strings.Cut(out, "claim-ref:")
	if !ok || len(after) < 32 {
		p.t.Fatalf("no claim effect:\n%s", out)
	}
	return after[:32]
}

// TestClaimWiped: a claim ref that was wiped is noticed, restored, and said.
func TestClaimWiped(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "HURRY")
	first := p.start(p.work()...)
	p.git("-C", p.repo, "update-ref", "-d", "refs/interlock/claims/1")
	if code := first.wait(); code != 0 {
		t.Fatalf("exit %d\n%s", code, first.out)
	}
	if !strings.Contains(first.out.String(), "restored") {
		t.Errorf("not a word of the claim that was wiped:\n%s", first.out)
	}
	p.once()
}

// TestTwoInstallations: what is held by another state directory is refused by the claim alone.
func TestTwoInstallations(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "HURRY")
	first := p.start(p.work()...)
	other := *p
	other.state = filepath.Join(t.TempDir(), "other")
	out := other.must(3, p.work()...)
	if !strings.Contains(out, "of installation ") || !strings.Contains(out, "refs/interlock/claims/1") {
		t.Errorf("the refusal does not name the holder:\n%s", out)
	}
	if rows := other.runs(); len(rows) != 0 {
		t.Errorf("runs of the other installation: %+v", rows)
	}
	if code := first.wait(); code != 0 {
		t.Errorf("the first ended with %d\n%s", code, first.out)
	}
	if out := other.must(4, p.work()...); !strings.Contains(out, "change 1") {
		t.Errorf("after the other has proposed:\n%s", out)
	}
	p.once()
}
