package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"interlock/internal/claim"
	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/workspace"
)

// usable reads what is known of a run whose workspaces nobody may use any more, and refuses others. The
// lock of the run is held. What a dead command has left running is ended and proved gone first.
func (k *Keeper) usable(ctx context.Context, id string) (*group, error) {
	g, err := k.group(ctx, id)
	if err != nil {
		return nil, err
	}
	if g.unknown != "" {
		return nil, &RefusedError{Exit: run.ExitRefused, What: fmt.Sprintf("run %s: %s, so nobody can say who uses its workspaces", id, g.unknown),
			Safe: "nothing was changed", Next: "interlock state check"}
	}
	if g.rests() && slices.ContainsFunc(g.sessions, func(s store.Session) bool { return !s.Ended }) {
		if err := k.endLeft(ctx, g); err != nil {
			return nil, err
		}
		if g, err = k.group(ctx, id); err != nil {
			return nil, err
		}
	}
	if g.inUse != "" {
		return nil, k.refuseInUse(g)
	}
	return g, nil
}

// rests reports whether a run is finished, whatever processes of it may be left.
func (g *group) rests() bool {
	return !g.run.State.Live() && !g.run.Running && len(g.run.Effects) == 0
}

func (k *Keeper) refuseInUse(g *group) error {
	e := &RefusedError{
		Exit: run.ExitRefused, What: fmt.Sprintf("the workspaces of run %s of issue %d may be in use: %s", g.id, g.run.Issue, g.inUse),
		Safe: "nothing was changed", Next: "interlock show " + g.id,
	}
	if g.run.State.Live() {
		e.Then = "when it is to end: interlock cancel " + g.id
	}
	return e
}

// under does something that records sessions, under the lease of the run's issue.
func (k *Keeper) under(ctx context.Context, r run.Run, do func(l run.Lease) error) error {
	key := store.Key(r.Repo, r.Issue)
	old, held, err := k.Store.Controls().Lease(ctx, key)
	if err != nil {
		return err
	}
	if held && (old.Holder.Host != k.Self.Host || old.Holder.Namespace != k.Self.Namespace) && old.Fence >= r.Fence {
		return k.heldBy(r, claim.Holder(old.Holder)+" on another host or in another pid namespace")
	}
	if held && old.Holder.ID == k.Self.ID { // the rest of this process acts under it
		return k.heldBy(r, claim.Holder(old.Holder))
	}
	l, err := k.acquire(ctx, r, key)
	if err != nil {
		return err
	}
	return errors.Join(do(l), k.release(ctx, l))
}

// acquire takes the lease of a run's issue, also that of a command that is proved dead with what it had
// started for this run; never that of a run that is still to be driven, which goes on with its own proof.
func (k *Keeper) acquire(ctx context.Context, r run.Run, key string) (run.Lease, error) {
	l, err := k.Store.Acquire(ctx, k.Self, key, run.LeaseTTL, 0)
	var other *store.HeldError
	if !errors.As(err, &other) {
		return l, err
	}
	held := k.heldBy(r, claim.Holder(other.Lease.Holder))
	if !claim.Gone(k.Self, other.Lease.Holder) {
		return l, held
	}
	live, err := k.Store.List(ctx, store.Filter{Repo: r.Repo, Issue: r.Issue, Live: true, Limit: 1})
	if err != nil || len(live) > 0 {
		return l, errors.Join(err, held)
	}
	hist, err := k.Store.History(ctx, r.ID)
	if err != nil {
		return l, err
	}
	if _, err := workspace.EndSessions(ctx, hist.Sessions); err != nil {
		return l, errors.Join(held, err)
	}
	return k.Store.Acquire(ctx, k.Self, key, run.LeaseTTL, other.Lease.Fence)
}

func (k *Keeper) release(ctx context.Context, l run.Lease) error {
	err := k.Store.Release(context.WithoutCancel(ctx), l)
	if errors.Is(err, store.ErrFenced) {
		return nil
	}
	return err
}

func (k *Keeper) heldBy(r run.Run, who string) error {
	return &RefusedError{Exit: run.ExitHeld, What: fmt.Sprintf("issue %d of run %s is held by %s", r.Issue, r.ID, who),
		Safe: "nothing was changed", Next: "interlock runs --live"}
}

// endLeft ends what a dead command has left of the sessions of a run that rests, and records that.
func (k *Keeper) endLeft(ctx context.Context, g *group) error {
	return k.under(ctx, g.run, func(l run.Lease) error {
		if _, err := workspace.EndSessions(ctx, g.sessions); err != nil {
			return &RefusedError{Exit: run.ExitRefused, What: fmt.Sprintf("run %s: %v", g.id, err), Safe: "nothing was changed", Next: "interlock doctor"}
		}
		for _, s := range g.sessions {
			if s.Ended {
				continue
			}
			s.Ended = true
			if err := k.Store.PutSession(ctx, l, s); err != nil {
				return err
			}
		}
		return nil
	})
}
