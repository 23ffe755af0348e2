package floor_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"interlock/internal/bench/floor"
)

// TestGroup: whatever was acknowledged is in the file, once and whole; and a file that cannot be written
// is an error for each that waits.
func TestGroup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g, err := floor.OpenGroup(dir)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for n := range 64 {
		wg.Go(func() {
			for i := range 20 {
				if err := g.Append(fmt.Appendf(nil, "%d-%d\n", n, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	slices.SortFunc(lines, bytes.Compare)
	if n := len(slices.CompactFunc(lines, bytes.Equal)); n != 64*20 {
		t.Errorf("%d records, want %d", n, 64*20)
	}
	if _, err := floor.OpenGroup(dir); err == nil {
		t.Error("a log that is there was opened as a new one")
	}
}

func TestAppendFails(t *testing.T) {
	t.Parallel()
	l, err := floor.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append([]byte("x")); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Append([]byte("x")); err == nil {
		t.Error("a closed log took a record")
	}
}
