package engine

import (
	"context"
	"errors"
	"fmt"

	"interlock/internal/claim"
	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/text"
)

// Retried is what a retry did.
type Retried struct {
	Run run.Run
	// Asked is true when this call is the one that counts: nobody had asked before.
	Asked bool
	// Changed names what the run depends on and has changed since it ended; empty: nothing has.
	Changed []string
}

// Retry takes away what keeps the issue of a run that rests from being worked again, on a person's
// word. It is saved before it returns, and counts once: the next run of the issue uses it up. It
// starts nothing.
func (e *Engine) Retry(ctx context.Context, id, reason string) (Retried, error) {
	r, err := e.Store.Load(ctx, id)
	if err == nil {
		err = e.ours(r, "retry")
	}
	if err != nil {
		return Retried{Run: r}, err
	}
	if r.State.Live() {
		return Retried{Run: r}, e.notEnded(ctx, r)
	}
	last, err := e.look.Last(ctx, r.Issue)
	switch {
	case err != nil:
		return Retried{Run: r}, err
	case last.ID != r.ID:
		return Retried{Run: r}, &Refusal{
			Exit: run.ExitRefused, What: fmt.Sprintf("issue %d was worked again since run %s: its newest run is %s, which is %s", r.Issue, r.ID, last.ID, last.State),
			Safe: "nothing was changed", Next: "interlock explain " + last.ID,
		}
	}
	done := Retried{Run: r}
	if done.Changed, err = e.look.Changed(ctx, r); err != nil {
		return done, err
	}
	if err := e.openToRetry(ctx, r); err != nil {
		return done, err
	}
	if r.State == run.InReview {
		done.Changed = append(done.Changed, fmt.Sprintf("change %d was turned down", r.Change))
	}
	done.Run, done.Asked, err = e.retry(ctx, r, reason)
	var held *HeldError
	if errors.As(err, &held) {
		err = held.Refusal(0, e.RepoPath)
	}
	return done, err
}

// notEnded refuses to work again what still goes on: who drives it is watched, and what nobody
// drives is gone on with.
func (e *Engine) notEnded(ctx context.Context, r run.Run) error {
	d, err := claim.Drives(ctx, e.Store, e.Holder, r)
	if err != nil {
		return err
	}
	refusal := &Refusal{
		Exit: run.ExitRefused, What: fmt.Sprintf("run %s of issue %d has not ended: it is %s (%s)", r.ID, r.Issue, r.State, r.Reason),
		Safe: "nothing was changed", Next: fmt.Sprintf("interlock run --repo %s --issue %d", text.Quote(e.RepoPath), r.Issue),
	}
	if d.By != "" && !d.Gone {
		refusal.What, refusal.Next = refusal.What+"; "+d.By+" works on it", "interlock watch "+r.ID
	}
	return refusal
}

// openToRetry refuses to work again what has a change, unless that was turned down.
func (e *Engine) openToRetry(ctx context.Context, r run.Run) error {
	switch {
	case r.State == run.InReview:
		return e.rests(ctx, &task{}, &r)
	case r.State != run.Done || r.Change == 0:
		return nil
	}
	return &Refusal{
		Exit: run.ExitRefused, What: fmt.Sprintf("run %s of issue %d is done: its change %d was accepted", r.ID, r.Issue, r.Change),
		Safe: "nothing was changed", Next: fmt.Sprintf("interlock change show %d --repo %s", r.Change, text.Quote(e.RepoPath)),
	}
}

// retry saves the wish with the run, under the lease of its issue; asked is false when it was there
// already. What a dead holder left to be settled comes first.
func (e *Engine) retry(ctx context.Context, r run.Run, reason string) (_ run.Run, asked bool, err error) {
	if len(r.Effects) > 0 {
		var refused *Refusal
		next, err := e.resume(ctx, nil, r)
		if err != nil && !(errors.As(err, &refused) && len(next.Effects) == 0) { // how it rests is no error here
			return r, false, err
		}
	}
	l, _, _, err := e.takeOver(ctx, store.Key(r.Repo, r.Issue), r)
	if err != nil {
		return r, false, err
	}
	if r, err = e.Store.Load(ctx, r.ID); err == nil && r.Retry == "" {
		ev := run.Retried{Reason: reason}
		if r.Spent >= max(r.Plan.Attempts, r.Allowed) {
			ev.Allowed = r.Spent + 1
		}
		var next run.Run
		if next, _, err = run.Apply(r, ev); err == nil {
			next.Updated = e.Clock.Wall()
			r, err = e.Store.Save(ctx, l, next, ev)
			asked = err == nil
		}
	}
	return r, asked, errors.Join(err, e.Store.Release(ctx, l))
}

// ours refuses a run of another repository.
func (e *Engine) ours(r run.Run, verb string) error {
	if r.Repo == e.RepoKey {
		return nil
	}
	return &Refusal{
		Exit: run.ExitRefused, What: fmt.Sprintf("run %s is of another repository than the one at %s", r.ID, e.RepoPath),
		Safe: "nothing was changed", Next: fmt.Sprintf("interlock %s %s --repo PATH", verb, r.ID),
		Then: "PATH is the path that repository has now",
	}
}
