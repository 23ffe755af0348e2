package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"interlock/internal/claim"
	"interlock/internal/engine/eligibility"
	"interlock/internal/failpoint"
	"interlock/internal/forge"
	"interlock/internal/git"
	"interlock/internal/run"
	"interlock/internal/text"
)

// The labels by which a claim is seen on the forge. They are a display, never a lock.
const (
	labelWorking  = "interlock/working"
	labelInReview = "interlock/in-review"
	labelParked   = "interlock/parked"
)

// effectTries is how often an effect whose outcome is unknown is probed before the run stops
// with exit code 5. Each try looks in the world first.
const effectTries = 3

// effectTotal bounds all tries of one effect: each may push a few times.
const effectTotal = effectTries * 6 * run.GitTotal

// settle does the first pending effect of a run, or finds that it has happened, and saves which.
// Each do-function looks in the world before it acts: that is what makes a second try harmless.
func (e *Engine) settle(h *hold, r run.Run, f run.Effect) (run.Run, error) {
	h.Within(effectTotal)
	pause := 100 * time.Millisecond
	for try := 1; ; try++ {
		if err := h.Check(); err != nil {
			return r, err
		}
		ev, err := e.attempt(h, r, f)
		if err == nil {
			return h.Apply(r, ev)
		}
		if !unknown(err) || try == effectTries {
			return r, fmt.Errorf("%s: %w", f.Kind, err)
		}
		if h.Session.Err() != nil { // whoever asked us to stop is not kept waiting
			return r, errors.Join(context.Cause(h.Session), fmt.Errorf("%s: %w", f.Kind, err))
		}
		e.say(r, "unknown", "%s: %v; looking whether it happened", f.Kind, err)
		select {
		case <-h.Session.Done():
		case <-time.After(pause):
		}
		pause *= 3
	}
}

// attempt is one try at an effect: the claim is looked at, the effect is looked for or done, and
// an answer that will not change is turned into the event that lets the run rest.
func (e *Engine) attempt(h *hold, r run.Run, f run.Effect) (run.Event, error) {
	failpoint.Here("before effect " + string(f.Kind))
	e.restore(h.Effects)
	ev, err := e.underClaim(h, r, f)
	if ev == nil && err == nil {
		ev, err = e.do(h, r, f)
	}
	e.restore(h.Effects) // so that what was just written is kept, too
	failpoint.Here("after effect " + string(f.Kind))
	if ferr := failpoint.Fault("effect " + string(f.Kind)); err == nil && ferr != nil {
		err = fmt.Errorf("%w: %w", forge.ErrUnknown, ferr)
	}
	if err != nil && !unknown(err) {
		if instead := e.instead(r, f, err); instead != nil {
			e.say(r, "refused", "%s: %v", f.Kind, err)
			return instead, nil
		}
	}
	return ev, err
}

// unknown reports whether an effect may or may not have happened. A remote that cannot be read
// says nothing about it.
func unknown(err error) bool {
	return errors.Is(err, forge.ErrUnknown) || errors.Is(err, git.ErrUnknown) ||
		errors.Is(err, git.ErrRefused) && !errors.Is(err, forge.ErrDenied)
}

// underClaim verifies the claim before an effect that others see. Without it a live run stops and
// writes nothing more; a run that rests already leaves unsaid what it had to say.
func (e *Engine) underClaim(h *hold, r run.Run, f run.Effect) (run.Event, error) {
	if f.Kind == run.EffectClaim || f.Kind == run.EffectRelease {
		return nil, nil // these look themselves
	}
	_, err := e.claims.Mine(h.Effects, r)
	switch {
	case !errors.Is(err, forge.ErrLost):
		return nil, err
	case r.State.Live():
		return e.claimLost(r, err.Error()), nil
	}
	return run.Settled{Key: f.Key, Note: "left unsaid: " + err.Error()}, nil
}

