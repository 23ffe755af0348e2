package forge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"interlock/internal/git"
)

// claimTries bounds the rounds of one call: each but the first follows a push that met another
// one or whose answer was lost.
const claimTries = 5

// Claims makes, renews and gives back claim refs on a remote. It is the one implementation for
// all forges. Every write is a new commit, the child of the last, pushed with the old hash
// expected: so exactly one of many pushers wins, and generations only rise. Refs are never
// deleted here. Claims protect installations that follow the same rules from each other, not
// from a writer who forces a ref; a forced or deleted ref is noticed.
//
// A claim is kept in the first namespace that the remote accepts (see Namespaces); what is held
// in either excludes everybody else. Which one a remote accepts is found out by trying.
//
// Methods may be called by many goroutines and processes.
type Claims struct {
	Repo         *git.Repo // the engine's repository for this forge repository
	Remote       string    // URL or path that git pushes to
	Installation string    // names this state directory among others
	// Process names this process among all others, "" if it need not be told from them. With it, a
	// claim that another process of the installation has gone on with is lost to this one.
	Process string
	Now     func() time.Time // nil means time.Now; shown to people, decides nothing
	Git     *git.Git         // nil: found in PATH at the first use

	find  sync.Once
	found *git.Git
	fault error
	known sync.Map // issue to the newest Claim that is pinned
}

// Ref returns the name of an issue's claim ref in the first namespace.
func (c *Claims) Ref(issue int64) string { return refIn(0, issue) }

// Read returns the claim of an issue that decides who may work it, and whether there is one. What
// is there but cannot be read as a claim is returned with Damage set; what was seen held and is
// gone from the remote with Wiped set.
func (c *Claims) Read(ctx context.Context, issue int64) (Claim, bool, error) {
	s, err := c.survey(ctx, issue)
	if err != nil {
		return Claim{}, false, err
	}
	cl, there := s.decides()
	return cl, there, nil
}

// Take makes the claim of an issue ours. An absent or released claim is taken; one that carries
// our nonce is ours from an earlier call whose answer was lost, and is renewed; any other is a
// *HeldError. ErrDenied: the remote refuses, nothing was written. ErrUnknown: call again with the
// same nonce.
func (c *Claims) Take(ctx context.Context, issue int64, nonce, holder string) (Claim, error) {
	return c.take(ctx, issue, nonce, holder, Claim{})
}

// TakeOver is Take for an issue whose claim was abandoned, as the caller has made sure: a claim
// that is still exactly that one is taken, as its child. One that has moved is a *HeldError.
func (c *Claims) TakeOver(ctx context.Context, abandoned Claim, nonce, holder string) (Claim, error) {
	if abandoned.Damage != "" {
		return Claim{}, &HeldError{Issue: abandoned.Issue, Claim: abandoned}
	}
	return c.take(ctx, abandoned.Issue, nonce, holder, abandoned)
}

func (c *Claims) take(ctx context.Context, issue int64, nonce, holder string, over Claim) (Claim, error) {
	if issue <= 0 || !token(nonce) || !token(c.Installation) {
		return Claim{}, fmt.Errorf("take the claim of issue %d: %w: number, nonce or installation is malformed", issue, ErrInvalid)
	}
	by := hand{nonce: nonce, holder: holder, state: stateHeld, over: over}
	var last error
	for try := range claimTries {
		pause(ctx, try)
		s, err := c.survey(ctx, issue)
		if err != nil {
			return Claim{}, afterPush(last, err)
		}
		own, ours := s.own(c, nonce)
		ours = ours && !own.Released
		if cur, there := s.decides(); !ours && there && !cur.Free() && !cur.same(over) {
			return Claim{}, &HeldError{Issue: issue, Claim: cur}
		}
		var next Claim
		if ours {
			next, last = c.put(ctx, s, own.space(), by)
		} else {
			next, last = c.create(ctx, s, by)
		}
		if last == nil {
			return c.confirm(ctx, next)
		}
		if !again(last) {
			return Claim{}, fmt.Errorf("take the claim of issue %d: %w", issue, last)
		}
	}
	return Claim{}, fmt.Errorf("take the claim of issue %d: %w", issue, last)
}

