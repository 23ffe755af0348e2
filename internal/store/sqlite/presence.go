package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// presence says that the state is open here, by a shared flock on the state directory itself: a
// lock that nobody can remove, and that the kernel gives back when the process ends. Whoever gets
// it exclusively knows that nobody else has the state open. It changes only while the turn is held.
type presence struct{ dir *os.File }

// enter marks the state as open here. alone is true when nobody else has it open; then the lock is
// exclusive until share is called.
func (p *presence) enter(dir string) (alone bool, err error) {
	if p.dir, err = os.Open(dir); err != nil {
		return false, unwritable(dir, err)
	}
	alone, err = p.exclude()
	if alone || err != nil {
		return alone, err
	}
	return false, p.share()
}

// exclude tries to become the only one. When it fails, nothing is locked any more.
func (p *presence) exclude() (bool, error) {
	err := flock(int(p.dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// share lets others in.
func (p *presence) share() error { return flock(int(p.dir.Fd()), syscall.LOCK_SH) }

func (p *presence) leave() {
	if p.dir != nil {
		p.dir.Close()
		p.dir = nil
	}
}
