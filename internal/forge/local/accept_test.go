package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"interlock/internal/forge"
	"interlock/internal/forge/local"
)

// proposed files an issue and opens a change for it whose head has these files.
func (p place) proposed(f *local.Forge, files map[string]string) forge.Change {
	p.Helper()
	i, err := f.NewIssue(p.Context(), "mend it", "", nil, "")
	p.must(err)
	p.branch("work", "main", files)
	c, err := f.Propose(p.Context(), forge.Change{Issue: i.Number, Title: "mended", Head: "work", Base: "main", BaseAt: p.at("main"), Marker: "run-1"})
	p.must(err)
	return c
}

// accepted checks that a change is merged in every place that says so.
func (p place) accepted(f *local.Forge, c forge.Change) {
	p.Helper()
	got, err := f.Change(p.Context(), c.Number)
	p.must(err)
	issue, err := f.Issue(p.Context(), c.Issue)
	p.must(err)
	if got.State != "merged" || issue.State != "closed" {
		p.Errorf("change is %s, issue is %s", got.State, issue.State)
	}
	if ok, err := p.git.At(p.dir).IsAncestor(p.Context(), c.Proposed, "main"); err != nil || !ok {
		p.Errorf("main does not have %s: %v", c.Proposed, err)
	}
	if refs, err := p.git.At(p.dir).Refs(p.Context(), "refs/interlock/heads/"); err != nil || len(refs) != 0 {
		p.Errorf("the head is not free: %v, %v", refs, err)
	}
}

// refuses checks that a change is not accepted and nothing at all was moved.
func (p place) refuses(f *local.Forge, c forge.Change, why, command string) {
	p.Helper()
	before := p.run("for-each-ref")
	_, err := f.Accept(p.Context(), c.Number)
	var refused *local.AcceptError
	if !errors.As(err, &refused) {
		p.Fatalf("accept: %v", err)
	}
	if !strings.Contains(refused.Why, why) || !strings.Contains(refused.Command, command) || !strings.Contains(err.Error(), refused.Command) {
		p.Errorf("refused with %v; want %q and %q", err, why, command)
	}
	if after := p.run("for-each-ref"); after != before {
		p.Errorf("refs were moved:\n%s\nbefore:\n%s", after, before)
	}
}

// shell types a command as a person would.
func (p place) shell(command string) {
	p.Helper()
	out, err := shell(p, command)
	if err != nil {
		p.Fatalf("%s: %v\n%s", command, err, out)
	}
}

func TestAcceptBare(t *testing.T) {
	t.Parallel()
	p := repository(t, true)
	f := p.open()
	c := p.proposed(f, map[string]string{"text": "mended\n"})
	got, err := f.Accept(t.Context(), c.Number)
	p.must(err)
	if got.State != "merged" || p.at("main") != c.Proposed {
		t.Errorf("accepted %+v, main is at %s", got, p.at("main"))
	}
	p.accepted(f, c)
	p.refuses(f, c, "merged already", "")
	if _, err := f.Accept(t.Context(), 99); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("no such change: %v", err)
	}
	// The head is free for another change.
	p.branch("work", "main", map[string]string{"text": "again\n"})
	if _, err := f.Propose(t.Context(), forge.Change{Title: "more", Head: "work", Base: "main"}); err != nil {
		t.Errorf("propose after a merge: %v", err)
	}
}

