package cli_test

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// mirror pushes all refs of a clone, and the absence of all others.
func (p *project) mirror(clone string) {
	p.t.Helper()
	p.git("-C", clone, "push", "-q", "--mirror", "--receive-pack=git -c receive.denyCurrentBranch=ignore receive-pack", p.repo)
}

// at is where the refs of the operator's repository below prefixes are.
func (p *project) at(prefixes ...string) []string {
	p.t.Helper()
	return strings.Split(p.git(append([]string{"-C", p.repo, "for-each-ref", "--format=%(refname) %(objectname)"}, prefixes...)...), "\n")
}

// TestMirrorPush: a push --mirror from a clone wipes all refs of ours. What was seen of claims by
// others is still believed; the holder restores its claim, and the issue, and goes on.
func TestMirrorPush(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "slowly")
	first := p.start(p.work()...)
	other := p.elsewhere()
	before := other.claim()
	clone := filepath.Join(t.TempDir(), "clone.git")
	p.git("clone", "-q", "--bare", p.repo, clone) // it has no refs but branches
	p.mirror(clone)
	if got := p.refs("refs/interlock/"); len(got) != 0 {
		t.Fatalf("not wiped: %q", got)
	}
	if s := other.claim(); !s.Wiped || s.Hash != before.Hash || s.Released {
		t.Errorf("seen from elsewhere: %+v, before %+v", s, before)
	}
	if out := other.must(1, p.work()...); !strings.Contains(out, "refs were wiped") {
		t.Errorf("the issue that was wiped:\n%s", out)
	}
	first.signal(syscall.SIGKILL)
	first.wait()
	p.dead()
	out := p.must(0, p.work()...)
	for _, want := range []string{"issue 1 had been deleted from the repository", "claims/1 had been deleted on the forge; it was restored"} {
		if strings.Count(out, want) != 1 {
			t.Errorf("not said once: %q in\n%s", want, out)
		}
	}
	if s := other.claim(); s.Wiped || s.Generation <= before.Generation {
		t.Errorf("after the restore: %+v, before %+v", s, before)
	}
	p.once()
	// Again, now that all of it is there: any command of this installation puts it back.
	there := p.at("refs/interlock/issues/", "refs/interlock/changes/", "refs/interlock/heads/", "refs/heads/")
	p.mirror(clone)
	out = p.must(0, "issue", "list", "--repo", p.repo)
	if now := p.at("refs/interlock/issues/", "refs/interlock/changes/", "refs/interlock/heads/", "refs/heads/"); !slices.Equal(now, there) {
		t.Errorf("restored\n%q\nit was\n%q\n%s", now, there, out)
	}
	if out := p.must(4, p.work()...); !strings.Contains(out, "change 1") {
		t.Errorf("after the change was wiped and put back:\n%s", out)
	}
	// Turned down, it makes room for a new run, also after it was wiped once more.
	p.must(0, "change", "close", "1", "--repo", p.repo)
	p.mirror(clone)
	p.write(p.agent, quick, 0o755)
	p.must(0, p.next()...)
	p.must(0, "change", "accept", "2", "--repo", p.repo)
}

// TestMirrorPushOfAnOlderClone: a mirror of before moves back what it has and deletes the rest.
func TestMirrorPushOfAnOlderClone(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "HURRY")
	clone := filepath.Join(t.TempDir(), "clone.git")
	p.git("clone", "-q", "--mirror", p.repo, clone)
	first := p.start(p.work()...)
	marked := p.git("-C", p.repo, "rev-parse", "refs/interlock/issues/1")
	p.mirror(clone)
	if now := p.git("-C", p.repo, "rev-parse", "refs/interlock/issues/1"); now == marked {
		t.Fatal("the issue was not moved back")
	}
	if code := first.wait(); code != 0 {
		t.Fatalf("exit %d\n%s", code, first.out)
	}
	if !strings.Contains(first.out.String(), "issue 1 was at") {
		t.Errorf("not a word of the issue that was moved back:\n%s", first.out)
	}
	p.git("-C", p.repo, "merge-base", "--is-ancestor", marked, "refs/interlock/issues/1")
	p.once()
}

// TestBaseRewritten: what somebody took out of the base is not brought back, neither by a push nor
// by an accept. The work is kept, and the next run begins on the base as it is now.
func TestBaseRewritten(t *testing.T) {
	t.Parallel()
	for name, rewrite := range map[string][]string{
		"amended":    {"commit", "-q", "--amend", "--allow-empty", "-m", "rewritten"},
		"moved back": {"reset", "-q", "--hard", "HEAD^"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, strings.Replace(slowAgent, "echo fixed > answer", "test -f secret && echo fixed-with-secret > unasked; echo fixed > answer; git add -A", 1), "HURRY")
			p.commit("secret", "x\n")
			took := p.git("-C", p.repo, "rev-parse", "main")
			first := p.start(p.work()...)
			p.git(append([]string{"-C", p.repo, "-c", "user.name=T", "-c", "user.email=t@localhost"}, rewrite...)...)
			now := p.git("-C", p.repo, "rev-parse", "main")
			if code := first.wait(); code != 1 || !strings.Contains(first.out.String(), "main was rewritten") {
				t.Errorf("exit %d, want 1\n%s", code, first.out)
			}
			if got := p.refs("refs/heads/interlock/"); len(got) != 0 {
				t.Errorf("pushed %q", got)
			}
			p.write(p.agent, quick, 0o755)
			p.must(0, p.work()...)
			if log := p.git("-C", p.repo, "log", "--format=%H", "interlock/issue-1"); strings.Contains(log, took) || !strings.Contains(log, now) {
				t.Errorf("the branch has %q, but %s was taken out of %s", log, took, now)
			}
			// The same once the change is open: an accept would bring back what is taken out now.
			p.git("-C", p.repo, "-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "-q", "--allow-empty", "-m", "onward")
			p.git("-C", p.repo, "-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "-q", "--amend", "--allow-empty", "-m", "rewritten again")
			p.git("-C", p.repo, "checkout", "-q", "--orphan", "anew")
			p.git("-C", p.repo, "-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "-q", "-m", "anew")
			p.git("-C", p.repo, "checkout", "-q", "-B", "main", "anew")
			if out := p.must(1, "change", "accept", "1", "--repo", p.repo); !strings.Contains(out, "its base main was rewritten") {
				t.Errorf("accept:\n%s", out)
			}
			if at := p.git("-C", p.repo, "rev-parse", "main"); at != p.git("-C", p.repo, "rev-parse", "anew") {
				t.Errorf("main was moved to %s", at)
			}
		})
	}
}
