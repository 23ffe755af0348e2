package snapshot_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"interlock/internal/snapshot"
)

// TestTheCommandAndItsAnswer: what Argv says is what Reenter does, and the answer says what was
// found: something, nothing, or what could not be taken in.
func TestTheCommandAndItsAnswer(t *testing.T) {
	t.Parallel()
	r, tree, base := agentTree(t)
	answer := filepath.Join(t.TempDir(), "answer.json")
	do := func(parent string) (bool, error) {
		t.Helper()
		spec := snapshot.Spec{GitDir: filepath.Join(t.TempDir(), "git"), WorkTree: tree, Objects: r.Objects(), Parent: parent, Message: "m"}
		argv := snapshot.Argv("/bin/interlock", spec, answer)
		if code, handled := snapshot.Reenter(argv[1:]); !handled || code != 0 {
			t.Fatalf("exit %d, handled %t", code, handled)
		}
		return snapshot.ReadAnswer(answer)
	}
	if changed, err := do(base); changed || err != nil {
		t.Errorf("of nothing: %t, %v", changed, err)
	}
	write(t, filepath.Join(tree, "new"), "new\n")
	if changed, err := do(base); !changed || err != nil {
		t.Errorf("of a new file: %t, %v", changed, err)
	}
	if _, err := do(strings.Repeat("0", 39) + "1"); !errors.Is(err, snapshot.ErrContent) {
		t.Errorf("on a parent that is not there: %v", err)
	}
	must(t, os.WriteFile(answer, []byte("\x1b not JSON"), 0o600))
	if _, err := snapshot.ReadAnswer(answer); !errors.Is(err, snapshot.ErrContent) || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("of an answer that is none: %q", err)
	}
	must(t, os.Remove(answer))
	if _, err := snapshot.ReadAnswer(answer); !errors.Is(err, os.ErrNotExist) || errors.Is(err, snapshot.ErrContent) {
		t.Errorf("without an answer: %v", err)
	}
}

// TestReenterIsForItsOwnWordOnly: a command line of a person never starts a snapshot, and an answer
// that cannot be written is no success.
func TestReenterIsForItsOwnWordOnly(t *testing.T) {
	t.Parallel()
	r, tree, base := agentTree(t)
	spec := snapshot.Spec{GitDir: filepath.Join(t.TempDir(), "git"), WorkTree: tree, Objects: r.Objects(), Parent: base}
	argv := snapshot.Argv("x", spec, filepath.Join(t.TempDir(), "no", "such", "directory"))
	for _, args := range [][]string{nil, {"run"}, argv, argv[1 : len(argv)-1], append([]string{"run"}, argv[2:]...)} {
		if _, handled := snapshot.Reenter(args); handled {
			t.Errorf("%q is taken for a snapshot", args)
		}
	}
	if code, handled := snapshot.Reenter(argv[1:]); !handled || code != 1 {
		t.Errorf("exit %d, handled %t", code, handled)
	}
}

// TestTakeRefusesWhatItMustNotWorkWith: relative paths and names that are no full hash never reach git.
func TestTakeRefusesWhatItMustNotWorkWith(t *testing.T) {
	t.Parallel()
	r, tree, base := agentTree(t)
	fine := snapshot.Spec{GitDir: filepath.Join(t.TempDir(), "git"), WorkTree: tree, Objects: r.Objects(), Parent: base}
	for name, change := range map[string]func(*snapshot.Spec){
		"git directory": func(s *snapshot.Spec) { s.GitDir = "git" },
		"work tree":     func(s *snapshot.Spec) { s.WorkTree = "." },
		"objects":       func(s *snapshot.Spec) { s.Objects = "objects" },
		"parent":        func(s *snapshot.Spec) { s.Parent = "--help" },
	} {
		spec := fine
		change(&spec)
		if _, _, err := snapshot.Take(t.Context(), spec); err == nil || exists(fine.GitDir) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
