package sqlite_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"interlock/internal/store"
	"interlock/internal/store/sqlite"
)

// refused wants Open to fail with want, to name the directory and a next step, and to leave the
// directory as it was.
func refused(t *testing.T, dir string, opts sqlite.Options, want error, words ...string) {
	t.Helper()
	before := tree(t, dir)
	s, err := sqlite.Open(t.Context(), dir, opts)
	if err == nil {
		s.Close()
		t.Fatalf("%s was opened", dir)
	}
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
	for _, w := range append(words, filepath.Base(dir)) {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	if after := tree(t, dir); after != before {
		t.Errorf("the refusal has changed\n%s\nto\n%s", before, after)
	}
}

// tree is what a directory holds, but for the lock file, which says nothing.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.Name() == sqlite.LockName {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b.WriteString(path + " " + info.Mode().String() + "\n")
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "\t%d bytes, %x\n", len(content), sha256.Sum256(content))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func TestStateIsPrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := open(t, dir, nil)
	if err := s.Submit(t.Context(), func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{
		dir: 0o700, filepath.Dir(dir): 0o700,
		filepath.Join(dir, sqlite.DatabaseName): 0o600, filepath.Join(dir, sqlite.DatabaseName+"-wal"): 0o600,
		filepath.Join(dir, sqlite.DatabaseName+"-shm"): 0o600, filepath.Join(dir, sqlite.LockName): 0o600,
	} {
		if got := mode(t, path); got != want {
			t.Errorf("%s has mode %04o, want %04o", path, got, want)
		}
	}
}

// TestStateIsMadePrivate: an empty directory, or a state directory that was opened to others, is
// made private again; a directory with other files is not touched.
func TestStateIsMadePrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	must(t, os.Mkdir(dir, 0o755))
	must(t, os.Chmod(dir, 0o755))
	must(t, open(t, dir, nil).Close())
	if got := mode(t, dir); got != 0o700 {
		t.Errorf("an empty directory was left with mode %04o", got)
	}
	must(t, os.Chmod(dir, 0o750))
	must(t, os.Chmod(filepath.Join(dir, sqlite.DatabaseName), 0o644))
	must(t, open(t, dir, nil).Close())
	if got := mode(t, dir); got != 0o700 {
		t.Errorf("a state directory was left with mode %04o", got)
	}
	if got := mode(t, filepath.Join(dir, sqlite.DatabaseName)); got != 0o600 {
		t.Errorf("the database was left with mode %04o", got)
	}

	project := filepath.Join(t.TempDir(), "project")
	must(t, os.Mkdir(project, 0o700))
	must(t, os.WriteFile(filepath.Join(project, "file"), nil, 0o600))
	must(t, os.Chmod(project, 0o755))
	refused(t, project, sqlite.Options{}, store.ErrUnfit, "0755", "--state-dir")
	must(t, os.Chmod(project, 0o700))
	open(t, project, nil) // private already: other files do not matter
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestForeignDirectory(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory to somebody else")
	}
	dir := t.TempDir()
	must(t, os.Chown(dir, 12345, 12345))
	refused(t, dir, sqlite.Options{}, store.ErrUnfit, "12345", "--state-dir")
}

func TestNetworkFilesystems(t *testing.T) {
	t.Parallel()
	for magic, name := range map[int64]string{
		0x6969: "NFS", 0x517b: "SMB", 0xff534d42: "CIFS", 0xfe534d42: "SMB2", 0x65735546: "FUSE", 0x01021997: "9P",
		0x00c36400: "Ceph", 0x5346414f: "AFS", 0x6b414653: "AFS", 0x0bd00bd0: "Lustre",
		-0xacb2be: "CIFS", // as a signed 32-bit field gives it
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			dir := filepath.Join(parent, "not", "yet", "there")
			opts := sqlite.Options{Statfs: func(path string) (int64, error) {
				if path != parent {
					return 0, fs.ErrNotExist
				}
				return magic, nil
			}}
			refused(t, dir, opts, store.ErrUnfit, " "+name+",", "--state-dir", "local")
			if _, err := os.Stat(filepath.Join(parent, "not")); !errors.Is(err, fs.ErrNotExist) {
				t.Error("the refused directory was made")
			}
		})
	}
	t.Run("cannot be told", func(t *testing.T) {
		t.Parallel()
		opts := sqlite.Options{Statfs: func(string) (int64, error) { return 0, syscall.EACCES }}
		refused(t, filepath.Join(t.TempDir(), "state"), opts, store.ErrUnfit, "--state-dir")
	})
}

