package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatIsNotThereIsNamed: a hierarchy that this process is not in, or that is not mounted, is an
// error that says which; it is never taken for the root of another.
func TestWhatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	if dir, err := own("nosuch", "cgroup"); err == nil || !strings.Contains(err.Error(), "cgroup nosuch") {
		t.Errorf("%q, %v", dir, err)
	}
	if _, point, err := mounted("nosuch", "cgroup"); err == nil || !strings.Contains(err.Error(), "cgroup nosuch") {
		t.Errorf("%q, %v", point, err)
	}
	if dir, err := findFirst("nosuch", "x"); err == nil {
		t.Errorf("%q", dir)
	}
	if got := enabled(t.TempDir()); got != nil {
		t.Errorf("%q", got)
	}
	if got := unescape(`/a\040b\134c\011d`); got != "/a b\\c\td" {
		t.Errorf("%q", got)
	}
	for in, want := range map[string]string{"": "other", "one": "one"} {
		if got := orElse(in, "other"); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

// TestMemoryOfVersion2: the limit leaves no room in swap, and the group ends as a whole; where the
// kernel has no accounting of swap that is no fault, and a limit that cannot be set is one.
func TestMemoryOfVersion2(t *testing.T) {
	t.Parallel()
	g := Group{Main: t.TempDir()}
	if err := g.boundMemory(1 << 20); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file for the limit: %v", err)
	}
	want := map[string]string{"memory.max": "1048576", "memory.oom.group": "1"}
	for name := range want {
		if err := os.WriteFile(filepath.Join(g.Main, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func() {
		t.Helper()
		if err := g.boundMemory(1 << 20); err != nil {
			t.Error(err)
		}
		for name, text := range want {
			if got, err := os.ReadFile(filepath.Join(g.Main, name)); err != nil || string(got) != text {
				t.Errorf("%s holds %q, %v; want %s", name, got, err, text)
			}
		}
	}
	check()
	want["memory.swap.max"] = "0"
	if err := os.WriteFile(filepath.Join(g.Main, "memory.swap.max"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	check()
}
