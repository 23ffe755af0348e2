package check

import (
	"io"
	"time"

	"interlock/internal/sandbox"
)

// What the tests look at from outside.
var (
	WithJSON = withJSON
	NoTest   = noTest
)

// Read reads a log as a check does.
func Read(r io.Reader) (ran, skipped int, passed, failed string, err error) {
	s := newStream()
	err = s.read(r)
	t, _ := s.tally()
	return t.Ran(), t.Skipped, s.text(false, 0), s.text(true, 0), err
}

// Text is what is kept of a command's output when more of it was dropped.
func Text(log string, dropped int64) string {
	s := newStream()
	s.line([]byte(log))
	return s.text(false, dropped)
}

// Why says how a command failed.
func Why(r sandbox.Result) string {
	return why(r, sandbox.Limits{Total: time.Minute, Tasks: 100, Memory: 64 << 20})
}
