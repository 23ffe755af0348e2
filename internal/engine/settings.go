package engine

import (
	"context"
	"fmt"
	"strings"

	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/shell"
	"interlock/internal/text"
)

// ready prepares a task for its own plan, once: that of a new run.
func (e *Engine) ready(ctx context.Context, t *task) error {
	if t.agent != nil {
		return nil
	}
	if t.Missing != nil {
		return t.Missing
	}
	p, err := e.prepare(ctx, t.Request)
	if err == nil {
		p.as = t.as
		*t = *p
	}
	return err
}

// readyFor is ready, for a new run of an issue whose last run is there, or nil.
func (e *Engine) readyFor(ctx context.Context, t *task, last *run.Run) error {
	if t.Again && last != nil && t.agent == nil {
		plan, err := t.Onto(last.Plan)
		if err != nil {
			return err
		}
		t.Plan, t.Missing = plan, nil
		if t.Base == "" {
			t.Base = last.Base.Branch
		}
	}
	return e.ready(ctx, t)
}

// started is the task with which a run of a plan is gone on with.
type started struct {
	plan run.Plan
	task *task
}

// asStarted is the task with which a run is gone on with: what the run was started with, and what
// the operator typed now. What configuration files say by now does not come into it.
func (e *Engine) asStarted(ctx context.Context, t *task, r run.Run) (*task, error) {
	if t == nil || t.Onto == nil {
		return t, nil
	}
	if s, ok := t.as[r.ID]; ok && samePlan(s.plan, r.Plan) {
		return s.task, nil // a held run is looked at several times a second
	}
	plan, err := t.Onto(r.Plan)
	if err != nil {
		return nil, &Refusal{
			Exit: run.ExitUsage, What: fmt.Sprintf("run %s of issue %d: %v", r.ID, r.Issue, err),
			Safe: "nothing was changed", Next: "interlock show " + r.ID, Err: err,
		}
	}
	req := t.Request
	req.Plan, req.Issue = plan, r.Issue
	next, err := e.prepare(ctx, req)
	if err != nil {
		return nil, err
	}
	if t.as == nil {
		t.as = map[string]started{}
	}
	t.as[r.ID] = started{r.Plan, next}
	return next, nil
}

// haveChecks refuses a check whose program is known not to be where checks run. A path below the
// tree, and what only a shell can tell, is left to the check.
func (e *Engine) haveChecks(p run.Plan) error {
	path := e.path(p)
	for _, line := range p.Checks {
		if word, found := shell.Look(line, path); found == shell.Missing && word != "interlock" {
			return &Refusal{
				Exit: run.ExitUsage, What: fmt.Sprintf("the check %s cannot pass: there is no program %s where checks run (%s)", text.Quote(line), text.Quote(word), path),
				Safe: "nothing was started", Next: "interlock config show",
			}
		}
	}
	return nil
}

// path is the PATH that sessions and checks of a plan run with.
func (e *Engine) path(p run.Plan) string {
	path := e.work.Path
	if p.Sandbox == string(sandbox.None) {
		for _, kv := range e.Env {
			if v, ok := strings.CutPrefix(kv, "PATH="); ok {
				path = v
			}
		}
	}
	return path
}
