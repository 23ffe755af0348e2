package progress_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"interlock/internal/progress"
)

// terminal is a real pseudo-terminal: what is written to its file is read by us, as a person's
// terminal would.
type terminal struct {
	*os.File
	t   *testing.T
	mu  sync.Mutex
	got bytes.Buffer
}

func newTerminal(t *testing.T, columns uint16) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		if os.Getenv("INTERLOCK_CI") != "" {
			t.Fatalf("a pseudo-terminal is needed here: %v", err)
		}
		t.Skipf("there is no pseudo-terminal here: %v", err)
	}
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	tt := &terminal{File: slave, t: t}
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			tt.mu.Lock()
			tt.got.Write(b[:n])
			tt.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { slave.Close(); master.Close() })
	return tt
}

func (tt *terminal) seen() string {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	return tt.got.String()
}

// shows waits until the terminal has shown something.
func (tt *terminal) shows(what string) {
	tt.t.Helper()
	for end := time.Now().Add(20 * time.Second); !strings.Contains(tt.seen(), what); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			tt.t.Fatalf("not seen: %q in %q", what, tt.seen())
		}
	}
}

// screen is what is left to see of what was written: the live line redraws its row.
func screen(raw string) []string {
	rows := []string{""}
	for len(raw) > 0 {
		last := &rows[len(rows)-1]
		switch {
		case strings.HasPrefix(raw, "\r\x1b[K"):
			*last, raw = "", raw[4:]
		case raw[0] == '\r' && !strings.HasPrefix(raw, "\r\n"):
			*last, raw = "", raw[1:]
		case strings.HasPrefix(raw, "\r\n"):
			rows, raw = append(rows, ""), raw[2:]
		default:
			*last, raw = *last+raw[:1], raw[1:]
		}
	}
	return rows
}

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for _, kv := range pairs {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				return v
			}
		}
		return ""
	}
}

var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// TestLiveLine: under the lines one more says what goes on and for how long; in the end it is gone,
// and the lines are whole. Not parallel: the colour switch of the library is one for the process.
func TestLiveLine(t *testing.T) {
	for _, coloured := range []bool{true, false} {
		tt := newTerminal(t, 80)
		s := progress.New(tt.File, coloured, env("TERM=xterm"))
		s.Line("first line")
		s.Phase("issue 1  the agent works")
		tt.shows("issue 1  the agent works")
		s.Line("second line")
		s.Phase("issue 1  the agent works") // goes on: its time is not begun anew
		tt.shows("the agent works  1s")
		s.Phase("issue 1  checking\x1b[2J")
		tt.shows(`checking\x1b[2J`)
		tt.shows("in all)")
		s.Close()
		s.Line("the end")
		tt.shows("the end\r\n")
		raw := tt.seen()
		if colours.MatchString(raw) != coloured {
			t.Errorf("colours wanted %t: %q", coloured, raw)
		}
		if got := strings.Join(screen(colours.ReplaceAllString(raw, "")), "|"); got != "first line|second line|the end|" {
			t.Errorf("what is left on the screen: %q\nof %q", got, raw)
		}
		if strings.Contains(raw, "\x1b[2J") || strings.Contains(raw, "\x1b[?25l") {
			t.Errorf("it harms the terminal, or hides its cursor: %q", raw)
		}
	}
}

// TestNarrowTerminal: the live line never wraps, or it could not be taken away again.
func TestNarrowTerminal(t *testing.T) {
	tt := newTerminal(t, 30)
	s := progress.New(tt.File, false, env("TERM=xterm"))
	s.Phase("issue 1  " + strings.Repeat("a long phase ", 10))
	tt.shows("...  1s")
	s.Close()
	for _, row := range strings.Split(tt.seen(), "\r") {
		if row = strings.TrimPrefix(row, "\x1b[K"); utf8.RuneCountInString(row) >= 30 {
			t.Errorf("a row of %d characters on 30 columns: %q", utf8.RuneCountInString(row), row)
		}
	}
}

// TestPlainLines: in a pipe, and on a terminal that can do nothing, there are lines and nothing else.
func TestPlainLines(t *testing.T) {
	dumb := newTerminal(t, 80)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var buffer bytes.Buffer
	for _, to := range []io.Writer{dumb.File, w, &buffer} {
		s := progress.New(to, false, env("TERM=dumb"))
		if to != io.Writer(dumb.File) {
			s = progress.New(to, true, env("TERM=xterm"))
		}
		s.Phase("a phase")
		s.Line("a line")
		s.Phase("another")
		s.Close()
	}
	w.Close()
	piped, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	dumb.shows("a line\r\n")
	if string(piped) != "a line\n" || buffer.String() != "a line\n" || dumb.seen() != "a line\r\n" {
		t.Errorf("piped %q, buffered %q, dumb %q", piped, buffer.String(), dumb.seen())
	}
}

func TestColoured(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		when     progress.When
		terminal bool
		env      []string
		want     bool
	}{
		{progress.Auto, true, []string{"TERM=xterm"}, true}, {progress.Auto, false, []string{"TERM=xterm"}, false},
		{progress.Auto, true, []string{"TERM=xterm", "NO_COLOR=1"}, false}, {progress.Auto, true, []string{"TERM=dumb"}, false},
		{progress.Auto, true, []string{"TERM=xterm", "NO_COLOR="}, true},
		{progress.Always, false, []string{"NO_COLOR=1"}, true}, {progress.Never, true, []string{"TERM=xterm"}, false},
	} {
		if got := progress.Coloured(c.when, c.terminal, env(c.env...)); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
