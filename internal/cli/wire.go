package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"interlock/internal/agent"
	"interlock/internal/agent/command"
	"interlock/internal/engine"
	"interlock/internal/failpoint/writes"
	"interlock/internal/forge/local"
	"interlock/internal/git"
	"interlock/internal/input"
	"interlock/internal/lease"
	"interlock/internal/retention"
	"interlock/internal/sandbox"
	"interlock/internal/store/sqlite"
	"interlock/internal/text"
	"interlock/internal/workspace"
)

// findGit returns the git program; it is looked for once.
func (a *app) findGit(ctx context.Context) (*git.Git, error) {
	if a.git != nil {
		return a.git, nil
	}
	g, err := git.Find(ctx)
	if err != nil {
		return nil, err
	}
	a.git = g
	return g, nil
}

// locate returns the canonical identity of the repository that a path is in.
func (a *app) locate(ctx context.Context, repo string) (git.Location, error) {
	g, err := a.findGit(ctx)
	if err != nil {
		return git.Location{}, err
	}
	path, err := a.place(repo)
	if err != nil {
		return git.Location{}, err
	}
	return g.Locate(ctx, path)
}

// forge opens the forge of a repository: at present the one that is embedded in it.
func (a *app) forge(ctx context.Context, repo string) (*local.Forge, error) {
	g, err := a.findGit(ctx)
	if err != nil {
		return nil, err
	}
	path, err := a.place(repo)
	if err != nil {
		return nil, err
	}
	return local.Open(ctx, g, path)
}

// place returns the path of a repository that was named by a path or a file URL.
func (a *app) place(repo string) (string, error) {
	path, err := input.Repository(a.env.Dir, repo)
	if err != nil {
		return "", &usageError{err.Error(), elsewhere(a.args)}
	}
	return path, nil
}

// restoreWait bounds how long a command that only reads waits for a repository that is busy.
const restoreWait = 10 * time.Second

// restored opens the forge of a repository for a command of a person, after what was wiped from it
// has been put back, as far as this state directory has seen it. What keeps that from being done is
// said, and keeps nobody from reading.
func (a *app) restored(ctx context.Context, repo string) (*local.Forge, error) {
	f, err := a.forge(ctx, repo)
	if err != nil {
		return nil, err
	}
	return f, a.restore(ctx, f)
}

// restore puts back what was wiped, and keeps what is there: a command that has written something
// calls it once more afterwards.
func (a *app) restore(ctx context.Context, f *local.Forge) error {
	dir, err := a.stateDir()
	if err != nil {
		return nil // there is no state, so nothing was ever seen
	}
	if dir = workspace.RepoDir(dir, f.Location().Key); !isDir(dir) {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, restoreWait)
	defer cancel()
	own, err := a.git.Engine(bounded, dir)
	var said []string
	if err == nil {
		said, err = f.Restore(bounded, own)
	}
	if err != nil {
		said = append(said, "warning: "+err.Error())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, line := range said {
		if _, err := fmt.Fprintf(a.env.Stderr, "interlock: %s\n", text.Line(line)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// openStore opens the store in the state directory. Whoever finds that it was put back says so.
func (a *app) openStore(ctx context.Context) (*sqlite.Store, error) {
	dir, err := a.stateDir()
	if err != nil {
		return nil, err
	}
	s, err := sqlite.Open(ctx, dir, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	if raised := s.Raised(); raised != "" && !a.json {
		a.mu.Lock()
		defer a.mu.Unlock()
		if _, err := fmt.Fprintf(a.env.Stderr, "interlock: warning: %s\n", text.Line(raised)); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// examineState opens the state directory, which is the one way to know that it can be worked with.
func (a *app) examineState(ctx context.Context) (found, warning string, err error) {
	s, err := a.openStore(ctx)
	if err != nil {
		return "", "", err
	}
	dir, err := a.stateDir()
	if err != nil {
		return "", "", err
	}
	return dir, strings.Join(s.Warnings(), "; "), s.Close()
}

// engine wires an engine for one repository. done closes what it works with.
func (a *app) engine(ctx context.Context, repo string) (e *engine.Engine, done func(), err error) {
	f, err := a.forge(ctx, repo)
	if err != nil {
		return nil, nil, err
	}
	s, err := a.openStore(ctx)
	if err != nil {
		return nil, nil, err
	}
	if e, err = a.engineOn(ctx, repo, f, s); err != nil {
		_ = s.Close()
		return nil, nil, err
	}
	return e, func() { _ = s.Close() }, nil
}

func (a *app) engineOn(ctx context.Context, repo string, f *local.Forge, s *sqlite.Store) (*engine.Engine, error) {
	dir, err := a.stateDir()
	if err != nil {
		return nil, err
	}
	holder, err := lease.Self(ctx, s)
	if err != nil {
		return nil, err
	}
	a.keep = func() (*retention.Keeper, error) { return a.retention(ctx, s, holder) }
	path, err := a.place(repo)
	if err != nil {
		return nil, err
	}
	at := f.Location()
	return engine.New(ctx, engine.Config{
		State: dir, Store: writes.Store(s), Clock: s.Clock(), Git: a.git, Forge: writes.Forge(f), RepoKey: at.Key, RepoPath: path,
		Worktree: at.Worktree, Facts: sandbox.Inspect(ctx), Env: a.env.Environ, Holder: holder, Login: "interlock",
		Notify: a.progress(), Ready: func(ctx context.Context) error {
			k, err := a.keep() // only now: what starts no session needs no configuration
			if err != nil {
				return err
			}
			return k.Ready(ctx)
		},
		Runtime: func(line string) agent.Runtime {
			return &command.Runtime{Line: line, Path: a.getenv("PATH"), Home: a.getenv("HOME")}
		},
	})
}
