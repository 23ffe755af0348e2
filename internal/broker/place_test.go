package broker_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"interlock/internal/broker"
)

func at(path string) broker.Options {
	return broker.Options{Path: path, Budgets: long, Slots: 1, Handle: echo}
}

// refuses demands that no socket is made, with these words, and that what is there is left alone.
func refuses(t *testing.T, path string, words ...string) {
	t.Helper()
	before, _ := os.Lstat(path)
	s, err := broker.Serve(at(path))
	if err == nil {
		_ = s.Close(t.Context())
		t.Fatalf("a socket was made at %s", path)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v does not say %q", err, w)
		}
	}
	if after, _ := os.Lstat(path); before != nil && (after == nil || !os.SameFile(before, after)) {
		t.Errorf("what was at %s is gone", path)
	}
}

// TestBrokerPlace: one server for a place, and only a socket that a dead server has left is replaced.
func TestBrokerPlace(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	s, err := broker.Serve(at(path))
	if err != nil {
		t.Fatal(err)
	}
	refuses(t, path, path, "another process serves it")
	// The lock is removed by hand: still one.
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	refuses(t, path, "was not made by Interlock")
	if r, err := call(t, path, "a"); err != nil || !r.OK {
		t.Errorf("the first one: %+v, %v", r, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refuses(t, path, "was not made by Interlock")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	refuses(t, path, "was not made by Interlock")
}

// TestBrokerClosesItsOwn: at its end a server removes its own socket, and no other at its path.
func TestBrokerClosesItsOwn(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	s, err := broker.Serve(at(path))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte("another's"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "another's" {
		t.Errorf("%q, %v", b, err)
	}
}

// placeVariable has the test binary serve a socket until it is killed.
const placeVariable = "INTERLOCK_TEST_BROKER"

func init() {
	if path := os.Getenv(placeVariable); path != "" {
		if _, err := broker.Serve(at(path)); err != nil {
			panic(err)
		}
		println("serves")
		select {}
	}
}

// TestBrokerStale: the socket of a server that was killed is replaced.
func TestBrokerStale(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), placeVariable+"="+path)
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 100)
	n, _ := out.Read(said)
	if string(said[:n]) != "serves\n" {
		t.Errorf("the other one says %q", said[:n])
	}
	refuses(t, path, "another process serves it")
	if r, err := call(t, path, "a"); err != nil || !r.OK {
		t.Errorf("%+v, %v", r, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("nothing was left: %v", err)
	}
	s, err := broker.Serve(at(path))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := call(t, path, "b"); err != nil || !r.OK {
		t.Errorf("%+v, %v", r, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestBrokerDirectory: a place that others could use, or that is too long, is none.
func TestBrokerDirectory(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	dir := filepath.Dir(path)
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	refuses(t, path, dir, "chmod 700")
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	refuses(t, filepath.Join(dir, strings.Repeat("x", 107)), "shorter")
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refuses(t, filepath.Join(dir, "file", "s"), "directory")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	refuses(t, filepath.Join(link, "s"), "is not one")
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, 12345, -1); err != nil {
			t.Fatal(err)
		}
		refuses(t, path, "12345")
	}
	if _, err := broker.Serve(broker.Options{Path: path}); err == nil {
		t.Error("a server without slots")
	}
	var taken *broker.TakenError
	if _, err := broker.Serve(at(path)); os.Geteuid() == 0 && (!errors.As(err, &taken) || errors.Is(err, syscall.ENOENT)) {
		t.Errorf("%v", err)
	}
}
