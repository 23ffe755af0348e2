package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Repo is a bare repository that the engine owns. Only Interlock writes it; workspaces borrow its
// objects, so that nothing in it is ever collected. It is safe for use by many goroutines and
// processes.
type Repo struct {
	*Plumb
	gitDir string
}

// Names in the directory of an engine's repository that are not git's.
const (
	readyFile = "interlock-ready" // there once the repository is made
	incoming  = "interlock-incoming"
)

// engineConfig is written into each of the engine's repositories.
var engineConfig = [][2]string{
	{"gc.auto", "0"},
	{"maintenance.auto", "false"},
	{"transfer.fsckObjects", "true"},
	{"fetch.fsckObjects", "true"},
	{"receive.fsckObjects", "true"},
	{"core.logAllRefUpdates", "always"},
}

// Engine opens the engine's bare repository in dir and creates it when it is not there: mode 0700,
// never collected, every object checked on its way in, every move of a ref kept in a reflog.
func (g *Git) Engine(ctx context.Context, dir string) (*Repo, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return nil, fmt.Errorf("engine's repository: %w", err)
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return nil, fmt.Errorf("engine's repository: %w", err)
	}
	if err := os.Chmod(abs, 0o700); err != nil {
		return nil, fmt.Errorf("engine's repository: %w", err)
	}
	r := &Repo{Plumb: &Plumb{git: g, dir: abs, pre: []string{"--git-dir=" + abs}}, gitDir: abs}
	unlock, err := r.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	ready := filepath.Join(abs, readyFile)
	if _, err := os.Stat(ready); err == nil {
		r.sweep()
		return r, nil
	}
	if err := r.create(ctx); err != nil {
		return nil, fmt.Errorf("engine's repository %s: %w", abs, err)
	}
	return r, os.WriteFile(ready, nil, 0o600)
}

// create may be called again on what an earlier, killed call left: git init is repeatable, and a
// lock file here can only be ours, since the turn is held and nobody uses a repository that is
// not ready.
func (r *Repo) create(ctx context.Context) error {
	for _, name := range []string{"config.lock", "HEAD.lock"} {
		if err := os.Remove(filepath.Join(r.gitDir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	_, err := r.git.Run(ctx, Command{Args: []string{"init", "--quiet", "--bare", "--template=",
		"--initial-branch=interlock", "--object-format=sha1", "--", r.gitDir}})
	if err != nil {
		return err
	}
	for _, kv := range engineConfig {
		if _, err := r.Run(ctx, Command{Args: []string{"config", kv[0], kv[1]}}); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes what killed imports left in quarantine, when no import runs. A git of a killed
// import may still write there; what cannot be removed now is removed by a later call.
func (r *Repo) sweep() {
	unlock, err := tryFlock(r.imports(), syscall.LOCK_EX)
	if unlock == nil || err != nil {
		return
	}
	defer unlock()
	_ = os.RemoveAll(filepath.Join(r.gitDir, incoming))
}

// Dir is the absolute path of the repository.
func (r *Repo) Dir() string { return r.gitDir }

// Objects is the absolute path of its object directory, which workspaces borrow from.
func (r *Repo) Objects() string { return filepath.Join(r.gitDir, "objects") }

// Lock excludes every fetch, import and workspace creation in this repository, in this and all
// other processes, until unlock is called. Those methods take their own locks: none of them may be
// called while it is held. It waits as long as ctx lasts.
func (r *Repo) Lock(ctx context.Context) (unlock func(), err error) {
	imports, err := r.importing(ctx, syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	turn, err := r.turn(ctx)
	if err != nil {
		imports()
		return nil, err
	}
	return func() { turn(); imports() }, nil
}

// The kernel locks are held on directories of the repository, not on files beside them: a lock file
// that somebody removes by hand would let a second holder in. turn is held by fetches, importing is
// shared by imports and by workspace creation.
func (r *Repo) turn(ctx context.Context) (unlock func(), err error) {
	return flock(ctx, r.gitDir, syscall.LOCK_EX)
}

func (r *Repo) importing(ctx context.Context, how int) (unlock func(), err error) {
	return flock(ctx, r.imports(), how)
}

// imports is the directory whose lock imports share. It must be one that no sandbox shows: a lock
// needs no right to write, so an agent could hold one on the objects that it borrows.
func (r *Repo) imports() string { return filepath.Join(r.gitDir, "refs") }

// flock takes a kernel lock on a directory and waits for it as long as ctx lasts.
func flock(ctx context.Context, dir string, how int) (unlock func(), err error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 25*time.Millisecond) {
		unlock, err := tryFlock(dir, how)
		if unlock != nil || err != nil {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("lock %s is held by another process: %w", dir, context.Cause(ctx))
		case <-time.After(wait):
		}
	}
}

// tryFlock takes a kernel lock, or returns nil when it is held elsewhere.
func tryFlock(dir string, how int) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); err == nil {
		return func() { _ = f.Close() }, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock %s: %w", dir, err)
}

// Pin creates or moves a ref of the engine's own, so that the commit is kept. ErrNoCommit.
func (r *Repo) Pin(ctx context.Context, ref, hash string) error {
	if err := checkRef(ref); err != nil {
		return err
	}
	if err := checkHash(hash); err != nil {
		return err
	}
	if _, err := r.Resolve(ctx, hash); err != nil {
		return err
	}
	return retryLocked(ctx, func() error {
		_, err := r.Run(ctx, Command{Args: []string{"update-ref", "--no-deref", ref, hash}})
		return refFailure(err)
	})
}
