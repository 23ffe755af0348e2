package statedir

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrStopped means that the wait for the turn was given up.
var ErrStopped = errors.New("stopped while waiting for the turn to write")

// Turn is the lock by which the writers of all processes take turns: a blocking flock, so that the
// kernel hands it on at once, behind a door, so that who had it last does not have it next. It is held
// for one transaction. It orders writers, and nothing else depends on it: a lock file removed by hand
// costs speed at most, since SQLite locks too.
type Turn struct {
	Path string // of the lock file; it is made when it is not there
	file *os.File
}

// TakeFree takes the turn if that can be done at once. Not for use by several goroutines.
func (t *Turn) TakeFree() bool {
	if t.file == nil {
		return false
	}
	if err := flock(int(t.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return false
	}
	if same, err := t.current(); err != nil || !same {
		t.Close()
		return false
	}
	return true
}

// Take waits for the turn, or until stop is closed: ErrStopped. *StoppedError when a stopped process
// keeps it. Not for use by several goroutines.
func (t *Turn) Take(stop <-chan struct{}) error {
	for {
		if t.file == nil {
			f, err := os.OpenFile(t.Path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
			if err != nil {
				return err
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
		t.Close() // removed or replaced while we waited: the others lock the new one
	}
}

// lock takes the flock. The call that blocks cannot be interrupted; whoever gives up leaves it to a
// goroutine that gives the lock back as soon as it has it.
func (t *Turn) lock(stop <-chan struct{}) error {
	fd := int(t.file.Fd())
	first, err := door(fd, unix.F_OFD_SETLK, unix.F_WRLCK)
	if err != nil {
		return err
	}
	if first {
		err := flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			_, derr := door(fd, unix.F_OFD_SETLK, unix.F_UNLCK)
			return errors.Join(err, derr)
		}
	}
	got := make(chan error, 1)
	file := t.file
	go func() { got <- inLine(fd, first) }()
	look := time.NewTicker(stoppedLook)
	defer look.Stop()
	var w watch
	var given error
	for given == nil {
		select {
		case err := <-got:
			return err
		case now := <-look.C:
			if past, err := t.past(); past != nil || err != nil {
				t.abandon(got)
				t.file = past
				return err
			}
			given = w.look(file, now)
		case <-stop:
			given = ErrStopped
		}
	}
	t.abandon(got)
	return given
}

// past takes the flock, if nobody has it, past a door that is closed: a process that was stopped in
// front of it keeps it closed for as long as it is stopped. nil when somebody has the flock.
func (t *Turn) past() (*os.File, error) {
	f, err := os.OpenFile(t.Path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	err = flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = nil
	}
	return nil, err
}

// abandon leaves the file to the goroutine that waits with it, which gives back what it gets.
func (t *Turn) abandon(got <-chan error) {
	file := t.file
	t.file = nil
	go func() {
		<-got
		file.Close()
	}()
}

// inLine waits in front of the door, unless it is the first there already, and then behind it.
func inLine(fd int, first bool) error {
	if !first {
		if _, err := door(fd, unix.F_OFD_SETLKW, unix.F_WRLCK); err != nil {
			return err
		}
	}
	err := flock(fd, syscall.LOCK_EX)
	_, derr := door(fd, unix.F_OFD_SETLK, unix.F_UNLCK)
	return errors.Join(err, derr)
}

// door locks or unlocks the place of the next in line. A released flock is free until the waiter
// that it woke has run, so whoever released it could take it again, and again. With one place
// between, that one finds the door closed and stands behind those who wait. ok is false when
// somebody else has the place.
func door(fd, how int, kind int16) (ok bool, err error) {
	for {
		err := unix.FcntlFlock(uintptr(fd), how, &unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: 0, Len: 1})
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, err
		}
	}
}

// current reports whether the locked file is still the one that everybody else finds.
func (t *Turn) current() (bool, error) {
	have, err := t.file.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Lstat(t.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return os.SameFile(have, there), nil
}

// Give hands the turn on. It unlocks by name and not by closing: a child between fork and exec
// may still share the descriptor.
func (t *Turn) Give() {
	if t.file != nil {
		if err := flock(int(t.file.Fd()), syscall.LOCK_UN); err != nil {
			t.Close()
		}
	}
}

// Close gives the turn back and forgets the lock file. It may be taken again.
func (t *Turn) Close() {
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
