package git_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"interlock/internal/git"
)

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
