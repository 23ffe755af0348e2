package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"interlock/internal/forge"
	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/text"
)

// Sight is a claim with what this installation knows of it, for people.
type Sight struct {
	forge.Claim
	Ours    bool   `json:"ours"`          // made by this installation
	Run     string `json:"run,omitempty"` // the run of ours that it is of
	Alive   bool   `json:"alive"`         // the process that wrote it last runs on this very machine
	Dead    bool   `json:"dead"`          // ours, that process is gone, and no other of ours holds the issue: our next run takes it at once
	PID     int    `json:"pid,omitempty"` // of that process
	Unmoved int64  `json:"unmoved_s"`     // seconds for which it has been seen unmoved from here
	Left    int64  `json:"left_s"`        // seconds until it is taken over if it does not move; 0: free, or never
}

// Look returns the claim of an issue; there is false when there is none. A claim that is held is
// watched from then on.
func (k *Keeper) Look(ctx context.Context, issue int64) (s Sight, there bool, err error) {
	c, there, err := k.Refs.Read(ctx, issue)
	if err != nil || !there {
		return Sight{}, false, err
	}
	s, err = k.sight(ctx, c)
	return s, true, err
}

// All returns the claims of all issues, lowest issue first.
func (k *Keeper) All(ctx context.Context) ([]Sight, error) {
	claims, err := k.Refs.List(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Sight, 0, len(claims))
	for _, c := range claims {
		s, err := k.sight(ctx, c)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (k *Keeper) sight(ctx context.Context, c forge.Claim) (Sight, error) {
	s := Sight{Claim: c, Ours: c.Installation == k.Self.Installation && c.Damage == ""}
	unmoved, err := k.Watch.See(c)
	if err != nil {
		return s, err
	}
	s.Unmoved = int64(unmoved / time.Second)
	if !c.Free() && c.Damage == "" {
		s.Left = max(int64((run.ClaimAbandoned-unmoved)/time.Second), 0)
	}
	if p, ok := processIn(c.Process); ok && !c.Released {
		if s.Alive, err = p.Alive(); err != nil {
			return s, fmt.Errorf("look for the holder of issue %d: %w", c.Issue, err)
		}
		s.PID = p.PID
	}
	if !s.Ours {
		return s, nil
	}
	err = k.ownSight(ctx, &s)
	return s, err
}

// ownSight adds what is known of a claim of this installation.
func (k *Keeper) ownSight(ctx context.Context, s *Sight) error {
	runs, err := k.Store.List(ctx, store.Filter{Repo: k.Repo, Issue: s.Issue})
	for _, r := range runs {
		if r.Claim.Nonce == s.Nonce {
			s.Run = r.ID
		}
	}
	if err != nil || s.Alive || s.PID == 0 {
		return err
	}
	l, held, err := k.Store.Controls().Lease(ctx, store.Key(k.Repo, s.Issue))
	s.Dead = err == nil && (!held || Gone(k.Self, l.Holder))
	return err
}

// RefusedError says why a claim is not broken, and what to type instead.
type RefusedError struct {
	What, Next string
	Held       bool // by a process that lives
}

func (e *RefusedError) Error() string { return e.What }

// Break gives a claim of anybody up on the word of a person, who names the exact commit that he
// has looked at. It is told to the issue by one comment, and the mark of the old holder comes off.
// The same again finishes what was begun. It returns the released claim, or *RefusedError.
func (k *Keeper) Break(ctx context.Context, issue int64, hash, reason, who string) (forge.Claim, error) {
	nonce := "broken-" + hash
	s, there, err := k.Look(ctx, issue)
	if err != nil {
		return forge.Claim{}, err
	}
	if there && s.Nonce == nonce && s.Released && s.Ours { // broken before; telling may not have been done
		old, _, err := k.Refs.Previous(ctx, s.Claim)
		if err != nil {
			return forge.Claim{}, err
		}
		return s.Claim, k.tell(ctx, old, hash, reason, who)
	}
	if err := k.breakable(issue, s, there, hash); err != nil {
		return forge.Claim{}, err
	}
	done, err := k.Refs.Break(ctx, s.Claim, nonce, fmt.Sprintf("%s on %s, who broke it: %s", who, k.Self.Host, reason))
	var held *forge.HeldError
	if errors.As(err, &held) {
		return forge.Claim{}, moved(issue, held.Claim.Hash, hash)
	}
	if err != nil {
		return forge.Claim{}, err
	}
	return done, k.tell(ctx, s.Claim, hash, reason, who)
}

func (k *Keeper) breakable(issue int64, s Sight, there bool, hash string) error {
	switch {
	case !there:
		return &RefusedError{What: fmt.Sprintf("issue %d has no claim", issue), Next: "interlock claim show --all"}
	case s.Hash != hash:
		return moved(issue, s.Hash, hash)
	case s.Free():
		return &RefusedError{What: fmt.Sprintf("the claim of issue %d was given back already, there is nothing to break", issue), Next: fmt.Sprintf("interlock claim show %d", issue)}
	case s.Alive && s.Run != "":
		return &RefusedError{Held: true, What: fmt.Sprintf("issue %d is held by process %d of this machine, which is alive, for run %s", issue, s.PID, s.Run), Next: "interlock cancel " + s.Run}
	case s.Alive:
		return &RefusedError{
			Held: true, What: fmt.Sprintf("issue %d is held by process %d of this machine, which is alive and works from another state directory", issue, s.PID),
			Next: fmt.Sprintf("interlock cancel %d --state-dir ITS_STATE_DIRECTORY", issue),
		}
	}
	return nil
}

func moved(issue int64, is, looked string) error {
	return &RefusedError{
		What: fmt.Sprintf("the claim of issue %d is at %s, not at %s: it is not what you have looked at", issue, is, text.Quote(looked)),
		Next: fmt.Sprintf("interlock claim show %d", issue),
	}
}

// tell does what is visible of a break. The comment's key is the commit that was broken.
func (k *Keeper) tell(ctx context.Context, old forge.Claim, hash, reason, who string) error {
	issue := old.Issue
	body := fmt.Sprintf("%s broke the claim of %s of installation %s on this issue (%.12s): %s\n\nNothing that it still does is pushed; whoever wants may take the issue.",
		forge.OneLine(who, 100), old.Holder, old.Installation, hash, forge.CleanText(reason))
	if _, err := k.Forge.Comment(ctx, issue, "break-"+hash, body); err != nil && !errors.Is(err, forge.ErrNotFound) {
		return fmt.Errorf("the claim is broken, but the issue could not be told: %w", err)
	}
	if old.Nonce == "" {
		return nil // damaged: nobody knows whose mark there could be
	}
	if err := k.Forge.ClearMark(ctx, issue, old.Nonce, ""); err != nil && !errors.Is(err, forge.ErrNotFound) {
		return fmt.Errorf("the claim is broken, but the mark of its holder could not be taken off: %w", err)
	}
	return nil
}