// instead is what happens when the forge says no for good: what would have published work parks
// the run, what would only have been said is left unsaid.
func (e *Engine) instead(r run.Run, f run.Effect, err error) run.Event {
	final := errors.Is(err, forge.ErrInvalid) || errors.Is(err, forge.ErrDenied) || errors.Is(err, forge.ErrNotFound) || errors.Is(err, forge.ErrDamaged)
	switch {
	case !final || f.Kind == run.EffectPush:
		return nil
	case f.Kind == run.EffectNote, f.Kind == run.EffectUnmark, f.Kind == run.EffectHandoff, f.Kind == run.EffectRelease:
		return run.Settled{Key: f.Key, Note: fmt.Sprintf("could not be done: %v", err)}
	}
	parked := run.ParkedBecause{
		Reason: fmt.Sprintf("the forge refuses the %s: %v", f.Kind, err), Say: fmt.Sprintf("The forge refuses the %s.", f.Kind),
		Next: "interlock show " + r.ID, Then: "see to it, then type the command again", Exit: run.ExitRefused,
	}
	if errors.Is(err, forge.ErrInvalid) { // what we ask for is refused, so the same would be refused again
		parked.Precond = eligibility.Precondition(r.Task.Digest, r.Base.Commit.Hash, r.Plan)
		repo := text.Quote(e.RepoPath)
		parked.Next = fmt.Sprintf("interlock issue show %d --repo %s", r.Issue, repo)
		parked.Then = fmt.Sprintf("change what is wrong in it; or close it: interlock issue close %d --repo %s", r.Issue, repo)
	}
	return parked
}

// do carries out one effect and returns the event to save.
func (e *Engine) do(h *hold, r run.Run, f run.Effect) (run.Event, error) {
	ctx := h.Effects
	switch f.Kind {
	case run.EffectClaim:
		return e.doClaim(h, r, f)
	case run.EffectMark:
		return e.doMark(ctx, r, f)
	case run.EffectPush:
		return e.doPush(ctx, r, f)
	case run.EffectPropose:
		return e.doPropose(ctx, r, f)
	case run.EffectHandoff:
		return e.doHandoff(ctx, r, f)
	case run.EffectNote:
		return e.doNote(ctx, r, f)
	case run.EffectUnmark:
		return e.doUnmark(ctx, r, f)
	case run.EffectRelease:
		return e.doRelease(ctx, r, f)
	}
	return nil, fmt.Errorf("unknown effect %q", f.Kind)
}

