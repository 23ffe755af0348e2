package forge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"interlock/internal/git"
)

// PushWith moves a branch and renews the claim in one push, all or nothing: whoever lost the
// claim cannot move the branch. A branch that is already at branch.New is adopted, and only the
// claim is renewed. The claim that is returned must be kept.
//
// ErrLost: the claim is another's. git.ErrStaleRef: somebody else moved the branch, it is neither
// at branch.Old nor at branch.New. ErrDenied with git.ErrRefused: the remote refuses; its words
// are in the error, escaped. In all three nothing was moved. ErrUnknown: call again.
func (c *Claims) PushWith(ctx context.Context, cl Claim, holder string, branch git.Update) (Claim, git.PushReport, error) {
	if !strings.HasPrefix(branch.Ref, "refs/heads/") || branch.New == "" {
		return Claim{}, git.PushReport{}, fmt.Errorf("push %q: %w: not a branch and a commit", branch.Ref, ErrInvalid)
	}
	return c.advance(ctx, cl, holder, &branch, false)
}

// advance puts a child on our claim, together with the branch if there is one.
func (c *Claims) advance(ctx context.Context, cl Claim, holder string, branch *git.Update, adopt bool) (Claim, git.PushReport, error) {
	var next Claim
	var report git.PushReport
	var last error
	for try := range claimTries {
		pause(ctx, try)
		cur, at, err := c.both(ctx, cl, branch, adopt)
		if err != nil {
			if !errors.Is(err, ErrLost) {
				err = afterPush(last, err)
			}
			return Claim{}, report, err
		}
		if next.Hash != "" && cur.Hash == next.Hash && (branch == nil || at == branch.New) {
			return next, report, nil
		}
		var updates []git.Update
		if branch != nil && at != branch.New {
			if at != branch.Old {
				return Claim{}, report, fmt.Errorf("push %s: %w: it is at %s, not at %s",
					branch.Ref, git.ErrStaleRef, place(at), place(branch.Old))
			}
			updates = append(updates, *branch)
		}
		next, err = c.child(ctx, cur, Claim{}, cl.Nonce, holder, stateHeld)
		if err != nil {
			return Claim{}, report, err
		}
		report, last = c.push(ctx, doing(branch, adopt), append(updates, update(next, cur.Hash))...)
		if last == nil {
			c.note(ctx, next)
			return next, report, nil
		}
		if !again(last) {
			break
		}
	}
	return Claim{}, report, fmt.Errorf("push the claim of issue %d: %w", cl.Issue, last)
}

// doing names what advance does.
func doing(branch *git.Update, adopt bool) string {
	switch {
	case branch != nil:
		return "branch"
	case adopt:
		return "adopt"
	}
	return "renew"
}

// both reads claim and branch in one go: the claim must be ours and held. It returns it as it
// is now and the commit of the branch, "" if it is absent.
func (c *Claims) both(ctx context.Context, cl Claim, branch *git.Update, adopt bool) (Claim, string, error) {
	var also []string
	if branch != nil {
		also = []string{branch.Ref}
	}
	s, err := c.survey(ctx, cl.Issue, also...)
	if err != nil {
		return Claim{}, "", err
	}
	cur, err := c.mine(ctx, s, cl, adopt)
	if err != nil || branch == nil {
		return cur, "", err
	}
	return cur, s.refs[branch.Ref], nil
}

func place(hash string) string {
	if hash == "" {
		return "no commit"
	}
	return fmt.Sprintf("%.12s", hash)
}
