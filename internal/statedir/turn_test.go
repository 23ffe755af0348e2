package statedir

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// turnVariable has the test binary wait for a turn, say that it does, and keep it once it has it.
const turnVariable = "INTERLOCK_TEST_TURN"

func TestMain(m *testing.M) {
	if path := os.Getenv(turnVariable); path != "" {
		fmt.Println("waits")
		t := Turn{Path: path}
		if err := t.Take(nil); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("has it")
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

// other is a process that takes turns.
type other struct {
	*exec.Cmd
	said *bufio.Scanner
}

func start(t *testing.T, path string) other {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{turnVariable + "=" + path}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return other{cmd, bufio.NewScanner(out)}
}

func (o other) says(t *testing.T, want string) {
	t.Helper()
	if !o.said.Scan() || o.said.Text() != want {
		t.Fatalf("the other process says %q, %v, want %q", o.said.Text(), o.said.Err(), want)
	}
}

// stop stops the process, and waits until it is.
func (o other) stop(t *testing.T) {
	t.Helper()
	if err := o.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for !isStopped(o.Process.Pid) {
		time.Sleep(time.Millisecond)
	}
}

// take takes the turn, and fails the test when that takes for ever.
func take(t *testing.T, turn *Turn) error {
	t.Helper()
	stop := make(chan struct{})
	late := time.AfterFunc(100*time.Second, func() { close(stop) })
	defer late.Stop()
	return turn.Take(stop)
}

// TestStoppedHolder: who waits for a process that is stopped with the turn is told which one it is,
// and has the turn as soon as that one is ended.
func TestStoppedHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	o := start(t, path)
	o.says(t, "waits")
	o.says(t, "has it")
	o.stop(t)
	turn := Turn{Path: path}
	defer turn.Close()
	err := take(t, &turn)
	var stopped *StoppedError
	if !errors.As(err, &stopped) || stopped.PID != o.Process.Pid || !strings.Contains(err.Error(), fmt.Sprint("kill -CONT ", o.Process.Pid)) {
		t.Fatalf("process %d is stopped with the turn: %v", o.Process.Pid, err)
	}
	if err := o.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := take(t, &turn); err != nil {
		t.Errorf("after its end: %v", err)
	}
}

// TestStoppedInLine: a process that is stopped while it is the next in line keeps nobody from a turn
// that nobody has.
func TestStoppedInLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first := Turn{Path: path}
	if err := take(t, &first); err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	o := start(t, path)
	o.says(t, "waits")
	for { // until it stands behind the door
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		free, err := door(int(f.Fd()), unix.F_OFD_SETLK, unix.F_WRLCK)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		if !free {
			break
		}
		time.Sleep(time.Millisecond)
	}
	o.stop(t)
	first.Give()
	second := Turn{Path: path}
	defer second.Close()
	if err := take(t, &second); err != nil {
		t.Fatalf("beside a process that is stopped in line: %v", err)
	}
	second.Give()
	if err := o.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	o.says(t, "has it")
}

// TestWatch: only who is stopped at every look for long enough is named.
func TestWatch(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	o := start(t, path)
	o.says(t, "waits")
	o.says(t, "has it")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	held := func() {
		t.Helper()
		for holder(f) != o.Process.Pid { // the kernel's table can be read past it
			time.Sleep(time.Millisecond)
		}
	}
	held()
	var w watch
	now := time.Now()
	look := func(after time.Duration) error {
		held()
		return w.look(f, now.Add(after))
	}
	if err := errors.Join(look(0), look(longWait-1)); err != nil {
		t.Errorf("it runs: %v", err)
	}
	var named *StoppedError
	if err := look(longWait); !errors.As(err, &named) || named.PID != 0 || strings.Contains(err.Error(), "kill") {
		t.Errorf("it has it for very long: %v", err)
	}
	o.stop(t)
	if err := errors.Join(look(time.Hour), look(time.Hour+stoppedWait-1)); err != nil {
		t.Errorf("not yet: %v", err)
	}
	if err := look(time.Hour + stoppedWait); !errors.As(err, &named) || named.PID != o.Process.Pid {
		t.Errorf("it was stopped for long enough: %v", err)
	}
	w = watch{}
	if err := o.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for isStopped(o.Process.Pid) {
		time.Sleep(time.Millisecond)
	}
	if err := look(2 * time.Hour); err != nil {
		t.Errorf("it goes on: %v", err)
	}
	o.stop(t)
	if err := look(2*time.Hour + time.Second); err != nil {
		t.Errorf("it was stopped anew: %v", err)
	}
}
