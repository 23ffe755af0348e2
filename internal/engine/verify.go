package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"interlock/internal/check"
	"interlock/internal/engine/eligibility"
	"interlock/internal/git"
	"interlock/internal/lease"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/scope"
	"interlock/internal/store"
	"interlock/internal/text"
	"interlock/internal/workspace"
)

// verify has the checks speak of the exact head, in a clean tree, and saves the verdict with it.
func (e *Engine) verify(h *hold, r run.Run) (run.Run, error) {
	ev, err := e.inScope(h.Live, r)
	if err != nil {
		return r, err
	}
	if ev != nil {
		return h.Apply(r, ev)
	}
	// A check that counts tests may have to run at the base too.
	h.Within(2*time.Duration(len(r.Plan.Checks))*(r.Plan.CheckTotal+run.AgentStartup) + 2*run.GitTotal)
	e.say(r, "verifying", "%s at %.12s", strings.Join(r.Plan.Checks, " && "), r.Head.Hash)
	var v run.Verdict
	err = e.whileHeld(h, &r, func() (err error) {
		v, err = e.runChecks(h, r)
		return err
	})
	if cause := context.Cause(h.Session); cause != nil {
		return e.afterStop(h, r, cause)
	}
	if err != nil {
		return r, fmt.Errorf("check %s: %w", r.Head.Hash, err)
	}
	r, err = h.Apply(r, run.Verified{
		Verdict: v, Precond: eligibility.Precondition(r.Task.Digest, r.Base.Commit.Hash, r.Plan),
		Next: fmt.Sprintf("git --git-dir %s show %s", text.Quote(e.repo.Dir()), r.Head.Hash),
	})
	if err != nil {
		return r, err
	}
	e.say(r, "verified", "%s", verdictLine(v))
	return r, nil
}

// afterStop leaves a run as it is for whoever goes on; a cancel is carried out by the next look.
func (e *Engine) afterStop(h *hold, r run.Run, cause error) (run.Run, error) {
	if cause == lease.ErrCanceled {
		return e.Store.Load(h.Live, r.ID)
	}
	return r, cause
}

func verdictLine(v run.Verdict) string {
	if !v.Passed {
		return "the checks failed: " + v.Why
	}
	text := "the checks passed; their tests are not counted"
	if v.Tests != nil {
		text = fmt.Sprintf("the checks passed: %d tests ran", *v.Tests)
	}
	if n := len(v.Warnings); n > 0 {
		text += fmt.Sprintf("; warnings for the reviewer: %d", n)
	}
	return text
}

func (e *Engine) runChecks(h *hold, r run.Run) (run.Verdict, error) {
	dir, err := workspace.FreeDir(filepath.Join(e.State, "work", r.ID), fmt.Sprintf("%d-check", r.Attempt))
	if err != nil {
		return run.Verdict{}, err
	}
	log := filepath.Join(e.State, "logs", r.ID, fmt.Sprintf("%d-check.log", r.Attempt))
	if err := os.MkdirAll(filepath.Dir(log), 0o700); err != nil {
		return run.Verdict{}, err
	}
	session := func(id sandbox.Identity, ended bool) error {
		handle, err := json.Marshal(id)
		if err != nil {
			return err
		}
		return h.Record(store.Session{
			ID: id.Session, Run: r.ID, Attempt: r.Attempt, Kind: "check", Handle: string(handle),
			Dir: dir, Log: log, Started: e.Clock.Wall(), Ended: ended,
		})
	}
	return check.Run(h.Session, check.Request{
		Repo: e.repo, Facts: e.Facts, Level: sandbox.Level(r.Plan.Sandbox), Network: "host",
		Head: r.Head, Base: r.Base.Commit.Hash, Commands: r.Plan.Checks, AllowNoTests: r.Plan.AllowNoTests,
		Total: r.Plan.CheckTotal, MaxTasks: r.Plan.MaxTasks, MaxMemory: r.Plan.MaxMemory, Room: dir, Log: log, Env: e.Env,
		Compare:   &check.Compare{Dir: filepath.Join(e.State, "counts"), Run: r.ID, AllowFewer: r.Plan.AllowFewer},
		OnSession: func(id sandbox.Identity) error { return session(id, false) },
		OnEnd:     func(id sandbox.Identity) error { return session(id, true) },
		Progress:  func(line string) { e.say(r, "check", "%s", line) },
	})
}

// inScope looks at what the exact head changes against its recorded base, and at what each commit
// on the way changes: all of them are pushed. It returns the event to save when something is not
// allowed.
func (e *Engine) inScope(ctx context.Context, r run.Run) (run.Event, error) {
	whole, err := e.repo.Diff(ctx, r.Base.Commit.Hash, r.Head.Hash)
	var steps []git.Change
	if err == nil {
		steps, err = e.repo.Steps(ctx, r.Base.Commit.Hash, r.Head.Hash)
	}
	if errors.Is(err, git.ErrTooBig) { // it would be too big the next time as well
		return run.Failed{
			Reason:   fmt.Sprintf("attempt %d: out of scope: its commits change more paths than can be looked at: %v", r.Attempt, err),
			Findings: "Your commits change more paths than can be looked at. Start your commits anew from the base (git reset --soft), with less in them.",
		}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("compare each commit with the base: %w", err)
	}
	var paths []scope.Path
	seen := map[scope.Path]bool{}
	for _, c := range slices.Concat(whole, steps) {
		p := scope.Path{Old: c.OldPath, New: c.Path, OldMode: c.OldMode, NewMode: c.NewMode}
		if !seen[p] {
			seen[p] = true
			paths = append(paths, p)
		}
	}
	found := scope.Check(paths, r.Plan.AllowPaths)
	if len(found) == 0 {
		return nil, nil
	}
	var b strings.Builder
	b.WriteString("These changes are not allowed, in no commit of yours. Start your commits anew from the base (git reset --soft), without them:\n")
	for _, f := range found {
		fmt.Fprintf(&b, "- %s\n", f.Text)
	}
	e.say(r, "out of scope", "%s", found[0].Text)
	return run.Failed{
		Reason:   fmt.Sprintf("attempt %d: out of scope: %s (%d in all)", r.Attempt, found[0].Text, len(found)),
		Findings: b.String(),
	}, nil
}
