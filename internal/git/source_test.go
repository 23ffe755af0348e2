package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"interlock/internal/git"
)

// TestCheckSource: a git directory that can be read without waiting passes, with whatever hooks and
// links within the tree; what leads out of it, or to what is no file, does not.
func TestCheckSource(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "secret\n")
	link := func(to string) func(string) error { return func(at string) error { return os.Symlink(to, at) } }
	fifo := func(at string) error { return syscall.Mkfifo(at, 0o600) }
	for _, c := range []struct {
		name, at string
		make     func(at string) error
		refused  bool
	}{
		{"nothing more", "x", func(string) error { return nil }, false},
		{"a link within", ".git/HEAD2", link("HEAD"), false},
		{"a dangling link", ".git/gone", link("nowhere"), false},
		{"a pipe among the hooks", ".git/hooks/pipe", fifo, false},
		{"a pipe in the work tree", "pipe", fifo, false},
		{"a pipe", ".git/shallow", fifo, true},
		{"a pipe below", ".git/refs/heads/pipe", fifo, true},
		{"a link to a pipe in the work tree", ".git/packed-refs", func(at string) error {
			return errors.Join(syscall.Mkfifo(filepath.Join(filepath.Dir(at), "../pipe"), 0o600), os.Symlink("../pipe", at))
		}, true},
		{"a link to a device", ".git/packed-refs", link("/dev/zero"), true},
		{"a link to a file outside", ".git/packed-refs", link(secret), true},
		{"a link up and out", ".git/packed-refs", link("../../../../../../../../etc/passwd"), true},
	} {
		g := find(t)
		dir, head := project(t)
		r, _ := fetched(t, g, dir)
		tree := workspace(t, r, head)
		if err := os.MkdirAll(filepath.Dir(filepath.Join(tree, c.at)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := c.make(filepath.Join(tree, c.at)); err != nil {
			t.Fatal(err)
		}
		err := git.CheckSource(tree)
		if errors.Is(err, git.ErrRefused) != c.refused || err != nil && !c.refused {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.refused && !strings.Contains(err.Error(), c.at) {
			t.Errorf("%s: the error does not say where: %v", c.name, err)
		}
	}
}

// TestImportBoundsTheTree: neither the number of names that a few trees stand for, nor what one
// blob under many names takes when it is checked out, comes in.
func TestImportBoundsTheTree(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, _ := project(t)
	write(t, filepath.Join(dir, "one"), strings.Repeat("x", 1000))
	write(t, filepath.Join(dir, "two"), strings.Repeat("x", 1000))
	head := commitAll(t, dir, "twice the same")
	r, err := g.Engine(t.Context(), filepath.Join(t.TempDir(), "engine"))
	if err != nil {
		t.Fatal(err)
	}
	spec := git.ImportSpec{Source: dir, Into: "refs/interlock/import/1", MaxTree: 1999}
	if _, err := r.Import(t.Context(), spec); !errors.Is(err, git.ErrTooBig) {
		t.Fatalf("the same file twice: %v", err)
	}
	spec.MaxTree = 1 << 20
	if c, err := r.Import(t.Context(), spec); err != nil || c.Hash != head {
		t.Fatalf("within the bound: %+v, %v", c, err)
	}
}

// TestSnapshotLeavesNothingOutInSilence: a directory that cannot be opened, and a file too large.
func TestSnapshotLeavesNothingOutInSilence(t *testing.T) {
	t.Parallel()
	r, tree, base := agentTree(t)
	spec := git.SnapshotSpec{GitDir: filepath.Join(t.TempDir(), "snapshot"), WorkTree: tree, Objects: r.Objects(), Parent: base,
		Message: "x", MaxFile: 1 << 20}
	write(t, filepath.Join(tree, "hole"), "")
	if err := os.Truncate(filepath.Join(tree, "hole"), 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, _, err := git.Snapshot(t.Context(), spec); !errors.Is(err, git.ErrTooBig) || !strings.Contains(err.Error(), "hole") {
		t.Errorf("a hole of 1 TiB: %v", err)
	}
	if err := os.Remove(filepath.Join(tree, "hole")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(tree) // deeper than a path can name, which stops root as well
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for range 20 {
		name := strings.Repeat("d", 250)
		if err := root.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := root.OpenRoot(name)
		if err != nil {
			t.Fatal(err)
		}
		root.Close()
		root = next
	}
	if err := root.WriteFile("work", []byte("work"), 0o600); err != nil {
		t.Fatal(err)
	}
	spec.GitDir = filepath.Join(t.TempDir(), "snapshot")
	if _, _, err := git.Snapshot(t.Context(), spec); !errors.Is(err, git.ErrRefused) {
		t.Errorf("work in a directory that cannot be opened: %v", err)
	}
}
