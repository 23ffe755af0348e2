package local_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"interlock/internal/forge"
	"interlock/internal/git"
)

// engine makes an engine's repository, as an installation has one.
func (p place) engine() *git.Repo {
	p.Helper()
	repo, err := p.git.Engine(p.Context(), filepath.Join(p.TempDir(), "engine.git"))
	p.must(err)
	return repo
}

// restore restores for the installation that a repository is of, and returns what it said.
func (p place) restore(repo *git.Repo) string {
	p.Helper()
	said, err := p.open().Restore(p.Context(), repo)
	p.must(err)
	return strings.Join(said, "\n")
}

// data is where all refs of ours and all branches are.
func (p place) data() string {
	p.Helper()
	return p.run("for-each-ref", "--format=%(refname) %(objectname)", "refs/interlock/", "refs/heads/")
}

// wipe does what git push --mirror from a clone does to the refs that the clone does not have, and
// collects at once what nothing reaches any more.
func (p place) wipe(prefixes ...string) {
	p.Helper()
	for _, prefix := range prefixes {
		for ref := range strings.FieldsSeq(p.run("for-each-ref", "--format=%(refname)", prefix)) {
			p.run("update-ref", "-d", ref)
		}
	}
	p.run("reflog", "expire", "--expire=now", "--all")
	p.run("gc", "--quiet", "--prune=now")
}

// furnished is a repository with two issues, one of them with a comment, and an open change.
func furnished(t *testing.T, bare bool) (place, *git.Repo) {
	t.Helper()
	p := repository(t, bare)
	f := p.open()
	for _, title := range []string{"one", "two"} {
		_, err := f.NewIssue(t.Context(), title, "body of "+title, nil, "somebody")
		p.must(err)
	}
	_, err := f.Comment(t.Context(), 2, "key", "a comment")
	p.must(err)
	head := p.branch("interlock/issue-1", "main", map[string]string{"text": "work\n"})
	_, err = f.Propose(t.Context(), forge.Change{Issue: 1, Title: "work", Head: "interlock/issue-1", HeadAt: head, Base: "main", Marker: "1-a"})
	p.must(err)
	repo := p.engine()
	if said := p.restore(repo); said != "" {
		t.Fatalf("nothing was wiped, but: %s", said)
	}
	return p, repo
}

// TestRestoreWiped: what was wiped is put back exactly as it was seen last, also where its objects
// are gone, and that is said once.
func TestRestoreWiped(t *testing.T) {
	t.Parallel()
	for name, bare := range map[string]bool{"bare": true, "work tree": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, repo := furnished(t, bare)
			before := p.data()
			ran := p.marker("pre-receive", "update", "post-receive", "reference-transaction")
			p.wipe("refs/interlock/", "refs/heads/interlock/")
			said := p.restore(repo)
			if after := p.data(); after != before {
				t.Errorf("restored\n%s\nit was\n%s", after, before)
			}
			for _, want := range []string{"issue 1 had been deleted", "issue 2 had", "change 1 had", "its branch interlock/issue-1"} {
				if strings.Count(said, want) != 1 {
					t.Errorf("not said once: %q in\n%s", want, said)
				}
			}
			p.wipe() // the collection finds all of it reachable
			if is, err := p.open().Issue(t.Context(), 2); err != nil || len(is.Comments) != 1 {
				t.Errorf("issue 2 is %+v, %v", is, err)
			}
			if again := p.restore(repo); again != "" {
				t.Errorf("a second look says %s", again)
			}
			if c, err := p.open().Accept(t.Context(), 1); err != nil || c.State != "merged" {
				t.Errorf("accept of the restored change: %+v, %v", c, err)
			}
			if hooks := ran(); len(hooks) > 0 && bare {
				t.Errorf("hooks of the operator's ran: %q", hooks)
			}
			p.restore(repo)
			p.wipe("refs/interlock/heads/")
			if again := p.restore(repo); again != "" {
				t.Errorf("a closed change needs no index, but: %s", again)
			}
		})
	}
}

