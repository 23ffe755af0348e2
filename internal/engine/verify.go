package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"interlock/internal/check"
	"interlock/internal/engine/eligibility"
	"interlock/internal/lease"
	"interlock/internal/outgoing"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/store"
	"interlock/internal/text"
	"interlock/internal/workspace"
)

// verify has the checks speak of the exact head, in a clean tree, and saves the verdict with it.
func (e *Engine) verify(h *hold, r run.Run) (run.Run, error) {
	h.Within(outgoing.LooksTotal)
	ev, err := e.guard.Check(h.Live, r)
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
		Then: "to propose it: type the command again without --lane, or with --lane propose", // only lane build rests here
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
	dir, err := workspace.FreeDir(workspace.WorkDir(e.State, r.ID), fmt.Sprintf("%d-check", r.Attempt))
	if err != nil {
		return run.Verdict{}, err
	}
	log := filepath.Join(workspace.LogDir(e.State, r.ID), fmt.Sprintf("%d-check.log", r.Attempt))
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
		Total: r.Plan.CheckTotal, MaxTasks: r.Plan.MaxTasks, MaxMemory: r.Plan.MaxMemory, Room: dir, Log: log, Env: e.Env, Secrets: e.guard.Values(r.Plan),
		Compare:   &check.Compare{Dir: filepath.Join(e.State, "counts"), Run: r.ID, AllowFewer: r.Plan.AllowFewer},
		OnSession: func(id sandbox.Identity) error { return session(id, false) },
		OnEnd:     func(id sandbox.Identity) error { return session(id, true) },
		Progress:  func(line string) { e.say(r, "check", "%s", line) },
	})
}
