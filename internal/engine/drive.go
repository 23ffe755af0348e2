package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"interlock/internal/forge"
	"interlock/internal/lease"
	"interlock/internal/run"
)

// hold is the lease under which a run is driven, with what its driving goroutine knows beside it.
type hold struct {
	*lease.Hold
	heldBy  *HeldError    // who holds the issue on the forge, when that made this run end
	claimed time.Duration // store time of the last renewal of the claim
}

// driveUnder drives a run under a lease that was just granted, and gives the lease back. begin is
// done first, under the lease.
func (e *Engine) driveUnder(ctx context.Context, t *task, r run.Run, l run.Lease, start time.Duration, begin func(*hold, run.Run) (run.Run, error)) (run.Run, error) {
	h := &hold{Hold: lease.Keep(ctx, e.Store, e.Clock, r.ID, l, start), claimed: start}
	r, err := begin(h, r)
	if err == nil {
		r, err = e.drive(ctx, h, t, r)
	}
	if h.heldBy != nil && err == nil {
		err = h.heldBy // somebody else was faster; that is no end of the issue
	}
	if cause := context.Cause(h.Live); err != nil && cause != nil {
		err = cause // what ended the work, not what the work made of it
	}
	if cerr := h.Close(ctx); cerr != nil && err == nil {
		err = fmt.Errorf("give the lease back: %w", cerr)
	}
	var held *HeldError
	if errors.As(err, &held) {
		return r, err
	}
	if err != nil {
		return r, e.explain(r, err)
	}
	return r, e.ended(r)
}

// drive is the loop: effects first, in order, then the step that the state asks for.
func (e *Engine) drive(ctx context.Context, h *hold, t *task, r run.Run) (run.Run, error) {
	for r.State.Live() || len(r.Effects) > 0 {
		if err := h.Check(); err != nil {
			return r, err
		}
		next, err := e.next(ctx, h, t, r)
		if err != nil {
			return r, err
		}
		r = next
	}
	return r, nil
}

// next does one thing: what a person asked for, an effect, or a step.
func (e *Engine) next(ctx context.Context, h *hold, t *task, r run.Run) (run.Run, error) {
	reason, asked, err := e.Store.Controls().Cancel(h.Live, r.ID)
	if err != nil {
		return r, fmt.Errorf("look for what people asked: %w", err)
	}
	if asked && r.State.Live() {
		if done, next, err := e.cancelNow(h, r, reason); err != nil || done {
			return next, err
		}
	}
	if ctx.Err() != nil && (r.State.Live() || len(r.Effects) == 0) {
		return r, lease.ErrInterrupted
	}
	if len(r.Effects) > 0 {
		return e.settle(h, r, r.Effects[0])
	}
	if t == nil {
		return r, fmt.Errorf("run %s in state %q has nothing to settle", r.ID, r.State)
	}
	switch r.State {
	case run.Implementing:
		return e.implement(h, t, r)
	case run.Verifying:
		return e.verify(h, r)
	}
	return r, fmt.Errorf("run %s rests in state %q with nothing to do", r.ID, r.State)
}

// cancelNow ends the run on a person's word. What a dead holder may have published already is
// looked for first: an open change cannot be taken back by a cancel, and a branch is named.
func (e *Engine) cancelNow(h *hold, r run.Run, reason string) (done bool, next run.Run, err error) {
	if r, err = e.adopt(h, r); err != nil {
		return false, r, err
	}
	if len(r.Effects) > 0 && r.Effects[0].Kind == run.EffectPropose {
		found, err := e.findChange(h.Effects, r)
		if err != nil {
			return false, r, err
		}
		if found != nil {
			e.say(r, "cancel refused", "change %d is open already; it goes to review", found.Number)
			return false, r, nil
		}
	}
	if r.Change != 0 {
		return false, r, nil
	}
	if r.Pushed != "" {
		reason += fmt.Sprintf(" (branch %s is there already, at %s)", r.Branch, r.Pushed)
	}
	e.say(r, "canceled", "%s", reason)
	next, err = h.Apply(r, run.CanceledBy{Reason: reason})
	return true, next, err
}

// adopt settles a pending push that has happened already.
func (e *Engine) adopt(h *hold, r run.Run) (run.Run, error) {
	if len(r.Effects) == 0 || r.Effects[0].Kind != run.EffectPush {
		return r, nil
	}
	_, at, err := e.freeBranch(h.Effects, r)
	if err != nil || at != r.Head.Hash {
		return r, err
	}
	return e.settle(h, r, r.Effects[0])
}

// Cancel ends a run: whoever holds it is asked to; when nobody does, it is ended from here.
func (e *Engine) Cancel(ctx context.Context, id, reason string) (run.Run, error) {
	r, err := e.Store.Load(ctx, id)
	if err != nil {
		return r, err
	}
	if err := e.ours(r, "cancel"); err != nil {
		return r, err
	}
	if !r.State.Live() && len(r.Effects) == 0 {
		return r, &Refusal{
			Exit: run.ExitRefused, What: fmt.Sprintf("run %s of issue %d is %s, there is nothing to cancel", r.ID, r.Issue, r.State),
			Safe: "nothing was changed", Next: "interlock show " + r.ID,
		}
	}
	if err := e.Store.Controls().RequestCancel(ctx, id, reason); err != nil {
		return r, fmt.Errorf("ask for the cancel: %w", err)
	}
	r, err = e.finishCancel(ctx, r)
	if err != nil {
		return r, err
	}
	if r.State != run.Canceled {
		return r, &Refusal{
			Exit: run.ExitRefused, What: fmt.Sprintf("too late to cancel: run %s of issue %d is %s (%s)", r.ID, r.Issue, r.State, r.Reason),
			Safe: "nothing was lost", Next: "interlock show " + r.ID,
		}
	}
	return r, nil
}

// cancelWait is how long a live holder has to carry out a cancel before we say that it has not.
const cancelWait = 10 * time.Second

func (e *Engine) finishCancel(ctx context.Context, r run.Run) (run.Run, error) {
	begin := e.Clock.Now()
	for {
		next, err := e.resume(ctx, nil, r)
		var held *HeldError
		if !errors.As(err, &held) {
			var refusal *Refusal
			if errors.As(err, &refusal) && !next.State.Live() {
				err = nil // it rests, which is what we want to know
			}
			return next, err
		}
		if r, err = e.Store.Load(ctx, r.ID); err != nil {
			return r, err
		}
		if !r.State.Live() && len(r.Effects) == 0 {
			return r, nil
		}
		if e.Clock.Now()-begin > cancelWait {
			return r, &Refusal{
				Exit: run.ExitBusy, What: fmt.Sprintf("%v; it has not carried out the cancel yet", held),
				Safe: "the request is kept: the next thing that anybody does for this run is to end it",
				Next: "interlock show " + r.ID,
			}
		}
		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-time.After(lease.Every / 2):
		}
	}
}

// findChange returns the change for the run's branch: the open one, else the one that this run
// made, in whatever state; nil if there is none.
func (e *Engine) findChange(ctx context.Context, r run.Run) (*forge.Change, error) {
	changes, err := e.Forge.Changes(ctx, r.Branch)
	if err != nil {
		return nil, fmt.Errorf("look for a change of %s: %w", r.Branch, err)
	}
	var ours *forge.Change
	for _, c := range changes {
		if c.State == "open" {
			return &c, nil
		}
		if c.Marker == r.ID {
			ours = &c
		}
	}
	return ours, nil
}
