// Package engine drives runs: it claims an issue, holds the lease, runs an agent in a private
// workspace, has the exact commit verified, does each effect once, and hands the change to review.
// It decides by run.Apply and the store alone; it never believes what an agent says, and it never
// names a driver of a store, a forge or a runtime.
package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"interlock/internal/agent"
	"interlock/internal/claim"
	"interlock/internal/engine/eligibility"
	"interlock/internal/forge"
	"interlock/internal/git"
	"interlock/internal/outgoing"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/store"
	"interlock/internal/toolchain"
	"interlock/internal/workspace"
)

// Config is what an engine works with. All fields are required but Notify and Worktree.
type Config struct {
	State    string // the state directory
	Store    store.Store
	Clock    store.Clock
	Git      *git.Git
	Forge    forge.Forge
	RepoKey  string // canonical identity of the repository
	RepoPath string // where the operator finds it
	Worktree string // the operator's work tree of it, "" if it has none
	Facts    sandbox.Facts
	Env      []string // the operator's environment
	Holder   run.Holder
	Login    string // who is shown as assigned
	Notify   func(Notice)
	// Ready makes sure that there is room for a session, or says why none is started.
	Ready func(context.Context) error
	// Runtime turns the agent's shell line into a runtime.
	Runtime func(line string) agent.Runtime
}

// Notice is one line of progress. Text is safe to print.
type Notice struct {
	At      time.Time `json:"at"`
	Run     string    `json:"run,omitempty"`
	Issue   int64     `json:"issue,omitempty"`
	Kind    string    `json:"kind"`
	Text    string    `json:"text"`
	Attempt int       `json:"attempt,omitempty"`
}

// Engine works the issues of one repository for one process.
type Engine struct {
	Config
	repo   *git.Repo
	claims *claim.Keeper
	look   *eligibility.Look
	work   *workspace.Host
	guard  *outgoing.Guard
}

// New opens the engine's own repository for the forge's one. It starts nothing.
func New(ctx context.Context, c Config) (*Engine, error) {
	dir := workspace.RepoDir(c.State, c.RepoKey)
	name := filepath.Base(dir)
	repo, err := c.Git.Engine(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("open the engine's repository: %w", err)
	}
	key, err := outgoing.Key(c.State)
	if err != nil {
		return nil, fmt.Errorf("the key of fingerprints: %w", err)
	}
	e := &Engine{Config: c, repo: repo}
	e.guard = &outgoing.Guard{Repo: repo, Env: c.Env, Key: key, State: c.State, Say: e.say}
	e.Forge = e.guard.Redacting(c.Forge)
	if e.Notify == nil {
		e.Notify = func(Notice) {}
	}
	e.claims = &claim.Keeper{
		Refs: &forge.Claims{
			Repo: repo, Remote: c.Forge.Remote(), Installation: c.Holder.Installation, Process: claim.Process(c.Holder),
			Now: c.Clock.Wall, Git: c.Git,
		},
		Watch: claim.Watch{Dir: filepath.Join(c.State, "claims", strings.TrimSuffix(name, ".git")), Clock: c.Clock},
		Store: c.Store, Forge: e.Forge, Repo: c.RepoKey, Self: c.Holder, Say: e.say,
	}
	e.look = &eligibility.Look{Store: c.Store, Forge: c.Forge, Claims: e.claims, RepoKey: c.RepoKey, RepoPath: c.RepoPath}
	tools, path := toolchain.Find(ctx, c.Env)
	e.work = &workspace.Host{
		State: c.State, Repo: repo, Facts: c.Facts, Env: c.Env, Tools: tools, Path: path, Now: c.Clock.Wall,
		Secrets: e.guard.Values,
	}
	return e, nil
}

// Repo returns the engine's own repository.
func (e *Engine) Repo() *git.Repo { return e.repo }

// Look says which issues may be started, and why others may not.
func (e *Engine) Look() *eligibility.Look { return e.look }

// Claims returns what this installation knows and does about the repository's claims.
func (e *Engine) Claims() *claim.Keeper { return e.claims }

func (e *Engine) say(r run.Run, kind, format string, args ...any) {
	e.Notify(Notice{
		At: e.Clock.Wall(), Run: r.ID, Issue: r.Issue, Kind: kind, Attempt: r.Attempt,
		Text: e.guard.Redact(fmt.Sprintf(format, args...)),
	})
}

// random returns n random bytes as hex digits.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // which never fails
	return fmt.Sprintf("%x", b)
}