func TestOverlayWarns(t *testing.T) {
	t.Parallel()
	for magic, want := range map[int64]int{0x794c7630: 1, 0xef53: 0} {
		dir := filepath.Join(t.TempDir(), "state")
		s, err := sqlite.Open(t.Context(), dir, sqlite.Options{Statfs: func(string) (int64, error) { return magic, nil }})
		must(t, err)
		if w := s.Warnings(); len(w) != want || want == 1 && !strings.Contains(w[0], dir) {
			t.Errorf("%#x: warnings %q", magic, w)
		}
		must(t, s.Close())
	}
}

// TestRealFilesystemIsAsked: the real statfs is used when none is given.
func TestRealFilesystemIsAsked(t *testing.T) {
	t.Parallel()
	if s, err := sqlite.Open(t.Context(), "/proc/interlock-state", sqlite.Options{}); !errors.Is(err, store.ErrUnfit) {
		t.Errorf("a state directory in /proc: %v, %v", s, err)
	}
}

func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	must(t, open(t, dir, nil).Close())
	empty := filepath.Join(t.TempDir(), "empty")
	must(t, os.Mkdir(empty, 0o700))
	for _, d := range []string{dir, empty} {
		if os.Geteuid() == 0 {
			if err := syscall.Mount(d, d, "", syscall.MS_BIND, ""); err != nil {
				t.Skipf("a read-only mount cannot be made here: %v", err)
			}
			t.Cleanup(func() { must(t, syscall.Unmount(d, syscall.MNT_DETACH)) })
			must(t, syscall.Mount("", d, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
		} else {
			must(t, os.Chmod(d, 0o500))
			t.Cleanup(func() { must(t, os.Chmod(d, 0o700)) })
		}
		refused(t, d, sqlite.Options{}, store.ErrUnfit, "cannot be written", "--state-dir")
	}
}

// TestTimeNamespace: a process whose boot-time clock may be shifted is refused, until the next boot.
func TestTimeNamespace(t *testing.T) {
	t.Parallel()
	dir, clock := filepath.Join(t.TempDir(), "state"), newClock(t)
	in := func(ns string) sqlite.Options {
		return sqlite.Options{Clock: clock, TimeNamespace: func() (string, error) { return ns, nil }}
	}
	opens := func(ns string) {
		t.Helper()
		s, err := sqlite.Open(t.Context(), dir, in(ns))
		must(t, err)
		must(t, s.Close())
	}
	opens("time:[1]")
	refused(t, dir, in("time:[2]"), store.ErrUnfit, "time:[1]", "time:[2]", "--state-dir")
	opens("time:[1]")
	clock.Reboot()
	opens("time:[2]")
	refused(t, dir, in("time:[1]"), store.ErrUnfit)
	refused(t, dir, sqlite.Options{Clock: clock, TimeNamespace: func() (string, error) { return "", fs.ErrPermission }}, store.ErrUnfit)
}

const openVariable = "SQLITE_TEST_OPEN"

// openAndTell is what a process that was started with openVariable does.
func openAndTell(dir string) int {
	s, err := sqlite.Open(context.Background(), dir, sqlite.Options{})
	switch {
	case errors.Is(err, store.ErrUnfit):
		os.Stdout.WriteString("unfit: " + err.Error())
	case err != nil:
		os.Stdout.WriteString("error: " + err.Error())
	default:
		os.Stdout.WriteString("opened")
		s.Close()
	}
	return 0
}

// TestUnsharedTimeNamespace starts a real process in another time namespace.
func TestUnsharedTimeNamespace(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	must(t, err)
	dir := filepath.Join(t.TempDir(), "state")
	must(t, open(t, dir, nil).Close())
	try := func(argv ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), openVariable+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		must(t, err)
		return string(out)
	}
	if got := try(self); got != "opened" {
		t.Errorf("a process of the same namespace: %s", got)
	}
	unshare := []string{"unshare", "-T", "--boottime", "1000000"}
	if os.Geteuid() != 0 {
		unshare = slices.Insert(unshare, 1, "-r")
	}
	if out, err := exec.CommandContext(t.Context(), unshare[0], append(unshare[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("no other time namespace can be made here: %v: %s", err, out)
	}
	if got := try(append(unshare, self)...); !strings.HasPrefix(got, "unfit: ") || !strings.Contains(got, "time:[") {
		t.Errorf("a process of another namespace: %s", got)
	}
	if got := try(self); got != "opened" {
		t.Errorf("the same namespace again: %s", got)
	}
}
