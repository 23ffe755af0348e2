package inode

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestName: every path that leads to a directory gives its one name; another directory, also one
// that is made anew in the same place, has another.
func TestName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(path string) string {
		t.Helper()
		name, err := Name(path)
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	one, two, link := filepath.Join(dir, "one"), filepath.Join(dir, "two"), filepath.Join(dir, "link")
	for _, err := range []error{os.Mkdir(one, 0o700), os.Mkdir(two, 0o700), os.Symlink(one, link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	name := at(one)
	out, err := exec.Command("stat", "-c", "%W", one).Output() // seconds, 0 where no birth time is kept
	if born := strings.TrimSpace(string(out)); err != nil || born != "0" && !strings.Contains(name, "-"+born+".") {
		t.Errorf("the name is %q; born %s, %v", name, born, err)
	}
	if !regexp.MustCompile(`^\d+\.\d+-\d+(-\d+\.\d{9})?$`).MatchString(name) {
		t.Errorf("the name is %q", name)
	}
	moved := filepath.Join(dir, "moved")
	if at(link) != name || at(two) == name || at(dir) == name || os.Rename(one, moved) != nil || at(moved) != name {
		t.Errorf("%s: link %s, another %s, moved %s", name, at(link), at(two), at(moved))
	}
	// Where the filesystem keeps no birth time, the name is the beginning of the other.
	if plain, err := plain(moved); err != nil || name != plain && !strings.HasPrefix(name, plain+"-") {
		t.Errorf("plain %q, %v; with birth time %q", plain, err, name)
	}
	if err := os.Remove(moved); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(moved, 0o700); err != nil {
		t.Fatal(err)
	}
	if born := strings.Count(name, "-") == 2; born && at(moved) == name {
		t.Errorf("a directory that was made anew is called %s again", name)
	}
}

func TestNoName(t *testing.T) {
	t.Parallel()
	for _, path := range []string{filepath.Join(t.TempDir(), "none"), "a\x00b"} {
		if _, err := Name(path); err == nil || strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", path, err)
		}
		if _, err := plain(path); err == nil || strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", path, err)
		}
	}
	if _, err := Name(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
