package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"interlock/internal/agent"
	"interlock/internal/engine/eligibility"
	"interlock/internal/forge"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/store"
	"interlock/internal/text"
	"interlock/internal/workspace"
)

// Request is what an operator asks for.
type Request struct {
	Issue int64
	Next  bool          // the first eligible issue instead of Issue
	Base  string        // branch to propose against; "" means the default branch
	Plan  run.Plan      // CommandDigest is filled in by the engine
	Wait  time.Duration // how long to wait for an issue that is held
	Cwd   string        // directory the agent's command was typed in
	// Missing says why Plan cannot start a run, nil if it can. A run that is there already goes on
	// all the same.
	Missing error
	// Onto is what a run that was started with a plan goes on with; nil: with Plan.
	Onto func(run.Plan) (run.Plan, error)
	// Again has a new run begin with the plan and the base of the issue's last one, too.
	Again bool
}

// waitEvery is how often a held issue is looked at again.
const waitEvery = 250 * time.Millisecond

// task is a request with what was found out about it before anything is claimed.
type task struct {
	Request
	launch agent.Launch
	agent  agent.Runtime
	as     map[string]started // by run, what asStarted made
}

// Work picks the issue, goes on with its run or opens one, and drives it until it rests. The run
// is returned as it rests; an end that is not what was asked for is a *Refusal.
func (e *Engine) Work(ctx context.Context, req Request) (run.Run, error) {
	t := &task{Request: req}
	if req.Onto == nil { // else it depends on the run
		if err := e.ready(ctx, t); err != nil {
			return run.Run{}, err
		}
	}
	e.restore(ctx)
	if req.Next {
		return e.workNext(ctx, t)
	}
	return e.workIssue(ctx, t, req.Issue)
}

// prepare refuses what can be refused before anything is claimed.
func (e *Engine) prepare(ctx context.Context, req Request) (*task, error) {
	level := sandbox.Level(req.Plan.Sandbox)
	if err := e.Facts.Check(level); err != nil {
		return nil, err
	}
	if err := e.haveChecks(req.Plan); err != nil {
		return nil, err
	}
	if text := e.Facts.Unheld(workspace.Limits(req.Plan, sandbox.Limits{})); text != "" {
		e.Notify(Notice{At: e.Clock.Wall(), Issue: req.Issue, Kind: "weaker", Text: text})
	}
	if level != sandbox.None {
		private := []string{e.State, e.RepoPath, e.Worktree}
		for _, kv := range e.Env {
			if home, ok := strings.CutPrefix(kv, "HOME="); ok {
				private = append(private, home)
			}
		}
		if err := sandbox.Exposed(level, e.work.Tools, slices.DeleteFunc(private, func(p string) bool { return p == "" })...); err != nil {
			return nil, err
		}
	}
	t := &task{Request: req, agent: e.Runtime(req.Plan.Command)}
	launch, err := t.agent.Prepare(ctx, req.Cwd, level)
	if err != nil {
		return nil, err
	}
	t.launch = launch
	t.Plan.CommandDigest = launch.Digest
	return t, nil
}

// workIssue works one named issue, waiting for it as long as was asked.
func (e *Engine) workIssue(ctx context.Context, t *task, issue int64) (run.Run, error) {
	begin, told := e.Clock.Now(), false
	for {
		r, err := e.workOnce(ctx, t, issue)
		var held *HeldError
		if !errors.As(err, &held) {
			return r, err
		}
		left := t.Wait - (e.Clock.Now() - begin)
		if left <= 0 {
			return r, held.Refusal(t.Wait, e.RepoPath)
		}
		if !told {
			told = true
			e.Notify(Notice{At: e.Clock.Wall(), Issue: issue, Kind: "waiting", Text: held.Error() + fmt.Sprintf("; waiting up to %s", t.Wait)})
		}
		select {
		case <-ctx.Done():
			return r, e.interrupted(run.Run{})
		case <-time.After(min(left, every(held))):
		}
	}
}

// workOnce goes on with the newest run of the issue if there is something to go on with, and
// opens a new run otherwise.
func (e *Engine) workOnce(ctx context.Context, t *task, issue int64) (_ run.Run, err error) {
	defer func() { err = eligibility.Damaged(issue, err) }()
	last, err := e.look.Last(ctx, issue)
	if err != nil {
		return run.Run{}, err
	}
	if last != nil && (last.State.Live() || len(last.Effects) > 0) {
		wasLive := last.State.Live()
		r, err := e.resume(ctx, t, *last)
		if wasLive || r.State.Live() || len(r.Effects) > 0 {
			return r, err
		}
		last = &r // what was still to be done for it is done
	}
	if err := e.readyFor(ctx, t, last); err != nil {
		return run.Run{}, err
	}
	if last != nil {
		if err := e.rests(ctx, t, last); err != nil {
			return *last, err
		}
	}
	return e.open(ctx, t, issue, last)
}

