package demo_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"interlock/internal/demo"
	"interlock/internal/git"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestMake: a demo is a whole repository with one commit and an agent that can be started; it has
// its name only when its issue was filed too, and the newest is the one that is found.
func TestMake(t *testing.T) {
	t.Parallel()
	g, err := git.Find(t.Context())
	must(t, err)
	dir := filepath.Join(t.TempDir(), "demos")
	if _, n, err := demo.Last(dir); n != 0 || err != nil {
		t.Errorf("before the first: %d, %v", n, err)
	}
	lost := errors.New("no issue")
	if _, err := demo.Make(t.Context(), g, dir, 1, func(string) error { return lost }); !errors.Is(err, lost) {
		t.Errorf("without its issue: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	filed := ""
	for n := 1; n <= 10; n += 9 { // 10 comes after 9, not after 1
		_, err := demo.Make(t.Context(), g, dir, n, func(repo string) error { filed = repo; return nil })
		must(t, err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "notes"), nil, 0o600))
	d, n, err := demo.Last(dir)
	if err != nil || n != 10 || d.Repo() != filepath.Join(dir, "10", "stats") || filed == "" || filed == d.Repo() {
		t.Fatalf("%d, %s, %v; filed in %q", n, d.Repo(), err, filed)
	}
	log, err := exec.Command("git", "-C", d.Repo(), "log", "--oneline", "main").Output()
	if info, serr := os.Stat(d.Agent()); err != nil || strings.Count(string(log), "\n") != 1 || serr != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%q, %v; agent %v", log, err, serr)
	}
	for _, file := range []string{"go.mod", "stats.go", "stats_test.go"} {
		if _, err := os.Stat(filepath.Join(d.Repo(), file)); err != nil {
			t.Error(err)
		}
	}
	if _, err := demo.Make(t.Context(), g, dir, 10, func(string) error { return nil }); err == nil {
		t.Error("a demo takes the place of another")
	}
}

// TestNoPlace: what is no directory is never written over.
func TestNoPlace(t *testing.T) {
	t.Parallel()
	g, err := git.Find(t.Context())
	must(t, err)
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, []byte("kept"), 0o600))
	if _, _, err := demo.Last(file); err == nil {
		t.Error("a file is taken for a directory of demos")
	}
	if _, err := demo.Make(t.Context(), g, file, 1, func(string) error { return nil }); err == nil {
		t.Error("a demo was made in a file")
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "kept" {
		t.Errorf("%q, %v", text, err)
	}
}
