package statedir

import (
	"errors"
	"os"
	"syscall"
)

// Presence says that the state is open here, by a shared flock on the state directory itself: a
// lock that nobody can remove, and that the kernel gives back when the process ends. Whoever gets
// it exclusively knows that nobody else has the state open. It changes only while the turn is held.
type Presence struct{ dir *os.File }

// Enter marks the state as open here. alone is true when nobody else has it open; then the lock is
// exclusive until Share is called.
func (p *Presence) Enter(dir string) (alone bool, err error) {
	if p.dir, err = os.Open(dir); err != nil {
		return false, err
	}
	alone, err = p.Exclude()
	if alone || err != nil {
		return alone, err
	}
	return false, p.Share()
}

// Exclude tries to become the only one. When it fails, nothing is locked any more.
func (p *Presence) Exclude() (bool, error) {
	err := flock(int(p.dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// Share lets others in.
func (p *Presence) Share() error { return flock(int(p.dir.Fd()), syscall.LOCK_SH) }

// Leave ends the presence.
func (p *Presence) Leave() {
	if p.dir != nil {
		p.dir.Close()
		p.dir = nil
	}
}
