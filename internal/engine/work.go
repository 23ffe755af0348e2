package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"interlock/internal/agent"
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
		var held *heldError
		if !errors.As(err, &held) {
			return r, err
		}
		left := t.Wait - (e.Clock.Now() - begin)
		if left <= 0 {
			return r, held.refusal(t.Wait, e.RepoPath)
		}
		if !told {
			told = true
			e.Notify(Notice{At: e.Clock.Wall(), Issue: issue, Kind: "waiting", Text: held.Error() + fmt.Sprintf("; waiting up to %s", t.Wait)})
		}
		select {
		case <-ctx.Done():
			return r, e.interrupted(run.Run{})
		case <-time.After(min(left, held.every())):
		}
	}
}

// workOnce goes on with the newest run of the issue if there is something to go on with, and
// opens a new run otherwise.
func (e *Engine) workOnce(ctx context.Context, t *task, issue int64) (_ run.Run, err error) {
	defer func() { err = damagedRun(issue, err) }()
	last, err := e.last(ctx, issue)
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
	if err := e.ready(ctx, t); err != nil {
		return run.Run{}, err
	}
	if last != nil {
		if err := e.rests(ctx, t, last); err != nil {
			return *last, err
		}
	}
	return e.open(ctx, t, issue, last)
}

// last returns the newest run of an issue, nil if there is none. One that cannot be read stops its
// issue: what was done for it is not known, so nothing may be done again.
func (e *Engine) last(ctx context.Context, issue int64) (*run.Run, error) {
	runs, err := e.Store.List(ctx, store.Filter{Repo: e.RepoKey, Issue: issue, Limit: 1})
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	r, err := e.Store.Load(ctx, runs[0].ID)
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// rests refuses to start again where the last run says so: its change waits for a reviewer, or
// nothing has changed since it was parked.
func (e *Engine) rests(ctx context.Context, t *task, last *run.Run) error {
	switch last.State {
	case run.InReview:
		return e.inReview(ctx, last)
	case run.Parked, run.Done:
		precond, err := e.precondition(ctx, t, last.Issue)
		if err != nil || precond != last.Precond || precond == "" {
			return err
		}
		next := last.Next
		if next == "" {
			next = "interlock show " + last.ID
		}
		return &Refusal{
			Exit: run.ExitRefused,
			What: fmt.Sprintf("issue %d is %s by run %s: %s; nothing it depends on has changed since", last.Issue, last.State, last.ID, last.Reason),
			Safe: "nothing was started; its work is kept", Next: next, Then: last.Then, NotStarted: true,
		}
	}
	return nil
}

// inReview tells what became of the change of a run in review. Only a change that was closed
// without being merged, of an issue that is still open, makes room for a new run.
func (e *Engine) inReview(ctx context.Context, last *run.Run) error {
	changes, err := e.Forge.Changes(ctx, last.Branch)
	if err != nil {
		return fmt.Errorf("look at change %d: %w", last.Change, err)
	}
	i := slices.IndexFunc(changes, func(c forge.Change) bool { return c.Number == last.Change })
	if i >= 0 && changes[i].State == "closed" {
		return nil
	}
	if i >= 0 && changes[i].State == "merged" {
		if err := e.accepted(ctx, *last); err != nil {
			return err
		}
		return &Refusal{
			Exit: run.ExitRefused,
			What: fmt.Sprintf("issue %d is done: change %d of run %s was accepted", last.Issue, last.Change, last.ID),
			Safe: "nothing was started", Next: fmt.Sprintf("interlock change show %d --repo %s", last.Change, text.Quote(e.RepoPath)),
			NotStarted: true,
		}
	}
	return e.waits(last.Issue, last.Change, "of run "+last.ID)
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
	var held *heldError
	if errors.As(err, &held) {
		err = held.refusal(0, e.RepoPath)
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

// waits says that a change for the issue waits for a reviewer.
func (e *Engine) waits(issue, change int64, whose string) *Refusal {
	return &Refusal{
		Exit: run.ExitWaits, What: fmt.Sprintf("issue %d is in review: change %d %s waits for a reviewer", issue, change, whose),
		Safe: "nothing was started", Next: fmt.Sprintf("interlock change show %d --repo %s", change, text.Quote(e.RepoPath)),
		NotStarted: true,
	}
}

// proposed refuses an issue for which a change is open on the forge, whoever made it: another
// installation's run, or a person.
func (e *Engine) proposed(ctx context.Context, issue int64) error {
	c, err := e.openChange(ctx, issue)
	if err != nil || c == nil {
		return err
	}
	return e.waits(issue, c.Number, "of "+c.Author)
}

// openChange returns the open change for an issue, nil if there is none.
func (e *Engine) openChange(ctx context.Context, issue int64) (*forge.Change, error) {
	changes, err := e.Forge.Changes(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("look for changes of issue %d: %w", issue, err)
	}
	for _, c := range changes {
		if c.Issue == issue && c.State == "open" {
			return &c, nil
		}
	}
	return nil, nil
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
		held = held || errors.As(err, new(*heldError))
		if !told[why] {
			told[why] = true
			e.Notify(Notice{At: e.Clock.Wall(), Issue: is.Number, Kind: "passed over", Text: why})
		}
	}
	return run.Run{}, held, &Refusal{
		Exit: run.ExitRefused,
		What: fmt.Sprintf("no eligible issue among the %d open ones of %s", len(issues), e.Forge.Name()),
		Safe: "nothing was started", Next: fmt.Sprintf("interlock issue new --repo %s --title 'what is wrong'", text.Quote(e.RepoPath)),
	}
}

// passOver returns why the next issue may be tried after this error, "" if it may not: only an
// issue that was not started is passed over.
func passOver(err error) string {
	var held *heldError
	if errors.As(err, &held) {
		return held.Error()
	}
	var refusal *Refusal
	if errors.As(err, &refusal) && refusal.NotStarted {
		return refusal.What
	}
	return ""
}
