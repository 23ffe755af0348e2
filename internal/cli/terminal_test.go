package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// onTerminal runs a command whose stderr is a pseudo-terminal, and returns what that showed.
func (p *project) onTerminal(env []string, code int, args ...string) string {
	p.t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		if os.Getenv("INTERLOCK_CI") != "" {
			p.t.Fatalf("a pseudo-terminal is needed here: %v", err)
		}
		p.t.Skipf("there is no pseudo-terminal here: %v", err)
	}
	defer master.Close()
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	cmd, out := p.command(env, args...)
	cmd.Stderr = slave
	var seen bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = seen.ReadFrom(master) // ends with an error when nobody has the other side open
	}()
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	slave.Close()
	if got := p.end(cmd, cmd.Wait()); got != code {
		p.t.Fatalf("interlock %q: exit %d, want %d\n%s\n%s", args, got, code, out, &seen)
	}
	<-read
	return seen.String()
}

// TestRunOnATerminal: a run has a live line on a terminal, coloured as it is wanted, and none where
// the terminal can do nothing; what it says in the end is not written over.
func TestRunOnATerminal(t *testing.T) {
	t.Parallel()
	p := newProject(t, "#!/bin/sh\nsleep 1\nexit 1\n", "slowly")
	const colour, live = "\x1b[36m", "issue 1  the agent works  "
	for i, c := range []struct {
		env            []string
		args           []string
		live, inColour bool
	}{
		{[]string{"TERM=xterm", "NO_COLOR="}, nil, true, true},
		{[]string{"TERM=xterm", "NO_COLOR=1"}, nil, true, false},
		{[]string{"TERM=xterm", "NO_COLOR="}, []string{"--color", "never"}, true, false},
		{[]string{"TERM=dumb"}, nil, false, false},
	} {
		// Another check each time, so that it is worked again.
		args := append(p.work("--attempts", fmt.Sprint(i+1), "--checks", fmt.Sprintf("test %d", i)), c.args...)
		out := p.onTerminal(c.env, 8, args...)
		if strings.Contains(out, live) != c.live || strings.Contains(out, colour) != c.inColour {
			t.Errorf("%q %q: live line wanted %t, in colour %t:\n%q", c.env, c.args, c.live, c.inColour, out)
		}
		if !strings.Contains(out, "interlock: issue 1 is parked") || strings.Contains(out[strings.Index(out, "interlock: issue 1 is parked"):], live) {
			t.Errorf("%q: the end was written over, or something after it:\n%q", c.env, out)
		}
	}
	if code, out := p.interlock(append(p.work(), "--color", "sometimes")...); code != 2 || !strings.Contains(out, "known are auto, always and never") {
		t.Errorf("--color sometimes: exit %d\n%s", code, out)
	}
}
