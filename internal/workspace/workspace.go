// Package workspace is the private clone that one attempt of a run works in: it is made, an agent's
// session runs in it, and what that left is brought into the engine's repository. Whatever reads a
// workspace runs in the sandbox: git never runs in one on the host. It decides nothing about a run;
// whose authority it acts under is handed to it.
package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"interlock/internal/git"
	"interlock/internal/run"
	"interlock/internal/sandbox"
)

// Host is what all workspaces of one engine are made with. All fields but Secrets are required.
type Host struct {
	State string    // the state directory
	Repo  *git.Repo // the engine's own repository
	Facts sandbox.Facts
	Env   []string        // the operator's environment
	Tools []sandbox.Mount // the operator's tool chains
	Path  string          // the PATH that leads to them
	Now   func() time.Time
	// Secrets are texts that must not get into a log of a run. nil: there are none.
	Secrets func(run.Plan) []string
}

// Make makes the room of the run's next attempt: the private clone, at the tip of the run or at its
// base, and the prompt.
func (h *Host) Make(ctx context.Context, r run.Run, prompt string) (sandbox.Room, error) {
	dir, err := FreeDir(WorkDir(h.State, r.ID), fmt.Sprint(r.Attempt+1))
	if err != nil {
		return sandbox.Room{}, fmt.Errorf("make a workspace: %w", err)
	}
	room, err := sandbox.NewRoom(dir)
	if err != nil {
		return room, err
	}
	start := r.Tip
	if start == "" {
		start = r.Base.Commit.Hash
	}
	err = h.Repo.Workspace(ctx, git.WorkspaceSpec{
		Dir: room.Tree(), Commit: start, Branch: r.Branch, Objects: h.objects(sandbox.Level(r.Plan.Sandbox)),
	})
	if err != nil {
		return room, fmt.Errorf("make the workspace of attempt %d: %w", r.Attempt+1, err)
	}
	return room, os.WriteFile(filepath.Join(room.Task(), "prompt.md"), []byte(prompt), 0o600)
}

// objects is where the borrowed objects are seen from inside.
func (h *Host) objects(level sandbox.Level) string {
	if level == sandbox.Full {
		return sandbox.ObjectsInside
	}
	return h.Repo.Objects()
}

// Clear removes the caches of a session that is over. The workspace itself is kept.
func Clear(room sandbox.Room) error {
	var all error
	for _, dir := range []string{room.Temp(), filepath.Join(room.Home(), ".cache")} {
		if err := os.RemoveAll(dir); err != nil {
			all = errors.Join(all, fmt.Errorf("caches in %s could not be removed: %w", dir, err))
		}
	}
	return all
}

// RepoDir is where the engine's own repository for the one with a key is.
func RepoDir(state, key string) string {
	return filepath.Join(state, "repos", strings.NewReplacer(":", "-", "/", "-").Replace(key)+".git")
}

// WorkDir is where the workspaces of a run are; "" is the run for where those of all runs are.
func WorkDir(state, run string) string { return filepath.Join(state, "work", run) }

// LogDir is where the logs of a run are; "" is the run for where those of all runs are.
func LogDir(state, run string) string { return filepath.Join(state, "logs", run) }

// FreeDir returns a path under parent that does not exist yet: name, name.2, name.3 and so on.
// What a dead attempt left is never written over.
func FreeDir(parent, name string) (string, error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(parent, name)
	for i := 2; ; i++ {
		if _, err := os.Lstat(path); os.IsNotExist(err) {
			return path, nil
		} else if err != nil {
			return "", err
		}
		path = filepath.Join(parent, fmt.Sprintf("%s.%d", name, i))
	}
}

// random is a word of 40 random bits.
func random() string { return strings.ToLower(rand.Text()[:8]) }