// TestRestoreOfMany: 8 installations that have seen more or less restore at once; what the best of
// them has seen is there in the end, and nobody has moved anything back.
func TestRestoreOfMany(t *testing.T) {
	t.Parallel()
	p, first := furnished(t, true)
	repos := []*git.Repo{first}
	for i := range 7 {
		_, err := p.open().Comment(t.Context(), 2, fmt.Sprint(i), "later")
		p.must(err)
		repos = append(repos, p.engine())
		p.restore(repos[len(repos)-1])
	}
	before := p.data()
	for range 3 {
		p.wipe("refs/interlock/", "refs/heads/interlock/")
		var wg sync.WaitGroup
		for _, repo := range repos {
			wg.Go(func() {
				if _, err := p.open().Restore(t.Context(), repo); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if after := p.data(); after != before {
			t.Fatalf("restored\n%s\nit was\n%s", after, before)
		}
	}
}

// TestRestoreMovedBack: a push --mirror of an older clone moves refs back. What goes on from there
// is moved forward again; where somebody has written on meanwhile, that stays, and the other is kept.
func TestRestoreMovedBack(t *testing.T) {
	t.Parallel()
	p, repo := furnished(t, true)
	old := p.data()
	for _, n := range []int64{1, 2} {
		_, err := p.open().Comment(t.Context(), n, "later", "said later")
		p.must(err)
	}
	p.restore(repo)
	seen := p.data()
	back := func() {
		for line := range strings.Lines(old) {
			ref, hash, _ := strings.Cut(strings.TrimSpace(line), " ")
			p.run("update-ref", ref, hash)
		}
	}
	back()
	if said := p.restore(repo); p.data() != seen || strings.Count(said, "older than what was seen") != 2 {
		t.Errorf("%s\nnow\n%s\nseen\n%s", said, p.data(), seen)
	}
	back()
	_, err := p.open().Comment(t.Context(), 1, "other", "by somebody who did not know")
	p.must(err)
	theirs, ours := p.at("refs/interlock/issues/1"), ""
	for line := range strings.Lines(seen) {
		if ref, hash, _ := strings.Cut(strings.TrimSpace(line), " "); ref == "refs/interlock/issues/1" {
			ours = hash
		}
	}
	said := p.restore(repo)
	if got := p.at("refs/interlock/issues/1"); got != theirs || !strings.Contains(said, "issue 1 was rewritten") || !strings.Contains(said, ours) {
		t.Errorf("issue 1 is at %s, theirs is %s: %s", got, theirs, said)
	}
	if doc, err := repo.Blob(t.Context(), ours+":issue.json", 1<<20); err != nil || !strings.Contains(string(doc), "said later") {
		t.Errorf("what was seen before: %s, %v", doc, err)
	}
	if refs, err := repo.Refs(t.Context(), "refs/interlock/kept/aside/"); err != nil || len(refs) != 1 {
		t.Errorf("nothing keeps it: %v, %v", refs, err)
	}
	if again := p.restore(repo); again != "" {
		t.Errorf("said again: %s", again)
	}
	p.wipe("refs/interlock/")
	p.restore(repo)
	if got := p.at("refs/interlock/issues/1"); got != theirs {
		t.Errorf("after a wipe issue 1 is at %s, not at %s, which was seen last", got, theirs)
	}
}

// TestRestoreLeavesDamage: what cannot be read is not kept, so that a person may move it back by the
// command that the refusal prints.
func TestRestoreLeavesDamage(t *testing.T) {
	t.Parallel()
	p, repo := furnished(t, true)
	good := p.at("refs/interlock/issues/1")
	bad := p.damage("refs/interlock/issues/1", "{")
	if said := p.restore(repo); said != "" || p.at("refs/interlock/issues/1") != bad {
		t.Errorf("%s: %s", p.at("refs/interlock/issues/1"), said)
	}
	p.run("update-ref", "refs/interlock/issues/1", good, bad)
	if said := p.restore(repo); said != "" || p.at("refs/interlock/issues/1") != good {
		t.Errorf("%s: %s", p.at("refs/interlock/issues/1"), said)
	}
	p.damage("refs/interlock/issues/2", "{")
	p.wipe("refs/interlock/issues/")
	p.restore(repo)
	if is, err := p.open().Issue(t.Context(), 2); err != nil || len(is.Comments) != 1 {
		t.Errorf("issue 2 is %+v, %v", is, err)
	}
}

// TestRestoreBesideWriters: what is written while others restore is never moved back or lost.
func TestRestoreBesideWriters(t *testing.T) {
	t.Parallel()
	p, repo := furnished(t, true)
	const writers, each = 4, 8
	var writing, restoring sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		restoring.Go(func() {
			for {
				said, err := p.open().Restore(t.Context(), repo)
				if err != nil && t.Context().Err() == nil && !strings.Contains(err.Error(), "not where it was expected") {
					t.Error(err)
				}
				if len(said) > 0 {
					t.Errorf("restored what nobody wiped: %q", said)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				if _, err := p.open().Comment(t.Context(), 2, fmt.Sprint(w, "-", i), "x"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	close(done)
	restoring.Wait()
	if is, err := p.open().Issue(t.Context(), 2); err != nil || len(is.Comments) != writers*each+1 {
		t.Errorf("%d comments, %v", len(is.Comments), err)
	}
}
