package snapshot_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"interlock/internal/git"
	"interlock/internal/snapshot"
)

// TestSnapshotLeavesNothingOutInSilence: a directory that cannot be opened, and a file too large.
func TestSnapshotLeavesNothingOutInSilence(t *testing.T) {
	t.Parallel()
	r, tree, base := agentTree(t)
	spec := snapshot.Spec{GitDir: filepath.Join(t.TempDir(), "snapshot"), WorkTree: tree, Objects: r.Objects(), Parent: base,
		Message: "x", MaxFile: 1 << 20}
	write(t, filepath.Join(tree, "hole"), "")
	if err := os.Truncate(filepath.Join(tree, "hole"), 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, _, err := snapshot.Take(t.Context(), spec); !errors.Is(err, git.ErrTooBig) || !strings.Contains(err.Error(), "hole") {
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
	if _, _, err := snapshot.Take(t.Context(), spec); !errors.Is(err, git.ErrRefused) {
		t.Errorf("work in a directory that cannot be opened: %v", err)
	}
}
