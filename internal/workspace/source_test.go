package workspace_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"interlock/internal/git"
	"interlock/internal/workspace"
)

// TestCheckSource: a git directory that can be read without waiting passes, with whatever hooks and
// links within the tree; what leads out of it, or to what is no file, does not.
func TestCheckSource(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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
		tree := t.TempDir()
		if out, err := exec.Command("git", "init", "-q", tree).CombinedOutput(); err != nil {
			t.Fatalf("git init: %v\n%s", err, out)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(tree, c.at)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := c.make(filepath.Join(tree, c.at)); err != nil {
			t.Fatal(err)
		}
		err := workspace.CheckSource(tree)
		if errors.Is(err, git.ErrRefused) != c.refused || err != nil && !c.refused {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.refused && !strings.Contains(err.Error(), c.at) {
			t.Errorf("%s: the error does not say where: %v", c.name, err)
		}
	}
}