// hand is who writes a claim, and what it is to say.
type hand struct {
	nonce, holder, state string
	over                 Claim // the one that is taken over or broken, if any
}

// what names what the hand does.
func (h hand) what() string {
	switch {
	case h.state == stateReleased:
		return "break"
	case h.over.Hash != "":
		return "take-over"
	}
	return "take"
}

// create writes a claim into the first namespace that the remote does not refuse.
func (c *Claims) create(ctx context.Context, s survey, by hand) (Claim, error) {
	first := c.remembered(ctx)
	if by.over.Hash != "" {
		first = by.over.space() // where it excludes us
	}
	next, err := c.put(ctx, s, first, by)
	if !errors.Is(err, ErrDenied) {
		return next, err
	}
	next, other := c.put(ctx, s, 1-first, by)
	if other == nil {
		c.remember(ctx, 1-first, next)
		return next, nil
	}
	if errors.Is(other, ErrDenied) {
		return Claim{}, err // its own words: the place that was meant for claims
	}
	return Claim{}, other
}

// put pushes a claim of ours into one namespace, as the child of all that went before.
func (c *Claims) put(ctx context.Context, s survey, space int, by hand) (Claim, error) {
	next, err := c.child(ctx, s.place(space), by.over, by.nonce, by.holder, by.state, s.at[0], s.at[1], s.seen)
	if err != nil {
		return Claim{}, err
	}
	_, err = c.push(ctx, by.what(), update(next, s.at[space].Hash))
	return next, err
}

// confirm looks, after a claim of ours was written in one namespace, whether another installation
// has written one in the other namespace meanwhile. Everybody writes first and looks then, so of
// two at least one sees the other; whoever sees one yields. Both may, but never do both go on.
func (c *Claims) confirm(ctx context.Context, next Claim) (Claim, error) {
	s, err := c.survey(ctx, next.Issue)
	if err != nil {
		return Claim{}, fmt.Errorf("look at the claim of issue %d again: %w: %w", next.Issue, ErrUnknown, err)
	}
	if other, there := s.rival(c, next.Nonce); there {
		if err := c.Release(ctx, next); err != nil && !errors.Is(err, ErrLost) {
			return Claim{}, fmt.Errorf("yield the claim of issue %d: %w: %w", next.Issue, ErrUnknown, err)
		}
		return Claim{}, &HeldError{Issue: next.Issue, Claim: other}
	}
	if own, ours := s.own(c, next.Nonce); ours {
		c.note(ctx, own)
		return own, nil
	}
	return Claim{}, fmt.Errorf("take the claim of issue %d: %w: the remote accepted %s and does not show it (is uploadpack.hideRefs set there?)",
		next.Issue, ErrDenied, next.Ref)
}

// Renew puts a new commit on a claim that is ours, so that others see it move. The claim that is
// returned must be kept: it is what the next call expects. When the ref is not where it was
// left, it is still ours if it carries our nonce and descends from what we knew, by commits of
// this very process; else ErrLost.
func (c *Claims) Renew(ctx context.Context, cl Claim, holder string) (Claim, error) {
	next, _, err := c.advance(ctx, cl, holder, nil, false)
	return next, err
}

// Adopt is Renew for the process that takes the place of another one of this installation, which
// it knows to have no authority any more: what that one pushed and did not save is taken up, and
// nothing that it still tries will succeed.
func (c *Claims) Adopt(ctx context.Context, cl Claim, holder string) (Claim, error) {
	next, _, err := c.advance(ctx, cl, holder, nil, true)
	return next, err
}

// Check returns the claim as it is now if it is still ours, as for Renew; else ErrLost.
func (c *Claims) Check(ctx context.Context, cl Claim) (Claim, error) {
	s, err := c.survey(ctx, cl.Issue)
	if err != nil {
		return Claim{}, err
	}
	return c.mine(ctx, s, cl, false)
}