func TestAcceptOfManyAtOnce(t *testing.T) {
	t.Parallel()
	p := repository(t, true)
	c := p.proposed(p.open(), map[string]string{"text": "mended\n"})
	clients := make([]*local.Forge, 6)
	for i := range clients {
		clients[i] = p.open()
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for _, f := range clients {
		wg.Go(func() {
			_, err := f.Accept(t.Context(), c.Number)
			mu.Lock()
			defer mu.Unlock()
			var refused *local.AcceptError
			switch {
			case err == nil:
				won++
			case !errors.As(err, &refused) || !strings.Contains(refused.Why, "merged already"):
				t.Errorf("accept: %v", err)
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d accepted it", won)
	}
	p.accepted(clients[0], c)
}

func TestAcceptCheckedOut(t *testing.T) {
	t.Parallel()
	for name, linked := range map[string]bool{"main work tree": false, "linked work tree": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := repository(t, false)
			tree := p.dir
			if linked {
				p.run("switch", "--quiet", "--detach")
				tree = filepath.Join(t.TempDir(), "a 'linked' tree")
				p.run("worktree", "add", "--quiet", tree, "main")
			}
			ran := p.marker("post-merge", "post-checkout", "reference-transaction", "pre-commit")
			f := p.open()
			c := p.proposed(f, map[string]string{"text": "mended\n", "new": "new\n"})
			write(t, filepath.Join(tree, "text"), "not committed\n")
			p.refuses(f, c, "not committed (text)", "stash")
			write(t, filepath.Join(tree, "text"), "base\n")
			write(t, filepath.Join(tree, "new"), "in the way\n")
			p.refuses(f, c, "untracked", "status")
			p.must(os.Remove(filepath.Join(tree, "new")))
			write(t, filepath.Join(tree, "beside"), "not in the way\n")
			_, err := f.Accept(t.Context(), c.Number)
			p.must(err)
			p.accepted(f, c)
			if read(t, filepath.Join(tree, "text")) != "mended\n" || read(t, filepath.Join(tree, "beside")) != "not in the way\n" {
				t.Error("the work tree is not as it should be")
			}
			if dirty, err := p.git.At(tree).Status(t.Context()); err != nil || len(dirty) != 0 {
				t.Errorf("the work tree is dirty: %v, %v", dirty, err)
			}
			if names := ran(); len(names) != 0 {
				t.Errorf("hooks of the repository ran: %v", names)
			}
		})
	}
}

// A file that git ignores is somebody's work too.
func TestAcceptKeepsIgnoredFile(t *testing.T) {
	t.Parallel()
	p := repository(t, false)
	f := p.open()
	c := p.proposed(f, map[string]string{"text": "base\n", "ignored": "theirs\n"})
	write(t, filepath.Join(p.dir, "ignored"), "mine\n")
	p.refuses(f, c, "ignored", "status")
	if got := read(t, filepath.Join(p.dir, "ignored")); got != "mine\n" {
		t.Errorf("the ignored file is now %q", got)
	}
}

// Files of Git LFS would be checked out as pointers in the closed environment.
func TestAcceptLFS(t *testing.T) {
	t.Parallel()
	p := repository(t, false)
	f := p.open()
	c := p.proposed(f, map[string]string{".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "text": "base\n"})
	p.refuses(f, c, "Git LFS", "merge --ff-only "+c.Proposed)
	p.shell(acceptCommand(t, f, c))
	_, err := f.Accept(t.Context(), c.Number)
	p.must(err)
	p.accepted(f, c)
}

func TestAcceptHeadMovedOrGone(t *testing.T) {
	t.Parallel()
	p := repository(t, false)
	f := p.open()
	c := p.proposed(f, map[string]string{"text": "mended\n"})
	p.run("update-ref", "-d", "refs/heads/work")
	p.refuses(f, c, "is gone", "branch work "+c.Proposed)
	p.shell(acceptCommand(t, f, c))
	moved := p.branch("work", "work", map[string]string{"text": "mended, and more\n"})
	p.refuses(f, c, "has moved", "merge "+moved)
	if p.at("main") == moved {
		t.Fatal("the head that nobody reviewed was merged")
	}
	p.shell(acceptCommand(t, f, c)) // the person looked at it
	_, err := f.Accept(t.Context(), c.Number)
	p.must(err)
	p.accepted(f, c)
}

// A head that was only reset to where the base was has not been merged.
func TestAcceptHeadReset(t *testing.T) {
	t.Parallel()
	p := repository(t, true)
	f := p.open()
	c := p.proposed(f, map[string]string{"text": "mended\n"})
	p.run("update-ref", "refs/heads/work", p.at("main"))
	p.refuses(f, c, "has moved", "")
}

func TestAcceptNotFastForward(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bare", "checked out", "not checked out"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := repository(t, name == "bare")
			f := p.open()
			c := p.proposed(f, map[string]string{"text": "base\n", "new": "new\n"})
			if name == "not checked out" {
				p.run("switch", "--quiet", "--create", "elsewhere")
			}
			p.branch("main", "main", map[string]string{"text": "base\n", "other": "other\n"})
			if name == "checked out" {
				p.run("reset", "--quiet", "--hard")
			}
			p.refuses(f, c, "cannot be fast-forwarded", "merge "+c.Proposed)
			p.shell(acceptCommand(t, f, c))
			_, err := f.Accept(t.Context(), c.Number)
			p.must(err)
			p.accepted(f, c)
		})
	}
}

// Killed between the merge and its record: typed again, it is recorded.
func TestAcceptAfterCrash(t *testing.T) {
	t.Parallel()
	p := repository(t, false)
	f := p.open()
	c := p.proposed(f, map[string]string{"text": "mended\n"})
	p.run("merge", "--quiet", "--ff-only", c.Proposed)
	p.branch("main", "main", map[string]string{"text": "went on\n"}) // and the base went on
	p.run("reset", "--quiet", "--hard")
	p.run("update-ref", "-d", "refs/heads/work")
	_, err := f.Accept(t.Context(), c.Number)
	p.must(err)
	p.accepted(f, c)
}

func TestAcceptBesideBase(t *testing.T) {
	t.Parallel()
	p := repository(t, false)
	p.run("switch", "--quiet", "--create", "elsewhere")
	f := p.open()
	c := p.proposed(f, map[string]string{"text": "mended\n"})
	write(t, filepath.Join(p.dir, "text"), "not committed\n") // concerns nobody: main is not here
	_, err := f.Accept(t.Context(), c.Number)
	p.must(err)
	p.accepted(f, c)
	if read(t, filepath.Join(p.dir, "text")) != "not committed\n" {
		t.Error("the work tree was touched")
	}
}

func TestAcceptWorkTreeGoneOrRebasing(t *testing.T) {
	t.Parallel()
	p := repository(t, false)
	p.run("switch", "--quiet", "--detach")
	tree := filepath.Join(t.TempDir(), "linked")
	p.run("worktree", "add", "--quiet", tree, "main")
	f := p.open()
	c := p.proposed(f, map[string]string{"text": "mended\n"})
	p.must(os.Rename(tree, tree+".away"))
	p.refuses(f, c, "cannot be reached", "worktree prune")
	p.must(os.Rename(tree+".away", tree))
	p.branch("topic", "main", map[string]string{"text": "in conflict\n"})
	write(t, filepath.Join(tree, "text"), "also\n")
	_, _ = shell(p, "cd "+tree+" && git commit -qam x && git rebase topic")
	p.refuses(f, c, "being rebased", "worktree list")
}

func TestAcceptDamagedIssue(t *testing.T) {
	t.Parallel()
	p := repository(t, true)
	f := p.open()
	c := p.proposed(f, map[string]string{"text": "mended\n"})
	p.damage("refs/interlock/issues/1", "{")
	before := p.run("for-each-ref")
	var damaged *local.DamagedError
	if _, err := f.Accept(t.Context(), c.Number); !errors.As(err, &damaged) || damaged.Ref != "refs/interlock/issues/1" {
		t.Errorf("accept: %v", err)
	}
	if after := p.run("for-each-ref"); after != before {
		t.Errorf("refs were moved:\n%s\nbefore:\n%s", after, before)
	}
	p.shell(damaged.Error()[strings.Index(damaged.Error(), "git -C"):])
	_, err := f.Accept(t.Context(), c.Number)
	p.must(err)
	p.accepted(f, c)
}

func TestCloseChange(t *testing.T) {
	t.Parallel()
	p := repository(t, true)
	f := p.open()
	c := p.proposed(f, map[string]string{"text": "mended\n"})
	for range 2 {
		got, err := f.CloseChange(t.Context(), c.Number)
		p.must(err)
		if got.State != "closed" || got.HeadAt != c.Proposed {
			t.Errorf("closed %+v", got)
		}
	}
	p.refuses(f, c, "closed already", "")
	next, err := f.Propose(t.Context(), forge.Change{Title: "again", Head: "work", Base: "main"})
	p.must(err)
	if next.Number == c.Number {
		t.Errorf("the number %d was given again", next.Number)
	}
	_, err = f.Accept(t.Context(), next.Number)
	p.must(err)
	if _, err := f.CloseChange(t.Context(), next.Number); !errors.Is(err, forge.ErrInvalid) {
		t.Errorf("close a merged change: %v", err)
	}
}

// acceptCommand is the command that a refused accept tells to type.
func acceptCommand(t *testing.T, f *local.Forge, c forge.Change) string {
	t.Helper()
	var refused *local.AcceptError
	if _, err := f.Accept(t.Context(), c.Number); !errors.As(err, &refused) {
		t.Fatalf("accept: %v", err)
	}
	return refused.Command
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestAcceptBesideLocks: git writes the files of a fast-forward before it moves the branch. Where a
// lock file keeps it from that, the work tree is as before, and what somebody changed in it is kept.
func TestAcceptBesideLocks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"refs/heads/main.lock", "HEAD.lock", "index.lock", "ORIG_HEAD.lock"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := furnished(t, false)
			p.branch("interlock/issue-1", "interlock/issue-1", map[string]string{"text": "work\n", "new": "new\n"})
			_, err := p.open().CloseChange(t.Context(), 1)
			p.must(err)
			_, err = p.open().Propose(t.Context(), forge.Change{Issue: 1, Title: "work", Head: "interlock/issue-1", Base: "main"})
			p.must(err)
			lock := filepath.Join(p.dir, ".git", name)
			p.must(os.WriteFile(lock, nil, 0o600))
			before := p.at("main")
			_, err = p.open().Accept(t.Context(), 2)
			var refused *local.AcceptError
			if name == "ORIG_HEAD.lock" && err == nil {
				return // git warns and goes on
			}
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), name) {
				t.Errorf("accept: %v", err)
			}
			if _, err := os.Lstat(lock); err != nil {
				t.Error(err)
			}
			p.must(os.Remove(lock))
			text, err := os.ReadFile(filepath.Join(p.dir, "text"))
			if p.run("status", "--porcelain") != "" || p.at("main") != before || err != nil || string(text) != "base\n" {
				t.Errorf("after the refusal: %q, main at %s, text %q, %v", p.run("status", "--porcelain"), p.at("main"), text, err)
			}
			if c, err := p.open().Accept(t.Context(), 2); err != nil || c.State != "merged" {
				t.Errorf("when the lock is gone: %+v, %v", c, err)
			}
		})
	}
}
