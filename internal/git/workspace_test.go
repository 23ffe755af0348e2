package git_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"interlock/internal/git"
)

// fetched makes an engine's repository that has main of a project.
func fetched(t *testing.T, g *git.Git, dir string) (*git.Repo, git.Commit) {
	t.Helper()
	r := engine(t, g)
	c, err := r.FetchBranch(t.Context(), dir, "main", "refs/interlock/base/1")
	if err != nil {
		t.Fatal(err)
	}
	return r, c
}

func workspace(t *testing.T, r *git.Repo, commit string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	if err := r.Workspace(t.Context(), git.WorkspaceSpec{Dir: dir, Commit: commit, Branch: "interlock/1"}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestWorkspace(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, head := project(t)
	r, _ := fetched(t, g, dir)
	tree := workspace(t, r, head)
	if info, err := os.Stat(tree); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if got := raw(t, tree, "rev-parse", "HEAD") + " " + raw(t, tree, "symbolic-ref", "HEAD"); got != head+" refs/heads/interlock/1" {
		t.Error(got)
	}
	if got := raw(t, tree, "status", "--porcelain") + raw(t, tree, "remote") + raw(t, tree, "stash", "list"); got != "" {
		t.Errorf("not clean: %q", got)
	}
	if hooks, _ := filepath.Glob(filepath.Join(tree, ".git/hooks/*")); len(hooks) > 0 {
		t.Errorf("hooks: %v", hooks)
	}
	if objects := raw(t, tree, "count-objects"); !strings.HasPrefix(objects, "0 objects") {
		t.Errorf("objects were copied: %s", objects)
	}
	write(t, filepath.Join(tree, "a.txt"), "agent\n")
	work := commitAll(t, tree, "work")
	if raw(t, tree, "rev-parse", "interlock/1") != work {
		t.Error("the branch did not move")
	}
	for _, spec := range []git.WorkspaceSpec{
		{Dir: tree, Commit: head}, {Dir: "relative", Commit: head}, {Dir: filepath.Join(tree, "x"), Commit: "HEAD"},
		{Dir: filepath.Join(t.TempDir(), "x"), Commit: head, Branch: "-x"},
	} {
		if err := r.Workspace(t.Context(), spec); !errors.Is(err, git.ErrInvalid) {
			t.Errorf("%+v: %v", spec, err)
		}
	}
	if raw(t, tree, "rev-parse", "HEAD") != work {
		t.Error("a refused workspace touched what was there")
	}
	if err := r.Workspace(t.Context(), git.WorkspaceSpec{Dir: filepath.Join(t.TempDir(), "x"), Commit: strings.Repeat("1", 40)}); !errors.Is(err, git.ErrNoCommit) {
		t.Error(err)
	}
}

func TestWorkspaceDetachedWithObjectsElsewhere(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, head := project(t)
	r, _ := fetched(t, g, dir)
	tree := filepath.Join(t.TempDir(), "tree")
	inside := filepath.Join(t.TempDir(), "odd \"name\"\n")
	if err := r.Workspace(t.Context(), git.WorkspaceSpec{Dir: tree, Commit: head, Objects: inside}); err != nil {
		t.Fatal(err)
	}
	if _, err := tryRaw(t, tree, "cat-file", "-e", head); err == nil {
		t.Fatal("the objects are still borrowed from outside")
	}
	if err := os.Symlink(r.Objects(), inside); err != nil {
		t.Fatal(err)
	}
	if raw(t, tree, "rev-parse", "HEAD^{commit}") != head || raw(t, tree, "status", "--porcelain") != "" {
		t.Error("not whole")
	}
	if _, err := tryRaw(t, tree, "symbolic-ref", "-q", "HEAD"); err == nil {
		t.Error("not detached")
	}
}

func TestWorkspaceRunsNothingOfTheContent(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, _ := project(t)
	marker := filepath.Join(t.TempDir(), "marker")
	script(t, filepath.Join(dir, "evil.sh"), "touch "+marker+"; cat")
	write(t, filepath.Join(dir, ".gitattributes"), "*.txt filter=evil diff=evil merge=evil\n*.bin filter=lfs\n*.crlf -text\n")
	write(t, filepath.Join(dir, ".gitconfig"), "[filter \"evil\"]\nsmudge = ./evil.sh\nclean = ./evil.sh\n")
	write(t, filepath.Join(dir, "x.bin"), "version https://git-lfs.github.com/spec/v1\n")
	write(t, filepath.Join(dir, "x.crlf"), "a\r\nb\r\n")
	write(t, filepath.Join(dir, "mixed.dat"), "a\r\nb\n\x00\xff")
	head := commitAll(t, dir, "hostile")
	r, _ := fetched(t, g, dir)
	tree := workspace(t, r, head)
	for _, name := range []string{"a.txt", "x.bin", "x.crlf", "mixed.dat", "evil.sh"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(tree, name))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if exists(marker) {
		t.Error("a filter of the content ran")
	}
}

// TestScaleWorkspaces: 16 workspaces at once, from two handles on one repository, beside
// fetches of a base that is forced meanwhile, and beside collections that take the lock: all of them
// are made, and each stays whole, whatever is forced and collected later.
func TestScaleWorkspaces(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, head := project(t)
	r, _ := fetched(t, g, dir)
	again, err := g.Engine(t.Context(), r.Dir())
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for round := range rounds(t, 1) {
		raw(t, dir, "commit", "-q", "--amend", "-m", fmt.Sprint("forced ", round))
		forced := raw(t, dir, "rev-parse", "HEAD")
		raw(t, dir, "reflog", "expire", "--expire=now", "--all")
		raw(t, dir, "prune", "--expire=now")
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				handle := []*git.Repo{r, again}[i%2]
				spec := git.WorkspaceSpec{Dir: filepath.Join(root, fmt.Sprint(i, "-", round)), Commit: head, Branch: "b"}
				if err := handle.Workspace(t.Context(), spec); err != nil {
					t.Error(err)
				}
				switch i % 4 {
				case 0:
					c, err := handle.FetchBranch(t.Context(), dir, "main", "refs/interlock/base/2")
					if err != nil || c.Hash != forced {
						t.Errorf("%+v, %v", c, err)
					}
				case 1:
					collect(t, handle)
				}
			})
		}
		wg.Wait()
	}
	for i := range 16 {
		raw(t, filepath.Join(root, fmt.Sprint(i, "-0")), "fsck", "--no-dangling")
	}
}

