package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// errStopped means that the wait for the turn was given up.
var errStopped = errors.New("stopped while waiting for the turn to write")

// turn is the lock by which the writers of all processes take turns: a blocking flock, so that the
// kernel hands it on at once. It is held for one transaction. It orders writers, and nothing else
// depends on it: a lock file removed by hand costs speed at most, since SQLite locks too.
type turn struct {
	path string
	file *os.File
}

// free takes the turn if that can be done at once. Not for use by several goroutines.
func (t *turn) free() bool {
	if t.file == nil {
		return false
	}
	if err := flock(int(t.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return false
	}
	if same, err := t.current(); err != nil || !same {
		t.close()
		return false
	}
	return true
}

// take waits for the turn, or until stop is closed. Not for use by several goroutines.
func (t *turn) take(stop <-chan struct{}) error {
	for {
		if t.file == nil {
			f, err := os.OpenFile(t.path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
			if err != nil {
				return unwritable(t.path, err)
			}
			t.file = f
		}
		if err := t.lock(stop); err != nil {
			return err
		}
		same, err := t.current()
		if same || err != nil {
			return err
		}
		t.close() // removed or replaced while we waited: the others lock the new one
	}
}

// lock takes the flock. The call that blocks cannot be interrupted; when stop closes first it is
// left to a goroutine that gives the lock back as soon as it has it.
func (t *turn) lock(stop <-chan struct{}) error {
	fd := int(t.file.Fd())
	err := flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return err
	}
	got := make(chan error, 1)
	file := t.file
	go func() { got <- flock(fd, syscall.LOCK_EX) }()
	select {
	case err := <-got:
		return err
	case <-stop:
		t.file = nil
		go func() {
			<-got
			file.Close()
		}()
		return errStopped
	}
}

// current reports whether the locked file is still the one that everybody else finds.
func (t *turn) current() (bool, error) {
	have, err := t.file.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Lstat(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return os.SameFile(have, there), nil
}

// give hands the turn on. It unlocks by name and not by closing: a child between fork and exec
// may still share the descriptor.
func (t *turn) give() {
	if t.file != nil {
		if err := flock(int(t.file.Fd()), syscall.LOCK_UN); err != nil {
			t.close()
		}
	}
}

func (t *turn) close() {
	if t.file != nil {
		t.file.Close()
		t.file = nil
	}
}

func flock(fd, how int) error {
	for {
		err := syscall.Flock(fd, how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
