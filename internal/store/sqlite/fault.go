package sqlite

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"interlock/internal/statedir"
	"interlock/internal/store"
)

// errClosed: the store was closed.
var errClosed = errors.New("the store is closed")

// fault turns an error of the engine into one a caller can decide by and a person can act on.
// Errors that carry a meaning already pass.
func fault(path string, err error) error {
	var e *driver.Error
	if !errors.As(err, &e) {
		return err
	}
	switch code := e.Code() & 0xff; {
	case code == lib.SQLITE_FULL || code == lib.SQLITE_IOERR && full(path):
		return fmt.Errorf("%w: %s was not changed; free some room on its filesystem and type the command again: %w", store.ErrFull, path, err)
	case code == lib.SQLITE_NOTADB || code == lib.SQLITE_CORRUPT:
		return damaged(path, err)
	case code == lib.SQLITE_READONLY || code == lib.SQLITE_CANTOPEN || code == lib.SQLITE_PERM:
		return unwritable(path, err)
	case code == lib.SQLITE_BUSY || code == lib.SQLITE_LOCKED:
		return fmt.Errorf("%w: %s was not changed; close what has it open and type the command again: %w", store.ErrBusy, path, err)
	}
	return fmt.Errorf("state %s: %w", path, err)
}

// isFull reports whether SQLite found no room.
func isFull(err error) bool {
	e, ok := errors.AsType[*driver.Error](err)
	return ok && e.Code()&0xff == lib.SQLITE_FULL
}

// ofDirectory gives an error of statedir its meaning.
func ofDirectory(err error) error {
	if _, unfit := errors.AsType[*statedir.UnfitError](err); unfit {
		return fmt.Errorf("%w: %w", store.ErrUnfit, err)
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return unwritable(p.Path, err)
	}
	if _, stopped := errors.AsType[*statedir.StoppedError](err); stopped {
		return fmt.Errorf("%w: %w", store.ErrBusy, err)
	}
	return err
}

// unwritable says that a file or directory of the state cannot be written.
func unwritable(path string, err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w: %s cannot be written; free some room on its filesystem and type the command again: %w", store.ErrFull, path, err)
	}
	return fmt.Errorf("%w: %s cannot be written; make it writable or name another directory with --state-dir: %w", store.ErrUnfit, path, err)
}

// damaged says that the database is not what was written.
func damaged(path string, why error) error {
	return fmt.Errorf("%w: %s is not a whole database of interlock; nothing was changed; keep it, and put back a copy or "+
		"start anew with another --state-dir: %w", store.ErrDamaged, path, why)
}

// full reports whether the filesystem of path has no free block: some failures of a full disk
// reach SQLite as plain input/output errors.
func full(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && (st.Bavail == 0 || st.Files > 0 && st.Ffree == 0)
}
