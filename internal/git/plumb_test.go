package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"interlock/internal/git"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	dir, first := project(t)
	raw(t, dir, "tag", "-a", "-m", "tag", "v1")
	second := commitAll(t, dir, "second")
	p := find(t).At(dir)
	for rev, want := range map[string]string{"HEAD": second, "main": second, first: first, "v1": first, "HEAD~1": first, "refs/tags/v1": first} {
		c, err := p.Resolve(t.Context(), rev)
		if err != nil || c.Hash != want || c.Tree != raw(t, dir, "rev-parse", want+"^{tree}") {
			t.Errorf("%s: %+v, %v", rev, c, err)
		}
		if want == second && !slices.Equal(c.Parents, []string{first}) {
			t.Errorf("%s: parents %v", rev, c.Parents)
		}
	}
	for _, rev := range []string{"absent", strings.Repeat("1", 40), "HEAD^{tree}", "HEAD:a.txt", "1", "HEAD HEAD"} {
		if _, err := p.Resolve(t.Context(), rev); !errors.Is(err, git.ErrNoCommit) {
			t.Errorf("%s: %v", rev, err)
		}
	}
	for _, rev := range []string{"", "--help", "-C", "a\nHEAD", "a\x00"} {
		if _, err := p.Resolve(t.Context(), rev); !errors.Is(err, git.ErrInvalid) {
			t.Errorf("%q: %v", rev, err)
		}
	}
	empty := filepath.Join(t.TempDir(), "empty")
	raw(t, "/", "init", "-q", empty)
	if _, err := find(t).At(empty).Resolve(t.Context(), "HEAD"); !errors.Is(err, git.ErrNoCommit) {
		t.Errorf("an empty repository: %v", err)
	}
	if _, err := find(t).At(t.TempDir()).Resolve(t.Context(), "HEAD"); err == nil || errors.Is(err, git.ErrNoCommit) {
		t.Errorf("no repository: %v", err)
	}
}

func TestReplaceRefsAndGraftsAreNotFollowed(t *testing.T) {
	t.Parallel()
	dir, first := project(t)
	write(t, filepath.Join(dir, "a.txt"), "other\n")
	second := commitAll(t, dir, "second")
	raw(t, dir, "replace", second, first)
	write(t, filepath.Join(dir, ".git/info/grafts"), second+"\n")
	p := find(t).At(dir)
	c, err := p.Resolve(t.Context(), second)
	if err != nil || !slices.Equal(c.Parents, []string{first}) {
		t.Errorf("%+v, %v", c, err)
	}
	if yes, err := p.IsAncestor(t.Context(), first, second); err != nil || !yes {
		t.Errorf("the graft was followed: %v", err)
	}
	blob, err := p.Blob(t.Context(), second+":a.txt", 100)
	if err != nil || string(blob) != "other\n" {
		t.Errorf("%q, %v", blob, err)
	}
}

func TestIsAncestor(t *testing.T) {
	t.Parallel()
	dir, first := project(t)
	second := commitAll(t, dir, "second")
	p := find(t).At(dir)
	for _, c := range []struct {
		old, new string
		want     bool
	}{{first, second, true}, {second, first, false}, {first, first, true}} {
		if got, err := p.IsAncestor(t.Context(), c.old, c.new); err != nil || got != c.want {
			t.Errorf("%+v: %t, %v", c, got, err)
		}
	}
	if _, err := p.IsAncestor(t.Context(), strings.Repeat("1", 40), first); !errors.Is(err, git.ErrNoCommit) {
		t.Errorf("absent: %v", err)
	}
	if _, err := p.IsAncestor(t.Context(), "--all", first); !errors.Is(err, git.ErrInvalid) {
		t.Errorf("an option: %v", err)
	}
}

func TestHeadBranch(t *testing.T) {
	t.Parallel()
	dir, head := project(t)
	p := find(t).At(dir)
	if branch, err := p.HeadBranch(t.Context()); err != nil || branch != "main" {
		t.Errorf("%q, %v", branch, err)
	}
	raw(t, dir, "checkout", "-q", "--detach", head)
	if _, err := p.HeadBranch(t.Context()); !errors.Is(err, git.ErrDetached) {
		t.Errorf("detached: %v", err)
	}
}

func TestStatusTellsTrackedChangesAndRunsNothing(t *testing.T) {
	t.Parallel()
	dir, _ := project(t)
	marker := filepath.Join(t.TempDir(), "marker")
	script(t, filepath.Join(dir, ".git/monitor"), "touch "+marker)
	raw(t, dir, "config", "core.fsmonitor", filepath.Join(dir, ".git/monitor"))
	p := find(t).At(dir)
	write(t, filepath.Join(dir, "untracked"), "x")
	if dirty, err := p.Status(t.Context()); err != nil || len(dirty) != 0 {
		t.Errorf("%q, %v", dirty, err)
	}
	write(t, filepath.Join(dir, "a.txt"), "changed\n")
	write(t, filepath.Join(dir, "new\nline"), "x")
	raw(t, dir, "-c", "core.fsmonitor=false", "add", "new\nline")
	if err := os.Remove(filepath.Join(dir, "sub/b.txt")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, ".git/index.lock"), "") // left by a git that was killed
	index, err := os.ReadFile(filepath.Join(dir, ".git/index"))
	if err != nil {
		t.Fatal(err)
	}
	dirty, err := p.Status(t.Context())
	if err != nil || !slices.Equal(dirty, []string{"a.txt", "new\nline", "sub/b.txt"}) {
		t.Errorf("%q, %v", dirty, err)
	}
	after, err := os.ReadFile(filepath.Join(dir, ".git/index"))
	if err != nil || string(after) != string(index) {
		t.Error("the index was written")
	}
	if exists(marker) {
		t.Error("the fsmonitor ran")
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	refs := []string{"refs/heads/a", "refs/heads/a.b", "refs/heads/-a", "refs/heads/ä", "refs/heads/@", "refs/heads/a@b",
		"refs", "refs/", "refs//a", "refs/heads/", "refs/heads/.a", "refs/heads/a.", "refs/heads/a.lock", "refs/heads/a.lock/b",
		"refs/heads/a..b", "refs/heads/a b", "refs/heads/a~", "refs/heads/a^", "refs/heads/a:", "refs/heads/a?", "refs/heads/a*",
		"refs/heads/a[", "refs/heads/a\\", "refs/heads/a@{b", "refs/heads/a\x7f", "refs/heads/a\n", "refs/heads/a\x00b"}
	for _, ref := range refs {
		if strings.Contains(ref, "\x00") {
			if git.ValidRef(ref) {
				t.Errorf("%q is valid", ref)
			}
			continue
		}
		_, err := tryRaw(t, "/", "check-ref-format", ref)
		if want := err == nil && strings.HasPrefix(ref, "refs/"); git.ValidRef(ref) != want {
			t.Errorf("%q: %t, git says %t", ref, !want, want)
		}
	}
	for branch, want := range map[string]bool{"main": true, "interlock/1": true, "-x": false, "": false, "HEAD": false, "a b": false, "@{-1}": false} {
		if git.ValidBranch(branch) != want {
			t.Errorf("branch %q", branch)
		}
	}
}
