// Package progress shows a person what goes on: plain lines, and under them, on a terminal, one
// live line with the phase and how long it has taken. It never writes to anything but what it is
// given, and colours nothing that is not to be coloured.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/briandowns/spinner"
	"github.com/fatih/color"
	"golang.org/x/sys/unix"

	"interlock/internal/text"
)

// When says when something is coloured.
type When string

// The three answers, as in other programs.
const (
	Auto   When = "auto"
	Always When = "always"
	Never  When = "never"
)

// Known lists them, as they are typed.
func Known() []string { return []string{string(Auto), string(Always), string(Never)} }

// Coloured reports whether colours are wanted on a terminal, or, where terminal is false, on
// something else. getenv returns a variable of the environment. NO_COLOR is no-color.org's.
func Coloured(when When, terminal bool, getenv func(string) string) bool {
	switch when {
	case Always:
		return true
	case Never:
		return false
	}
	return terminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// Terminal returns the terminal that w is, nil for anything else.
func Terminal(w io.Writer) *os.File {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err != nil {
		return nil
	}
	return f
}

// every is how often the live line is drawn.
const every = 120 * time.Millisecond

// Show prints lines, and keeps a live line under them. Its methods may be called by many
// goroutines. The zero Show, with To, prints lines alone.
type Show struct {
	To io.Writer

	mu    sync.Mutex
	spin  *spinner.Spinner
	file  *os.File
	phase string
	since time.Time
	began time.Time
}

// New returns what shows on w: with a live line where w is a terminal that can have one.
func New(w io.Writer, coloured bool, getenv func(string) string) *Show {
	s := &Show{To: w, began: time.Now()}
	if s.file = Terminal(w); s.file == nil || getenv("TERM") == "dumb" || getenv("TERM") == "" {
		return s
	}
	color.NoColor = !coloured // the library's own switch; there is no other
	s.spin = spinner.New(spinner.CharSets[14], every, spinner.WithWriterFile(s.file), spinner.WithHiddenCursor(false))
	if err := s.spin.Color("cyan"); err != nil {
		panic(err) // a colour that the library knows
	}
	s.spin.PreUpdate = func(sp *spinner.Spinner) { sp.Suffix = " " + s.live(time.Now()) }
	return s
}

// Line prints one line, above the live one.
func (s *Show) Line(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.above(func() { fmt.Fprintln(s.To, line) })
}

// Phase says what goes on from now on; the live line shows it. A phase that goes on goes on.
func (s *Show) Phase(phase string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spin == nil || phase == s.phase {
		return
	}
	s.above(func() { s.phase, s.since = phase, time.Now() })
}

// above does something while the live line is not there, and shows it again where there is a phase.
func (s *Show) above(do func()) {
	if s.spin != nil {
		s.spin.Stop()
	}
	do()
	if s.spin != nil && s.phase != "" {
		s.spin.Start()
	}
}

// Close takes the live line away.
func (s *Show) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spin != nil {
		s.spin.Stop()
		s.phase = ""
	}
}

// live is the live line at a time. It is called while the library draws, which the phase waits for.
func (s *Show) live(now time.Time) string {
	took, all := now.Sub(s.since).Truncate(time.Second), now.Sub(s.began).Truncate(time.Second)
	after := fmt.Sprintf("  %s", took)
	if all > took {
		after += fmt.Sprintf(" (%s in all)", all)
	}
	width := 80
	if size, err := unix.IoctlGetWinsize(int(s.file.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
		width = int(size.Col)
	}
	room := width - len(after) - 3 // the sign, a space, and one column for the cursor
	if room < 8 {
		return ""
	}
	return text.Short(text.Line(s.phase), room) + after
}
