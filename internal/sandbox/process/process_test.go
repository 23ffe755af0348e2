package process_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"interlock/internal/sandbox/process"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAlive(t *testing.T) {
	t.Parallel()
	self, err := process.Self()
	must(t, err)
	cmd := exec.Command("/bin/true")
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Wait() })
	zombie := process.ID{PID: cmd.Process.Pid, Boot: self.Boot}
	for deadline, zombied := time.Now().Add(time.Minute), false; !zombied; {
		if time.Now().After(deadline) {
			t.Fatal("it does not become a zombie")
		}
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		must(t, err)
		f := strings.Fields(string(b)[strings.LastIndex(string(b), ")")+2:])
		zombie.Start, err = strconv.ParseUint(f[19], 10, 64)
		must(t, err)
		zombied = f[0] == "Z"
		time.Sleep(time.Millisecond)
	}
	for name, c := range map[string]struct {
		p     process.ID
		alive bool
		fails bool
	}{
		"self":       {self, true, false},
		"later":      {process.ID{PID: self.PID, Start: self.Start + 1, Boot: self.Boot}, false, false},
		"other boot": {process.ID{PID: self.PID, Start: self.Start, Boot: "x"}, false, false},
		"no pid":     {process.ID{PID: 1 << 22, Start: 1, Boot: self.Boot}, false, false},
		"zombie":     {zombie, false, false},
		"empty":      {process.ID{}, false, true},
		"no boot":    {process.ID{PID: self.PID, Start: self.Start}, false, true},
	} {
		if alive, err := c.p.Alive(); alive != c.alive || (err != nil) != c.fails {
			t.Errorf("%s: %v %v", name, alive, err)
		}
	}
}

// TestSignalReachesExactlyOne: a signal goes to the very process that was named, never to another
// that has its pid now; what is gone is no error.
func TestSignalReachesExactlyOne(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/bin/sleep", "600")
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	id, err := process.Of(cmd.Process.Pid)
	must(t, err)
	later := id
	later.Start++
	must(t, later.Signal(syscall.SIGKILL))
	if alive, err := id.Alive(); err != nil || !alive {
		t.Fatalf("another process than the one that was named was killed: %v", err)
	}
	must(t, id.Signal(syscall.SIGKILL))
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
	must(t, id.Signal(syscall.SIGKILL))
	if alive, err := id.Alive(); err != nil || alive {
		t.Errorf("alive %t, %v", alive, err)
	}
	if _, err := process.Of(cmd.Process.Pid); err == nil {
		t.Error("a process that is gone has an identity")
	}
	if err := (process.ID{PID: -1}).Signal(syscall.SIGTERM); err == nil {
		t.Error("a signal to no process is a success")
	}
}

// TestKillDescendants: all that a process has started ends, also what was stopped and what put
// itself into a session of its own; the process itself goes on.
func TestKillDescendants(t *testing.T) {
	t.Parallel()
	pids := t.TempDir() + "/pids"
	cmd := exec.Command("/bin/sh", "-c", "sleep 600 & echo $! >"+pids+"; setsid sleep 600 & echo $! >>"+pids+
		"; (sleep 600 & echo $! >>"+pids+"; wait) & kill -STOP $!; kill -CONT $!; echo $! >>"+pids+"; wait; read line")
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var below []process.ID
	for deadline := time.Now().Add(time.Minute); len(below) < 4; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the processes do not start")
		}
		text, err := os.ReadFile(pids)
		if err != nil {
			continue // not yet
		}
		below = nil
		for _, word := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(word)
			must(t, err)
			id, err := process.Of(pid)
			must(t, err)
			below = append(below, id)
		}
	}
	self, err := process.Of(cmd.Process.Pid)
	must(t, err)
	must(t, process.KillDescendants(cmd.Process.Pid))
	for _, id := range below {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			alive, err := id.Alive()
			must(t, err)
			if !alive {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("process %d goes on", id.PID)
			}
		}
	}
	if alive, err := self.Alive(); err != nil || !alive {
		t.Errorf("the process itself was killed: %v", err)
	}
	must(t, in.Close())
	_ = cmd.Wait() // how the shell ends says nothing here
}
