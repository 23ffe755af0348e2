package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"interlock/internal/failpoint"
	"interlock/internal/forge"
	"interlock/internal/git"
	"interlock/internal/run"
)

// The labels by which a claim is seen on the forge. They are a display, never a lock.
const (
	labelWorking  = "interlock/working"
	labelInReview = "interlock/in-review"
	labelParked   = "interlock/parked"
)

// effectTries is how often an effect whose outcome is unknown is probed before the run stops
// with exit code 5. Each try looks in the world first.
const effectTries = 4

// settle does the first pending effect of a run, or finds that it has happened, and saves which.
// Each do-function looks in the world before it acts: that is what makes a second try harmless.
func (e *Engine) settle(h *hold, r run.Run, f run.Effect) (run.Run, error) {
	pause := 100 * time.Millisecond
	for try := 1; ; try++ {
		if err := h.Check(); err != nil {
			return r, err
		}
		failpoint.Here("before effect " + string(f.Kind))
		ev, err := e.do(h, r, f)
		failpoint.Here("after effect " + string(f.Kind))
		if ferr := failpoint.Fault("effect " + string(f.Kind)); err == nil && ferr != nil {
			err = fmt.Errorf("%w: %w", forge.ErrUnknown, ferr)
		}
		if err == nil {
			return h.apply(r, ev)
		}
		if !errors.Is(err, forge.ErrUnknown) || try == effectTries {
			return r, fmt.Errorf("%s: %w", f.Kind, err)
		}
		e.say(r, "unknown", "%s: %v; looking whether it happened", f.Kind, err)
		select {
		case <-h.live.Done():
			return r, context.Cause(h.live)
		case <-time.After(pause):
		}
		pause *= 3
	}
}

// do carries out one effect and returns the event to save.
func (e *Engine) do(h *hold, r run.Run, f run.Effect) (run.Event, error) {
	ctx := h.live
	switch f.Kind {
	case run.EffectClaim:
		return e.doClaim(ctx, r, f)
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

func (e *Engine) doClaim(ctx context.Context, r run.Run, f run.Effect) (run.Event, error) {
	c, err := e.claims.Take(ctx, r.Issue, r.Claim.Nonce, holderName(e.Holder))
	var held *forge.HeldError
	switch {
	case errors.As(err, &held):
		return run.Refused{Reason: heldOnForge(r.Issue, held.Claim).Error()}, nil
	case errors.Is(err, git.ErrRefused):
		return run.Refused{Reason: fmt.Sprintf("the forge refuses the claim: %v", err)}, nil
	case err != nil:
		return nil, err
	}
	claim := claimOf(c)
	return run.Settled{Key: f.Key, Claim: &claim}, nil
}

func (e *Engine) doMark(ctx context.Context, r run.Run, f run.Effect) (run.Event, error) {
	// Between our look and our claim another installation may have finished the issue.
	if c, err := e.openChange(ctx, r.Issue); err != nil {
		return nil, err
	} else if c != nil {
		return run.CanceledBy{Reason: fmt.Sprintf("change %d for the issue was opened while it was being claimed", c.Number)}, nil
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

// doPropose opens the one change for the run's branch. Whatever open change for the branch is
// there, ours from before a crash or a person's, is adopted.
func (e *Engine) doPropose(ctx context.Context, r run.Run, f run.Effect) (run.Event, error) {
	if ev, err := e.stillOpen(ctx, r); ev != nil || err != nil {
		return ev, err
	}
	found, err := e.findChange(ctx, r)
	if err != nil {
		return nil, err
	}
	if found == nil {
		_, err = e.Forge.Propose(ctx, forge.Change{
			Issue: r.Issue, Title: r.Task.Title, Body: changeBody(r), Head: r.Branch,
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
	}
	failpoint.Here("after-propose")
	e.say(r, "proposed", "change %d: %s", found.Number, r.Task.Title)
	return run.Settled{Key: f.Key, Change: found.Number, Found: found.Marker != r.ID}, nil
}

func changeBody(r run.Run) string {
	tests := "tests were not counted"
	if r.Verdict != nil && r.Verdict.Tests != nil {
		tests = fmt.Sprintf("%d tests ran", *r.Verdict.Tests)
	}
	return fmt.Sprintf("Closes #%d\n\nVerified at %s on %s at %s: the checks passed, %s.\nRun %s, attempt %d, sandbox %s.\n",
		r.Issue, r.Head.Hash, r.Base.Branch, r.Base.Commit.Hash, tests, r.ID, r.Attempt, r.Sandbox)
}

func (e *Engine) doHandoff(ctx context.Context, r run.Run, f run.Effect) (run.Event, error) {
	text := fmt.Sprintf("Change %d is ready for review: branch %s at %s. To accept it: interlock change accept %d", r.Change, r.Branch, r.Head.Hash, r.Change)
	if _, err := e.Forge.Comment(ctx, r.Issue, f.Key, text); gone(err) != nil {
		return nil, err
	}
	failpoint.Here("between comment and mark")
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
	c, ok, err := e.claims.Read(ctx, r.Issue)
	if err != nil {
		return nil, err
	}
	if !ok || c.Nonce != r.Claim.Nonce || c.Released {
		return run.Settled{Key: f.Key, Found: true, Note: "nothing of ours to release"}, nil
	}
	if err := e.claims.Release(ctx, c); err != nil && !errors.Is(err, forge.ErrLost) {
		return nil, err
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