// rests refuses to start again where the last run says so. That its change was merged is saved.
func (e *Engine) rests(ctx context.Context, t *task, last *run.Run) error {
	merged, err := e.look.Rests(ctx, t.Base, t.Plan, *last)
	if merged {
		if serr := e.accepted(ctx, *last); serr != nil {
			return serr
		}
	}
	return err
}

// Accepted closes the run that made a change which was merged, and settles what a dead holder left
// of it. closed is false when there was nothing to close. Typed again after a crash it goes on.
func (e *Engine) Accepted(ctx context.Context, id string) (closed bool, err error) {
	r, err := e.Store.Load(ctx, id)
	if err == nil && r.Pushed != "" && len(r.Effects) > 0 {
		r, err = e.resume(ctx, nil, r)
	}
	if err == nil && r.State == run.InReview {
		closed, err = true, e.accepted(ctx, r)
	}
	var held *HeldError
	if errors.As(err, &held) {
		err = held.Refusal(0, e.RepoPath)
	}
	return closed, err
}

// accepted saves that the change of a run was merged, in the place of whoever died doing so.
func (e *Engine) accepted(ctx context.Context, r run.Run) error {
	l, _, _, err := e.takeOver(ctx, store.Key(r.Repo, r.Issue), r)
	if err != nil {
		return err
	}
	if r, err = e.Store.Load(ctx, r.ID); err == nil && r.State == run.InReview {
		var next run.Run
		if next, _, err = run.Apply(r, run.Accepted{Head: r.Head.Hash}); err == nil {
			next.Updated = e.Clock.Wall()
			_, err = e.Store.Save(ctx, l, next, run.Accepted{Head: r.Head.Hash})
		}
	}
	return errors.Join(err, e.Store.Release(ctx, l))
}

// workNext works the first eligible issue, waiting as long as was asked while one is held. An
// issue that is held, in review or parked is passed over; each is said with its reason.
func (e *Engine) workNext(ctx context.Context, t *task) (run.Run, error) {
	begin, told := e.Clock.Now(), map[string]bool{}
	for {
		r, held, err := e.workAny(ctx, t, told)
		if !held || e.Clock.Now()-begin >= t.Wait {
			return r, err
		}
		select {
		case <-ctx.Done():
			return run.Run{}, e.interrupted(run.Run{})
		case <-time.After(4 * waitEvery):
		}
	}
}

// workAny tries the open issues in order. held says that one of those passed over is held.
func (e *Engine) workAny(ctx context.Context, t *task, told map[string]bool) (r run.Run, held bool, err error) {
	issues, err := e.Forge.Issues(ctx, forge.Filter{State: "open"})
	if err != nil {
		return run.Run{}, false, fmt.Errorf("list issues: %w", err)
	}
	for _, is := range issues {
		r, err := e.workOnce(ctx, t, is.Number)
		why := passOver(err)
		if why == "" {
			return r, false, err
		}
		held = held || errors.As(err, new(*HeldError))
		if !told[why] {
			told[why] = true
			e.Notify(Notice{At: e.Clock.Wall(), Issue: is.Number, Kind: "passed over", Text: why})
		}
	}
	what := fmt.Sprintf("no eligible issue among the %d open ones of %s", len(issues), e.Forge.Name())
	if len(issues) == 0 {
		what = "there is no open issue in " + e.Forge.Name()
	}
	return run.Run{}, held, &Refusal{
		Exit: run.ExitRefused, What: what,
		Safe: "nothing was started", Next: fmt.Sprintf("interlock issue new --repo %s --title 'what is wrong'", text.Quote(e.RepoPath)),
	}
}

// passOver returns why the next issue may be tried after this error, "" if it may not: only an
// issue that was not started is passed over.
func passOver(err error) string {
	var held *HeldError
	if errors.As(err, &held) {
		return held.Error()
	}
	var refusal *Refusal
	if errors.As(err, &refusal) && refusal.NotStarted {
		return refusal.What
	}
	return ""
}