// collect does what an operator may who wants room: it repacks, and drops what no ref reaches.
func collect(t *testing.T, r *git.Repo) {
	t.Helper()
	unlock, err := r.Lock(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	defer unlock()
	for _, args := range [][]string{{"reflog", "expire", "--expire=now", "--all"}, {"repack", "-a", "-d", "-q"}, {"prune", "--expire=now"}, {"pack-refs", "--all"}} {
		if out, err := tryRaw(t, r.Dir(), args...); err != nil {
			t.Errorf("git %v: %v: %s", args, err, out)
		}
	}
}

func TestWorkspaceIsThereOnlyWhenItIsWhole(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, head := project(t)
	r, _ := fetched(t, g, dir)
	tree := filepath.Join(t.TempDir(), "tree")
	write(t, filepath.Join(tree+".partial", ".git/config"), "[core]\n\tfsmonitor = touch x\n")
	stop, cancel := context.WithCancel(t.Context())
	cancel()
	spec := git.WorkspaceSpec{Dir: tree, Commit: head}
	if err := r.Workspace(stop, spec); err == nil || exists(filepath.Join(tree, ".git")) {
		t.Fatalf("%v; something is there: %t", err, exists(filepath.Join(tree, ".git")))
	}
	if err := r.Workspace(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if exists(tree+".partial") || raw(t, tree, "config", "--default", "", "core.fsmonitor") != "" {
		t.Error("what a killed call had left came in")
	}
}

// TestWorkspacesDoNotWait: a workspace is made while a fetch of the same repository is under way, and
// while another is being made; of two in the same place one is made, and is whole.
func TestWorkspacesDoNotWait(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, head := project(t)
	r, _ := fetched(t, g, dir)
	for what, place := range map[string]string{"a fetch": r.Dir(), "a workspace": filepath.Join(r.Dir(), "refs")} {
		held, err := os.Open(place)
		if err != nil {
			t.Fatal(err)
		}
		how := syscall.LOCK_EX
		if what == "a workspace" {
			how = syscall.LOCK_SH
		}
		if err := syscall.Flock(int(held.Fd()), how); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		if err := r.Workspace(ctx, git.WorkspaceSpec{Dir: filepath.Join(t.TempDir(), "tree"), Commit: head}); err != nil {
			t.Errorf("beside %s: %v", what, err)
		}
		cancel()
		held.Close()
	}
	tree := filepath.Join(t.TempDir(), "tree")
	got := make(chan error, 8)
	for range cap(got) {
		go func() { got <- r.Workspace(t.Context(), git.WorkspaceSpec{Dir: tree, Commit: head}) }()
	}
	made := 0
	for range cap(got) {
		if err := <-got; err == nil {
			made++
		} else if !errors.Is(err, git.ErrInvalid) {
			t.Errorf("beside others in the same place: %v", err)
		}
	}
	if made != 1 || raw(t, tree, "status", "--porcelain") != "" {
		t.Errorf("%d were made in the same place; it holds %q", made, raw(t, tree, "status", "--porcelain"))
	}
}
