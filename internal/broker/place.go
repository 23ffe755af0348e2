package broker

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxPath is how long the path of a Unix socket may be.
const maxPath = 107

// TakenError is a place where no socket can be made, because something is there already.
type TakenError struct {
	Path string
	Why  string // half a sentence
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("no socket can be made at %s: %s", e.Path, e.Why)
}

// place is a socket, and the lock that says whose it is for as long as this process lives.
type place struct {
	path     string
	listener *net.UnixListener
	lock     *os.File
}

// takePlace makes a socket. The lock is a file beside it, locked by the kernel, and it holds which
// socket was made under it: one that is left behind is known by that, and nothing else is removed.
func takePlace(path string) (*place, error) {
	if len(path) > maxPath {
		return nil, fmt.Errorf("the path of a socket has %d bytes at most, and %s has %d: name a shorter directory", maxPath, path, len(path))
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the socket: %w", err)
	}
	if err := private(dir); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the socket: %w", err)
	}
	p := &place{path: path, lock: lock}
	if err := p.take(); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return p, nil
}

// private refuses a directory in which somebody else could put a socket of their own.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir() || !ok:
		return &TakenError{dir, "its directory is not one"}
	case int(st.Uid) != os.Geteuid():
		return &TakenError{dir, fmt.Sprintf("the directory belongs to user %d", st.Uid)}
	case info.Mode().Perm()&0o077 != 0:
		return &TakenError{dir, fmt.Sprintf("others may use the directory (mode %04o); chmod 700 it", info.Mode().Perm())}
	}
	return nil
}

func (p *place) take() error {
	err := syscall.Flock(int(p.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return &TakenError{p.path, "another process serves it"}
	}
	if err != nil {
		return fmt.Errorf("lock the socket: %w", err)
	}
	if err := p.removeStale(); err != nil {
		return err
	}
	if p.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: p.path, Net: "unix"}); err != nil {
		return fmt.Errorf("make the socket: %w", err)
	}
	p.listener.SetUnlinkOnClose(false) // leave does, while the lock is held
	if err := errors.Join(os.Chmod(p.path, 0o600), p.note()); err != nil {
		_ = p.listener.Close()
		_ = os.Remove(p.path)
		return err
	}
	return nil
}

// removeStale removes a socket that a dead server has made here, and refuses everything else.
func (p *place) removeStale() error {
	is, err := identity(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	was, err := io.ReadAll(io.LimitReader(p.lock, 200))
	if err != nil {
		return fmt.Errorf("read the lock of the socket: %w", err)
	}
	if is != strings.TrimSpace(string(was)) {
		return &TakenError{p.path, "what is there was not made by Interlock; look at it, and remove it if nobody needs it"}
	}
	return os.Remove(p.path)
}

// note writes down which socket is ours.
func (p *place) note() error {
	is, err := identity(p.path)
	if err != nil {
		return err
	}
	if err := p.lock.Truncate(0); err != nil {
		return err
	}
	_, err = p.lock.WriteAt([]byte(is+"\n"), 0)
	return err
}

// identity tells one socket from a later one at the same path.
func identity(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode().Type() != fs.ModeSocket {
		return "no socket", nil
	}
	return fmt.Sprintf("%d %d %d.%d", st.Dev, st.Ino, st.Ctim.Sec, st.Ctim.Nsec), nil
}

// leave removes the socket, if it is still the one that was made, and gives the lock back.
func (p *place) leave() error {
	_, err := p.lock.Seek(0, io.SeekStart)
	if err == nil {
		err = p.removeStale()
	}
	var taken *TakenError
	if errors.As(err, &taken) {
		err = nil // somebody else's by now: not ours to remove
	}
	return errors.Join(err, p.lock.Close())
}