// Inherit is Check for the process that takes the place of another one, as Adopt is Renew.
func (c *Claims) Inherit(ctx context.Context, cl Claim) (Claim, error) {
	s, err := c.survey(ctx, cl.Issue)
	if err != nil {
		return Claim{}, err
	}
	return c.mine(ctx, s, cl, true)
}

// Seen reports whether a claim of the issue was ever seen, or made, by this installation.
func (c *Claims) Seen(ctx context.Context, issue int64) bool {
	cl, err := c.newest(ctx, issue)
	return err == nil && cl.Hash != ""
}

// Restore puts a claim of ours back whose ref was wiped from the remote, as the child of the last
// commit that is known, so that generations go on rising. A ref that is there is left alone and
// returned if it is ours; else ErrLost.
func (c *Claims) Restore(ctx context.Context, cl Claim, holder string) (Claim, error) {
	var last error
	for try := range claimTries {
		pause(ctx, try)
		s, err := c.survey(ctx, cl.Issue)
		if err != nil {
			return Claim{}, afterPush(last, err)
		}
		if s.any() {
			return c.mine(ctx, s, cl, false)
		}
		if s.seen.Hash != "" && s.seen.Hash != cl.Hash {
			if err := c.lost(ctx, cl, s.seen, true, true); err != nil {
				return Claim{}, err // another's, or given back, before it was wiped
			}
		}
		next, err := c.child(ctx, cl, Claim{}, cl.Nonce, holder, stateHeld, s.seen)
		if err != nil {
			return Claim{}, err
		}
		if _, last = c.push(ctx, "restore", update(next, "")); last == nil {
			c.note(ctx, next)
			return next, nil
		}
		if !again(last) {
			break
		}
	}
	return Claim{}, fmt.Errorf("restore the claim of issue %d: %w", cl.Issue, last)
}

// toRelease is the claim of a survey that carries our nonce. One that was wiped counts: it would be
// taken for held.
func (c *Claims) toRelease(s survey, cl Claim) (own Claim, ours bool) {
	if own, ours = s.own(c, cl.Nonce); ours || s.any() || !c.ours(s.seen, cl.Nonce) {
		return own, ours
	}
	own = s.seen
	own.Hash = ""
	return own, true
}

// notToRelease says what became of a claim that is not ours any more: nil when it was released.
func (c *Claims) notToRelease(ctx context.Context, s survey, cl Claim) error {
	if cur, _ := s.decides(); c.releasedSince(ctx, cl, cur) {
		return nil
	}
	_, err := c.mine(ctx, s, cl, true)
	return err
}

// Release gives a claim back, wherever it carries our nonce. It looks first: a claim that is
// released already, also one that others have taken since, is settled; one that is not ours any
// more is ErrLost.
func (c *Claims) Release(ctx context.Context, cl Claim) error {
	var last error
	for try := range claimTries {
		pause(ctx, try)
		s, err := c.survey(ctx, cl.Issue)
		if err != nil {
			return afterPush(last, err)
		}
		own, ours := c.toRelease(s, cl)
		if !ours {
			return c.notToRelease(ctx, s, cl)
		}
		if own.Released {
			return nil
		}
		if lost := c.lost(ctx, cl, own, true, true); lost != nil && s.any() {
			return lost
		}
		next, err := c.child(ctx, own, Claim{}, cl.Nonce, own.Holder, stateReleased, s.seen)
		if err != nil {
			return err
		}
		_, last = c.push(ctx, "release", update(next, own.Hash))
		if last == nil && !s.twice(c, cl.Nonce) {
			c.note(ctx, next)
			return nil
		}
		if last != nil && !again(last) {
			break
		}
	}
	if last == nil {
		return nil
	}
	return fmt.Errorf("release the claim of issue %d: %w", cl.Issue, last)
}
