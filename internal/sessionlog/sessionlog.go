// Package sessionlog finds and prints what a session of a run printed. What it prints is harmless for
// a terminal, unless the bytes themselves are asked for; it never changes a log.
package sessionlog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"interlock/internal/check"
	"interlock/internal/store"
	"interlock/internal/text"
)

// Pick returns the newest session that is meant: of the agent or of the checks, of any attempt for
// 0. what names it for people.
func Pick(all []store.Session, checks bool, attempt int) (s store.Session, what string, ok bool) {
	kind := "agent"
	if checks {
		kind = "check"
	}
	what = kind + " session"
	if attempt != 0 {
		what += fmt.Sprintf(" in attempt %d", attempt)
	}
	for _, s := range slices.Backward(all) {
		if s.Kind == kind && (attempt == 0 || s.Attempt == attempt) {
			return s, what, true
		}
	}
	return store.Session{}, what, false
}

// Copy prints the log of a session; raw, as it is. fs.ErrNotExist.
func Copy(to io.Writer, s store.Session, raw bool) error {
	f, err := os.Open(s.Log)
	if err != nil {
		return err
	}
	defer f.Close()
	if raw {
		_, err = io.Copy(to, f)
		return err
	}
	w := &text.Writer{To: to}
	if s.Kind == "check" {
		r := &check.Readable{To: w}
		_, err = io.Copy(r, f)
		return errors.Join(err, r.Close(), w.Close())
	}
	if _, err := io.Copy(w, f); err != nil {
		return err
	}
	return w.Close()
}
