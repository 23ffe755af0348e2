package forge

import (
	"context"
	"fmt"
)

// Break gives a claim of anybody up, on the word of a person who has looked at exactly this one:
// it writes a released child. A claim that has moved since is a *HeldError and left alone; one
// that this installation has broken before is settled. holder says who did it, and why.
func (c *Claims) Break(ctx context.Context, looked Claim, nonce, holder string) (Claim, error) {
	by := hand{nonce: nonce, holder: holder, state: stateReleased, over: looked}
	var last error
	for try := range claimTries {
		pause(ctx, try)
		s, err := c.survey(ctx, looked.Issue)
		if err != nil {
			return Claim{}, afterPush(last, err)
		}
		if own, ours := s.own(c, nonce); ours && own.Released {
			return own, nil
		}
		cur, there := s.decides()
		if !there || !cur.same(looked) {
			return Claim{}, &HeldError{Issue: looked.Issue, Claim: cur}
		}
		var next Claim
		if next, last = c.create(ctx, s, by); last == nil {
			c.note(ctx, next)
			return next, nil
		}
		if !again(last) {
			break
		}
	}
	return Claim{}, fmt.Errorf("break the claim of issue %d: %w", looked.Issue, last)
}