func (e *Engine) doClaim(h *hold, r run.Run, f run.Effect) (run.Event, error) {
	c, err := e.claims.Take(h.Effects, r)
	var held *claim.HeldError
	if errors.As(err, &held) {
		h.heldBy = eligibility.OnForge(held)
		return run.Refused{Reason: h.heldBy.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	h.claimed = e.Clock.Now()
	return run.Settled{Key: f.Key, Claim: &c}, nil
}

func (e *Engine) doMark(ctx context.Context, r run.Run, f run.Effect) (run.Event, error) {
	// Between our look and our claim another installation may have finished the issue.
	if c, err := e.look.OpenChange(ctx, r.Issue); err != nil {
		return nil, err
	} else if c != nil {
		return run.CanceledBy{Reason: fmt.Sprintf("change %d for the issue was opened while it was being claimed", c.Number)}, nil
	}
	if err := e.claims.Unmark(ctx, r); gone(err) != nil {
		return nil, fmt.Errorf("take off the mark of the holder before: %w", err)
	}
	err := e.Forge.SetMark(ctx, r.Issue, forge.Mark{
		Nonce: r.Claim.Nonce, Login: e.Login, Label: labelWorking,
		Text: fmt.Sprintf("Interlock works on this issue (run %s).", r.ID),
	})
	if errors.Is(err, forge.ErrClosed) || errors.Is(err, forge.ErrNotFound) {
		return run.CanceledBy{Reason: "the issue was closed or removed while it was being claimed"}, nil
	}
	if err != nil {
		return nil, err
	}
	e.say(r, "marked", "claimed on %s", e.Forge.Name())
	return run.Settled{Key: f.Key}, nil
}

// doPropose opens the one change for the run's branch. Whatever change for the branch is there,
// ours from before a crash or a person's, is adopted, also one that was merged meanwhile.
func (e *Engine) doPropose(ctx context.Context, r run.Run, f run.Effect) (run.Event, error) {
	found, err := e.findChange(ctx, r)
	if err != nil {
		return nil, err
	}
	if found != nil {
		return e.proposedAs(r, f, *found, true)
	}
	if ev, err := e.stillOpen(ctx, r); ev != nil || err != nil {
		return ev, err
	}
	_, err = e.Forge.Propose(ctx, forge.Change{
		Issue: r.Issue, Title: r.Task.Title, Body: r.ChangeText(), Head: r.Branch,
		HeadAt: r.Head.Hash, Base: r.Base.Branch, BaseAt: r.Base.Commit.Hash, Author: e.Login, Marker: r.ID,
	})
	if err != nil && !errors.Is(err, forge.ErrExists) {
		return nil, err
	}
	if found, err = e.findChange(ctx, r); err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fmt.Errorf("%w: the change for %s was opened but is not listed", forge.ErrUnknown, r.Branch)
	}
	return e.proposedAs(r, f, *found, false)
}

// proposedAs settles a proposal with the change that is there.
func (e *Engine) proposedAs(r run.Run, f run.Effect, c forge.Change, found bool) (run.Event, error) {
	if c.State == "closed" {
		return run.ParkedBecause{
			Reason: fmt.Sprintf("change %d of this run was closed by a person", c.Number), Exit: run.ExitRefused,
			Next: fmt.Sprintf("interlock change show %d --repo %s", c.Number, text.Quote(e.RepoPath)),
		}, nil
	}
	e.say(r, "proposed", "change %d: %s", c.Number, r.Task.Title)
	return run.Settled{Key: f.Key, Change: c.Number, Found: found}, nil
}

func (e *Engine) doHandoff(ctx context.Context, r run.Run, f run.Effect) (run.Event, error) {
	text := fmt.Sprintf("Change %d is ready for review: branch %s at %s. To accept it: interlock change accept %d", r.Change, r.Branch, r.Head.Hash, r.Change)
	if _, err := e.Forge.Comment(ctx, r.Issue, f.Key, text); gone(err) != nil {
		return nil, err
	}
	if err := e.Forge.ClearMark(ctx, r.Issue, r.Claim.Nonce, labelInReview); gone(err) != nil {
		return nil, err
	}
	e.say(r, "in review", "change %d waits for a reviewer", r.Change)
	return run.Settled{Key: f.Key}, nil
}

func (e *Engine) doNote(ctx context.Context, r run.Run, f run.Effect) (run.Event, error) {
	if _, err := e.Forge.Comment(ctx, r.Issue, f.Key, f.Text); gone(err) != nil {
		return nil, err
	}
	return run.Settled{Key: f.Key}, nil
}

func (e *Engine) doUnmark(ctx context.Context, r run.Run, f run.Effect) (run.Event, error) {
	then := ""
	if r.State == run.Parked {
		then = labelParked
	}
	if err := e.Forge.ClearMark(ctx, r.Issue, r.Claim.Nonce, then); gone(err) != nil {
		return nil, err
	}
	return run.Settled{Key: f.Key}, nil
}

// doRelease gives the claim ref back. A claim that is not ours any more needs no release.
func (e *Engine) doRelease(ctx context.Context, r run.Run, f run.Effect) (run.Event, error) {
	settled, err := e.claims.Release(ctx, r)
	if err != nil {
		return nil, err
	}
	if settled {
		return run.Settled{Key: f.Key, Found: true, Note: "nothing of ours to release"}, nil
	}
	return run.Settled{Key: f.Key}, nil
}

// gone drops the error that says that the issue is not there any more: there is then nobody left
// to tell and nothing left to take off.
func gone(err error) error {
	if errors.Is(err, forge.ErrNotFound) {
		return nil
	}
	return err
}

// stillOpen parks a run whose issue was closed or removed before its work was published.
func (e *Engine) stillOpen(ctx context.Context, r run.Run) (run.Event, error) {
	is, err := e.Forge.Issue(ctx, r.Issue)
	if err != nil && !errors.Is(err, forge.ErrNotFound) {
		return nil, fmt.Errorf("read issue %d: %w", r.Issue, err)
	}
	if err == nil && is.State == "open" {
		return nil, nil
	}
	return run.ParkedBecause{
		Reason: fmt.Sprintf("issue %d was closed or removed before its work was published", r.Issue),
		Next:   "interlock show " + r.ID, Exit: run.ExitRefused,
	}, nil
}
