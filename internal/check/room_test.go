package check_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"interlock/internal/check"
	"interlock/internal/sandbox"
)

func TestRoomOfADeadCheck(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	room, err := sandbox.NewRoom(filepath.Join(f.base, "room", "1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{room.Tree(), room.Home()} {
		if err := os.WriteFile(filepath.Join(dir, "left"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if v := f.verify(t, f.request(sandbox.None, `test ! -e left && test ! -e "$HOME/left"`)); !v.Passed {
		t.Errorf("verdict %+v", v)
	}
}

func TestRoomOfAnother(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	kept := filepath.Join(f.base, "room", "thesis.txt")
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := check.Run(t.Context(), f.request(sandbox.None, "true")); !errors.Is(err, check.ErrRoom) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("what was in the room is gone: %v", err)
	}
}

// TestRoomIsRemovedWhole: also what a check made read-only, as Go does with its module cache.
func TestRoomIsRemovedWhole(t *testing.T) {
	t.Parallel()
	atLevels(t, func(t *testing.T, level sandbox.Level) {
		f := newFixture(t, nil)
		outside := filepath.Join(f.base, "outside")
		if err := os.Mkdir(outside, 0o755); err != nil {
			t.Fatal(err)
		}
		v := f.verify(t, f.request(level, `set -e
for d in . "$HOME" "$TMPDIR"; do
	mkdir -p "$d/x/y/z"; touch "$d/x/y/z/f"; ln -s `+outside+` "$d/x/y/link"; chmod 000 "$d/x/y/z"; chmod 500 "$d/x/y" "$d/x"
done
chmod 500 "$HOME" .`))
		if !v.Passed {
			t.Errorf("verdict %+v", v)
		}
		if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("outside: %v, %v", info, err)
		}
	})
}
