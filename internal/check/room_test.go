package check_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
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

// TestRemoveAsOrdinaryUser: root passes every mode, so the thread takes another user's rights.
func TestRemoveAsOrdinaryUser(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "interlock-remove-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		if os.Geteuid() == 0 {
			if err := syscall.Setfsuid(65534); err != nil {
				done <- err
				return
			}
		}
		done <- removeReadOnly(filepath.Join(dir, "room"))
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func removeReadOnly(room string) error {
	deep := filepath.Join(room, "a", "b")
	if err := os.MkdirAll(filepath.Join(deep, "c"), 0o700); err != nil {
		return err
	}
	if err := os.Symlink("/usr", filepath.Join(deep, "link")); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(deep, "f"), nil, 0o400); err != nil {
		return err
	}
	for _, d := range []string{filepath.Join(deep, "c"), deep, filepath.Join(room, "a"), room} {
		if err := os.Chmod(d, 0o100); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(room); err == nil {
		return errors.New("the plain way removes it, so nothing is tried here")
	}
	if err := check.Remove(room); err != nil {
		return err
	}
	if _, err := os.Lstat(room); !os.IsNotExist(err) {
		return fmt.Errorf("the room is still there: %w", err)
	}
	return nil
}

// TestDeepTreesAreRemoved: what is deeper than any path can name, and closed, is taken apart from the top.
func TestDeepTreesAreRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, err := exec.Command("perl", "-e", `chdir $ARGV[0]; for (1 .. 3000) { mkdir "d" and mkdir "e" and chdir "d" or die } open F, ">f"; chmod 0, "../e"`, dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := check.Flatten(dir); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
