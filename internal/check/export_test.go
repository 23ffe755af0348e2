package check

import (
	"io"
	"time"

	"interlock/internal/sandbox"
)

// What the tests look at from outside.
var (
	WithJSON = withJSON
	Remove   = remove
)

// Read reads a log as a check does.
func Read(r io.Reader) (ran, skipped int, passed, failed string, err error) {
	s := newStream()
	err = s.read(r)
	ran, skipped = s.tests()
	return ran, skipped, s.text(false, 0), s.text(true, 0), err
}

// Why says how a command failed.
func Why(r sandbox.Result) string { return why(r, time.Minute) }
