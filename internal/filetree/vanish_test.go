package filetree_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"interlock/internal/filetree"
)

// tree makes a directory with a, b and c below it, each a directory with a file.
func tree(t *testing.T) string {
	t.Helper()
	top := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		if err := errors.Join(os.Mkdir(filepath.Join(top, name), 0o700), os.WriteFile(filepath.Join(top, name, "file"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

// TestLookAtWhatChanges: a tree that is not there, that changes under the look, or whose look is ended, is
// an error: it is never taken for what was seen of it so far.
func TestLookAtWhatChanges(t *testing.T) {
	t.Parallel()
	if _, err := filetree.Look(t.Context(), filepath.Join(t.TempDir(), "absent"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a tree that is not there: %v", err)
	}
	for _, gone := range []string{"b", "a"} { // one that is listed, and the one that is just being opened
		top := tree(t)
		_, err := filetree.Look(t.Context(), top, func(name string, _ fs.FileInfo) {
			if name == "a" {
				if err := os.RemoveAll(filepath.Join(top, gone)); err != nil {
					t.Error(err)
				}
			}
		})
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s vanishes: %v", gone, err)
		}
	}
	ctx, end := context.WithCancel(t.Context())
	seen := 0
	_, err := filetree.Look(ctx, tree(t), func(string, fs.FileInfo) { seen++; end() })
	if !errors.Is(err, context.Canceled) || seen != 1 {
		t.Errorf("ended after %d: %v", seen, err)
	}
}

// TestRemoveWhatVanishes: what somebody else removes meanwhile, or has removed, is removed.
func TestRemoveWhatVanishes(t *testing.T) {
	t.Parallel()
	absent := filepath.Join(t.TempDir(), "absent")
	for _, dir := range []string{absent, filepath.Join(absent, "below")} {
		if err := filetree.Remove(t.Context(), dir, nil); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	top := tree(t)
	if err := filetree.Remove(t.Context(), top, func() {
		for _, name := range []string{"a", "b", "c"} {
			if err := os.RemoveAll(filepath.Join(top, name)); err != nil {
				t.Error(err)
			}
		}
	}); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(top); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
}
