package git_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"interlock/internal/git"
)

func locate(t *testing.T, g *git.Git, path string) git.Location {
	t.Helper()
	loc, err := g.Locate(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func TestLocateGivesOneKeyForOneRepository(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, _ := project(t)
	first := locate(t, g, dir)
	if first.Bare || first.Worktree != dir || first.CommonDir != filepath.Join(dir, ".git") || !strings.HasPrefix(first.Key, "local:") {
		t.Fatalf("%+v", first)
	}
	if out, err := exec.CommandContext(t.Context(), "stat", "--format=-%i-%W.", first.CommonDir).Output(); err != nil ||
		!strings.HasSuffix(string(out), "-0.\n") && !strings.Contains(first.Key, strings.TrimSpace(string(out))) {
		t.Errorf("%s has not %s in it, %v", first.Key, out, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(t.TempDir(), "tree\nodd")
	raw(t, dir, "worktree", "add", "-q", "-b", "linked", tree)
	if got := locate(t, g, tree); got.Key != first.Key || got.Worktree != tree {
		t.Errorf("linked work tree: %+v", got)
	}
	for _, path := range []string{filepath.Join(dir, "sub"), link, filepath.Join(link, "sub"), filepath.Join(dir, ".git"), filepath.Join(dir, ".git/objects")} {
		if got := locate(t, g, path); got.Key != first.Key || got.CommonDir != first.CommonDir {
			t.Errorf("%s: %+v", path, got)
		}
	}
	other, _ := project(t)
	if locate(t, g, other).Key == first.Key {
		t.Error("two repositories have one key")
	}
	bare := bareRemote(t)
	if got := locate(t, g, bare); !got.Bare || got.Worktree != "" || got.CommonDir != bare {
		t.Errorf("bare: %+v", got)
	}
}

func TestLocateThroughABindMount(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, _ := project(t)
	at := t.TempDir()
	if err := syscall.Mount(dir, at, "", syscall.MS_BIND, ""); err != nil {
		if os.Getenv("INTERLOCK_CI") != "" {
			t.Fatalf("a bind mount is needed here: %v", err)
		}
		t.Skipf("a bind mount cannot be made here: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(at, 0); err != nil {
			t.Error(err)
		}
	}()
	if got := locate(t, g, filepath.Join(at, "sub")); got.Key != locate(t, g, dir).Key || got.Worktree != at {
		t.Errorf("%+v", got)
	}
}

func TestARepositoryOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can give a repository to another user")
	}
	g := find(t)
	dir, head := project(t)
	err := filepath.WalkDir(filepath.Dir(dir), func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, 12345, 12345)
	})
	if err != nil {
		t.Fatal(err)
	}
	locate(t, g, dir)
	if _, err := g.At(dir).Resolve(t.Context(), "main"); err != nil {
		t.Error(err)
	}
	if refs, err := g.LsRemote(t.Context(), dir); err != nil || refs["refs/heads/main"] != head {
		t.Errorf("%v, %v", refs, err)
	}
	r := engine(t, g)
	if c, err := r.FetchBranch(t.Context(), dir, "main", "refs/interlock/base/1"); err != nil || c.Hash != head {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := push(t, r, dir, git.Update{Ref: "refs/heads/topic", New: newCommit(t, r.Plumb, "x", head)}); err != nil {
		t.Error(err)
	}
}

func TestLocateWhereThereIsNoRepository(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "")
	for _, path := range []string{dir, filepath.Join(dir, "absent"), filepath.Join(dir, "file")} {
		_, err := g.Locate(t.Context(), path)
		if !errors.Is(err, git.ErrNotRepository) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestLocateANewRepositoryInTheSamePlace(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, _ := project(t)
	first := locate(t, g, dir)
	if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
		t.Fatal(err)
	}
	raw(t, dir, "init", "-q")
	if locate(t, g, dir).Key == first.Key {
		t.Error("the key of a removed repository was given again")
	}
}

func TestLocateRefusesSHA256(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	raw(t, dir, "init", "-q", "--object-format=sha256")
	if _, err := find(t).Locate(t.Context(), dir); !errors.Is(err, git.ErrRefused) {
		t.Error(err)
	}
}
