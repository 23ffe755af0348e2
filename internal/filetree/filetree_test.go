package filetree_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"interlock/internal/filetree"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func look(t *testing.T, dir string) filetree.Survey {
	t.Helper()
	s, err := filetree.Look(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestDigestSeesEachChange: whatever is done to a tree, its digest is another one, also where the
// times that programs can set are put back.
func TestDigestSeesEachChange(t *testing.T) {
	t.Parallel()
	past := time.Unix(1, 0)
	for name, change := range map[string]func(dir string) error{
		"content of the same length": func(dir string) error {
			f := filepath.Join(dir, "a", "f")
			info, err := os.Stat(f)
			return errors.Join(err, os.WriteFile(f, []byte("two"), 0o600), os.Chtimes(f, past, info.ModTime()))
		},
		"a new file":  func(dir string) error { return os.WriteFile(filepath.Join(dir, "a", "new"), nil, 0o600) },
		"a file less": func(dir string) error { return os.Remove(filepath.Join(dir, "a", "f")) },
		"a name":      func(dir string) error { return os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")) },
		"a mode":      func(dir string) error { return os.Chmod(filepath.Join(dir, "a", "f"), 0o700) },
		"a link's place": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "l")), os.Symlink("/usr", filepath.Join(dir, "l")))
		},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "a", "f"), "one")
		if err := os.Symlink("/etc", filepath.Join(dir, "l")); err != nil {
			t.Fatal(err)
		}
		before := look(t, dir)
		if again := look(t, dir); again != before {
			t.Errorf("nothing was changed: %+v, %+v", before, again)
		}
		time.Sleep(20 * time.Millisecond) // the kernel's clock for files moves in steps
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		if after := look(t, dir); after.Digest == before.Digest {
			t.Errorf("%s: not seen", name)
		}
	}
}

// TestLookStaysInside: a link is one entry, whatever it leads to, and all entries are told.
func TestLookStaysInside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "d", "f"), strings.Repeat("x", 100_000))
	if err := os.Symlink("/", filepath.Join(dir, "d", "all")); err != nil {
		t.Fatal(err)
	}
	var names []string
	s, err := filetree.Look(t.Context(), dir, func(name string, _ fs.FileInfo) { names = append(names, name) })
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"d", "d/all", "d/f"}; !slices.Equal(names, want) || s.Files != 4 {
		t.Errorf("%q, %d entries; want %q and the top", names, s.Files, want)
	}
	if s.Bytes < 100_000 || s.Bytes > 1<<20 {
		t.Errorf("%d bytes", s.Bytes)
	}
}

// deep makes directories in directories, deeper than any path can name, with a closed one beside each.
func deep(t *testing.T, dir string) {
	t.Helper()
	out, err := exec.Command("perl", "-e", `chdir $ARGV[0]; for (1 .. 3000) { mkdir "d" and mkdir "e" and chdir "d" or die } open F, ">f"; chmod 0, "../e"`, dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestTooDeepToMeasure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deep(t, dir)
	if _, err := filetree.Look(t.Context(), dir, nil); !errors.Is(err, filetree.ErrDeep) {
		t.Errorf("error %v", err)
	}
	n, most := 0, 0 // descriptors at once
	if err := filetree.Remove(t.Context(), filepath.Join(dir, "d"), func() {
		if n++; n%100 == 1 {
			open, _ := os.ReadDir("/proc/self/fd")
			most = max(most, len(open))
		}
	}); err != nil {
		t.Fatal(err)
	}
	if most < 100 || most > 1000 {
		t.Errorf("%d descriptors were open at once, for 3000 directories in each other", most)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "e" {
		t.Errorf("left: %v, %v", left, err)
	}
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
	if _, err := os.Stat("/usr/bin"); err != nil {
		t.Errorf("what the link led to: %v", err)
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
	if err := filetree.Remove(context.Background(), room, nil); err != nil {
		return err
	}
	if _, err := os.Lstat(room); !os.IsNotExist(err) {
		return fmt.Errorf("the room is still there: %w", err)
	}
	return nil
}

// TestRemoveGoesOn: a removal that was stopped midway is finished by the next, which finds less to do.
func TestRemoveGoesOn(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tree")
	for i := range 200 {
		write(t, filepath.Join(dir, fmt.Sprint(i%10), fmt.Sprint(i)), "x")
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := filetree.Remove(ctx, dir, func() {
		if n++; n == 50 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || n != 50 {
		t.Fatalf("%d were removed, error %v", n, err)
	}
	n = 0
	if err := filetree.Remove(t.Context(), dir, func() { n++ }); err != nil || n != 211-50 {
		t.Errorf("the rest: %d, %v", n, err)
	}
	if err := filetree.Remove(t.Context(), dir, nil); err != nil {
		t.Errorf("of nothing: %v", err)
	}
}
