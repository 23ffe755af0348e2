package shell_test

import (
	"os"
	"path/filepath"
	"testing"

	"interlock/internal/shell"
)

// TestLook: a program is called missing only where that is certain.
func TestLook(t *testing.T) {
	t.Parallel()
	dir, empty := t.TempDir(), t.TempDir()
	for name, mode := range map[string]os.FileMode{"tool": 0o755, "text": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := empty + ":" + dir
	for _, c := range []struct {
		line, path, word string
		found            shell.Found
	}{
		{"tool -x", path, "tool", shell.There},
		{"'tool' -x", path, "tool", shell.There},
		{"tool", empty, "tool", shell.Missing},
		{"tool;true", empty, "tool", shell.Missing},
		{"text", path, "text", shell.Missing},
		{"folder", path, "folder", shell.Missing},
		{"nosuch", path, "nosuch", shell.Missing},
		{"nosuch", path + ":bin", "nosuch", shell.Unproved}, // bin is below wherever it is run
		{"nosuch", "", "nosuch", shell.Unproved},
		{"true", empty, "true", shell.There}, // the shell's own
		{"exec nosuch", empty, "exec", shell.There},
		{dir + "/tool a", empty, dir + "/tool", shell.There},
		{dir + "/nosuch", path, dir + "/nosuch", shell.Missing},
		{"./tool", path, "./tool", shell.Relative},
		{"sub/tool", path, "sub/tool", shell.Relative},
		{"~/tool", path, "", shell.Unproved},
		{"$TOOL", path, "", shell.Unproved},
		{"A=1 nosuch", path, "", shell.Unproved},
		{"if nosuch; then true; fi", path, "", shell.Unproved},
		{"(nosuch)", path, "", shell.Unproved},
		{"! nosuch", path, "", shell.Unproved},
		{"", path, "", shell.Unproved},
		{"nosuch() { true; }; nosuch", path, "", shell.Unproved},
	} {
		if word, found := shell.Look(c.line, c.path); word != c.word || found != c.found {
			t.Errorf("%q in %q: %q, %d; wanted is %q, %d", c.line, c.path, word, found, c.word, c.found)
		}
	}
}

// FuzzFirst: a first word lies in its line, whatever the line is.
func FuzzFirst(f *testing.F) {
	for _, s := range []string{"a b", "'a b' c", `"a\"b"`, "~/x y", "A=1 b", "1>x", "\\\nx", "'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		w := shell.First(line)
		if w.Start < 0 || w.End < w.Start || w.End > len(line) {
			t.Fatalf("%q: %+v", line, w)
		}
		if w.Kind == shell.Plain && line[w.Start:w.End] != w.Text {
			t.Fatalf("%q: a plain word that is not there: %+v", line, w)
		}
	})
}
