package git

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Update moves one ref from Old to New. Old "" means that it must not be there, New "" that it is
// deleted. Both are full hashes.
type Update struct{ Ref, New, Old string }

func (u Update) check() error {
	if err := checkRef(u.Ref); err != nil {
		return err
	}
	if u.New == "" && u.Old == "" {
		return fmt.Errorf("%w: an update of %s from nothing to nothing", ErrInvalid, u.Ref)
	}
	for _, hash := range []string{u.New, u.Old} {
		if hash == zeroHash {
			return fmt.Errorf("%w: the zero hash stands for no commit", ErrInvalid)
		}
		if hash != "" {
			if err := checkHash(hash); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkUpdates(updates []Update) error {
	seen := map[string]bool{}
	for _, u := range updates {
		if err := u.check(); err != nil {
			return err
		}
		if seen[u.Ref] {
			return fmt.Errorf("%w: %s is updated twice", ErrInvalid, u.Ref)
		}
		seen[u.Ref] = true
	}
	if len(updates) == 0 {
		return fmt.Errorf("%w: no ref to update", ErrInvalid)
	}
	return nil
}

// LockedError names the lock file that is in the way; it wraps ErrLocked.
type LockedError struct {
	File string
	Err  error
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("%v: %s; nothing was moved; it is left by a git that runs or was killed: when no git works in that repository any more, remove the file and try again",
		ErrLocked, e.File)
}

// Is makes the error an ErrLocked.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// Unwrap returns what git said.
func (e *LockedError) Unwrap() error { return e.Err }

var lockFile = regexp.MustCompile(`(?:[Uu]nable to create|could not lock config file) '?([^'\n]+?(?:\.lock)?)'?: File exists`)

// locked turns the failure of a git that met a lock file into a *LockedError, nil for others.
func locked(err error) error {
	var failed *Error
	if !errors.As(err, &failed) {
		return nil
	}
	m := lockFile.FindStringSubmatch(failed.Stderr)
	if m == nil {
		return nil
	}
	file := m[1]
	if !strings.HasSuffix(file, ".lock") {
		file += ".lock"
	}
	return &LockedError{File: filepath.Clean(file), Err: err}
}

// lockPatience is how long a transaction that meets lock files is begun again: many writers of one
// ref hold it for milliseconds each, and git itself waits for a tenth of a second only.
const lockPatience = 2 * time.Second

// retryLocked calls f again, after a random wait, while it meets lock files. f must have changed
// nothing when it does.
func retryLocked(ctx context.Context, f func() error) error {
	began := time.Now()
	for try := 1; ; try++ {
		err := f()
		if !errors.Is(err, ErrLocked) || time.Since(began) > lockPatience {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(rand.N(time.Duration(try) * 40 * time.Millisecond)):
		}
	}
}

// UpdateRefs moves refs in one transaction: each is where its Old says, or nothing is moved and the
// error wraps ErrStaleRef. New equal to Old only verifies. No hook of the repository runs.
// ErrLocked when a lock file stays in the way, ErrRefused when git will not have the names.
func (p *Plumb) UpdateRefs(ctx context.Context, updates ...Update) error {
	if err := checkUpdates(updates); err != nil {
		return err
	}
	var in strings.Builder
	in.WriteString("start\n")
	for _, u := range updates {
		switch {
		case u.Old == "":
			fmt.Fprintf(&in, "create %s %s\n", u.Ref, u.New)
		case u.New == "":
			fmt.Fprintf(&in, "delete %s %s\n", u.Ref, u.Old)
		case u.New == u.Old:
			fmt.Fprintf(&in, "verify %s %s\n", u.Ref, u.Old)
		default:
			fmt.Fprintf(&in, "update %s %s %s\n", u.Ref, u.New, u.Old)
		}
	}
	in.WriteString("prepare\ncommit\n")
	return retryLocked(ctx, func() error {
		_, err := p.Run(ctx, Command{Args: []string{"update-ref", "--no-deref", "--stdin"}, Stdin: []byte(in.String())})
		return refFailure(err)
	})
}

// staleTexts are what git says when a ref is not at its old value (2.39 to 2.50).
var staleTexts = regexp.MustCompile(`but expected|reference already exists|unable to resolve reference|reference is missing|incorrect old value`)

func refFailure(err error) error {
	var failed *Error
	switch {
	case err == nil || !errors.As(err, &failed) || failed.Err != nil:
		return err
	case locked(err) != nil:
		return locked(err)
	case strings.Contains(failed.Stderr, "reference broken"):
		return fmt.Errorf("%w: the file of a ref is empty or garbage, as a power loss may leave it; git for-each-ref names it, git update-ref --no-deref -d NAME removes it: %w", ErrRefused, err)
	case staleTexts.MatchString(failed.Stderr):
		return fmt.Errorf("%w: %w", ErrStaleRef, err)
	case strings.Contains(failed.Stderr, "prepare:"):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}
