package check_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"interlock/internal/run"
	"interlock/internal/sandbox"
)

// TestHomeOfTheBase: a check begins with what the same check left in its home at the base, and with
// nothing that code of a commit has written: neither an earlier one nor an earlier attempt's.
func TestHomeOfTheBase(t *testing.T) {
	t.Parallel()
	// Each run says what it finds, then leaves its own mark, an executable file with an odd path.
	script := func(who string) string {
		return "#!/bin/sh\necho \"" + who + " finds: $(cd \"$HOME\" && find . -name 'by-*' | sort | tr '\\n' ' ')\"\n" +
			"mkdir -p \"$HOME/.cache/deep\" \"$HOME/$(printf '\\377')\"; echo x > \"$HOME/.cache/deep/by-" + who + "\"; chmod 700 \"$HOME/.cache/deep/by-" + who + "\"\n" +
			strings.TrimPrefix(pytestThree, "#!/bin/sh\n")
	}
	for _, level := range []sandbox.Level{sandbox.None, sandbox.Full} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			need(t, level)
			f, req := change(t, map[string]string{"t.sh*": script("base")}, map[string]string{"t.sh*": script("head")}, "./t.sh; : pytest")
			req.Level = level
			for range 2 {
				if v := f.verify(t, req); !v.Passed {
					t.Fatalf("verdict %+v\n%s", v, f.log(t))
				}
			}
			log := f.log(t)
			if strings.Count(log, "base finds: \n") != 1 || strings.Count(log, "head finds: ./.cache/deep/by-base \n") != 2 {
				t.Errorf("the homes were not as they should be:\n%s", log)
			}
			kept, err := filepath.Glob(filepath.Join(req.Compare.Dir, "homes", "*", ".cache", "deep", "*"))
			if err != nil || len(kept) != 1 || filepath.Base(kept[0]) != "by-base" {
				t.Fatalf("kept %q, %v", kept, err)
			}
			if info, err := os.Stat(kept[0]); err != nil || info.Mode()&0o100 == 0 {
				t.Errorf("%v, %v: no program any more", info, err)
			}
		})
	}
}

// TestHomesAreBounded: of many bases only the newest homes are kept, and a home that cannot be copied
// is as good as none.
func TestHomesAreBounded(t *testing.T) {
	t.Parallel()
	f, req := change(t, map[string]string{"t.sh*": pytestThree}, map[string]string{"t.sh*": pytestThree}, "./t.sh; : pytest")
	homes := filepath.Join(req.Compare.Dir, "homes")
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
		if err := os.MkdirAll(filepath.Join(homes, name, "sub"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if v := f.verify(t, req); !v.Passed {
		t.Fatalf("verdict %+v", v)
	}
	left, err := os.ReadDir(homes)
	if err != nil || len(left) != 8 {
		t.Fatalf("kept %v, %v", left, err)
	}
	for _, e := range left { // a file where a directory should be
		if err := os.RemoveAll(filepath.Join(homes, e.Name())); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(homes, e.Name()), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if v := f.verify(t, req); !v.Passed || v.Head != (run.Commit{Hash: f.head.Hash, Tree: f.head.Tree}) {
		t.Errorf("with a home that cannot be read: %+v", v)
	}
}

// TestHomesThatAreNotKept: a home that could not be copied as it is, and one of a check that did not
// end by itself. Checks of the commit begin with an empty one then.
func TestHomesThatAreNotKept(t *testing.T) {
	t.Parallel()
	for name, leaves := range map[string]string{
		"a link": "ln -s /bin/sh \"$HOME/tool\"", "a pipe": "mkfifo \"$HOME/pipe\"",
		"too deep": "d=\"$HOME\"; for i in $(seq 80); do d=$d/d; done; mkdir -p \"$d\"",
		"killed":   "touch \"$HOME/half\"; kill -9 $$",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			says := "echo \"finds: $(ls \"$HOME\")\"\n" + strings.TrimPrefix(pytestThree, "#!/bin/sh\n")
			f, req := change(t, map[string]string{"t.sh*": "#!/bin/sh\n" + leaves + "\n" + says}, map[string]string{"t.sh*": "#!/bin/sh\n" + says}, "exec ./t.sh; : pytest")
			if v := f.verify(t, req); !v.Passed || !strings.HasSuffix(strings.TrimSpace(f.log(t)), "s ===") || !strings.Contains(f.log(t), "finds: \n") {
				t.Errorf("verdict %+v\n%s", v, f.log(t))
			}
			if kept, err := os.ReadDir(filepath.Join(req.Compare.Dir, "homes")); err == nil && len(kept) != 0 {
				t.Errorf("kept %v", kept)
			}
		})
	}
}
