// Package claim is what one installation knows and does about the claims of a repository: it makes
// its own and puts them back, watches those of others, takes over what was abandoned, and shows
// and breaks claims for people. It never starts a run, and never trusts a clock but its own.
package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"interlock/internal/forge"
	"interlock/internal/git"
	"interlock/internal/run"
	"interlock/internal/sandbox/process"
	"interlock/internal/store"
)

// Keeper keeps the claims of one installation on one repository. Its methods may be called by many
// goroutines, and by many processes at once.
type Keeper struct {
	Refs  *forge.Claims
	Watch Watch
	Store store.Store
	Forge forge.Forge
	Repo  string     // key of the repository in the store
	Self  run.Holder // this process
	Say   func(r run.Run, kind, format string, args ...any)

	mu     sync.Mutex
	legacy map[string]forge.Claim // by the hash that a dead holder saved last: what it had pushed
}

// HeldError says that an issue is another installation's by its claim, and how long that will be
// believed of a claim that does not move.
type HeldError struct {
	Claim   forge.Claim
	Unmoved time.Duration // how long it has been seen unmoved, on our own clock
	Left    time.Duration // after which it is taken over; 0: it never is, a person has to look at it
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("issue %d is held by %s", e.Claim.Issue, e.By())
}

// By names the holder for people.
func (e *HeldError) By() string {
	c := e.Claim
	if c.Damage != "" {
		return fmt.Sprintf("an unknown writer: %s cannot be read as a claim (%s)", c.Ref, c.Damage)
	}
	return fmt.Sprintf("%s of installation %s, by the claim %s (generation %d)", c.Holder, c.Installation, c.Ref, c.Generation)
}

// Why says what is being watched, and for how much longer.
func (e *HeldError) Why() string {
	what := fmt.Sprintf("the claim is at %.12s", e.Claim.Hash)
	if e.Claim.Wiped {
		what = fmt.Sprintf("its ref was deleted on the forge, where it was last seen at %.12s; its holder will restore it", e.Claim.Hash)
	}
	if e.Claim.Damage != "" {
		return what + " and is never taken over by itself"
	}
	return fmt.Sprintf("%s and has been seen unmoved for %s; if it stays so it is taken over in %s",
		what, e.Unmoved.Round(time.Second), max(e.Left.Round(time.Second), time.Second))
}

// Process is how a process names itself in the claims that it writes.
func Process(h run.Holder) string { return fmt.Sprintf("%d.%d.%s", h.PID, h.Start, h.Boot) }

// process reads that form back; ok is false for any other.
func processIn(s string) (p process.ID, ok bool) {
	f := strings.SplitN(s, ".", 3)
	if len(f) != 3 || f[2] == "" {
		return p, false
	}
	pid, err := strconv.Atoi(f[0])
	start, serr := strconv.ParseUint(f[1], 10, 64)
	return process.ID{PID: pid, Start: start, Boot: f[2]}, err == nil && serr == nil && pid > 0
}

// Gone reports whether it is proved, for a process self, that the holder h does not run any more: by
// its pid, start time and boot, on the same machine and in the same pid namespace. Elsewhere a pid
// that is missing proves nothing.
func Gone(self, h run.Holder) bool {
	alive, err := process.ID{PID: h.PID, Start: h.Start, Boot: h.Boot}.Alive()
	return err == nil && !alive && h.Host == self.Host && h.Namespace == self.Namespace
}

// Free returns nil when the issue may be claimed: its claim is absent, given back or abandoned.
// Else it is a *HeldError, and the claim has been looked at once more.
func (k *Keeper) Free(ctx context.Context, issue int64) error {
	c, there, err := k.Refs.Read(ctx, issue)
	if err != nil {
		return fmt.Errorf("read the claim of issue %d: %w", issue, err)
	}
	if !there || c.Free() {
		return nil
	}
	if live, err := k.live(ctx, c); err != nil || live {
		return err // a run of our own has it: the store says who drives that
	}
	return k.abandoned(c)
}

// live reports whether a claim is that of a live run of this installation.
func (k *Keeper) live(ctx context.Context, c forge.Claim) (bool, error) {
	if c.Installation != k.Self.Installation || c.Damage != "" {
		return false, nil
	}
	runs, err := k.Store.List(ctx, store.Filter{Repo: k.Repo, Issue: c.Issue, Live: true})
	return slices.ContainsFunc(runs, func(r run.Run) bool { return r.Claim.Nonce == c.Nonce }), err
}

// abandoned returns nil for a claim that has been seen unmoved for long enough.
func (k *Keeper) abandoned(c forge.Claim) error {
	unmoved, err := k.Watch.See(c)
	switch {
	case err != nil:
		return err
	case c.Damage != "":
		return &HeldError{Claim: c, Unmoved: unmoved}
	case unmoved < run.ClaimAbandoned:
		return &HeldError{Claim: c, Unmoved: unmoved, Left: run.ClaimAbandoned - unmoved}
	}
	return nil
}

// Take makes the claim of a run's issue ours, also one that was abandoned.
func (k *Keeper) Take(ctx context.Context, r run.Run) (run.Claim, error) {
	c, err := k.Refs.Take(ctx, r.Issue, r.Claim.Nonce, Holder(k.Self))
	var held *forge.HeldError
	if !errors.As(err, &held) {
		return Of(c), err
	}
	if err := k.abandoned(held.Claim); err != nil {
		return run.Claim{}, err
	}
	c, err = k.Refs.TakeOver(ctx, held.Claim, r.Claim.Nonce, Holder(k.Self))
	if errors.As(err, &held) {
		return run.Claim{}, &HeldError{Claim: held.Claim, Left: run.ClaimAbandoned}
	}
	if err == nil && c.Generation == held.Claim.Generation+1 { // else it was given back meanwhile
		k.Say(r, "taken over", "the claim of %s of installation %s had not moved for %s; generation %d is ours",
			held.Claim.Holder, held.Claim.Installation, run.ClaimAbandoned, c.Generation)
	}
	return Of(c), err
}

// Mine returns the run's claim as it is on the forge now, if it is ours; else forge.ErrLost. A
// ref that was wiped is restored, and that is said.
func (k *Keeper) Mine(ctx context.Context, r run.Run) (forge.Claim, error) {
	known := k.known(r)
	c, err := k.Refs.Check(ctx, known)
	var lost *forge.LostError
	if !errors.As(err, &lost) || lost.Claim.Hash != "" {
		return c, err
	}
	if c, err = k.Refs.Restore(ctx, known, Holder(k.Self)); err == nil {
		k.Say(r, "claim", "%s had been deleted on the forge; it was restored with generation %d", c.Ref, c.Generation)
	}
	return c, err
}

// Renew puts a new commit on the run's claim, if it is still ours; else forge.ErrLost.
func (k *Keeper) Renew(ctx context.Context, r run.Run) (run.Claim, error) {
	c, err := k.Mine(ctx, r)
	if err == nil {
		c, err = k.Refs.Renew(ctx, c, Holder(k.Self))
	}
	return Of(c), err
}

// Adopt is Renew for the process that has taken the place of the run's last holder.
func (k *Keeper) Adopt(ctx context.Context, r run.Run) (run.Claim, error) {
	c, err := k.Refs.Adopt(ctx, k.known(r), Holder(k.Self))
	var lost *forge.LostError
	if errors.As(err, &lost) && lost.Claim.Hash == "" {
		c, err = k.Mine(ctx, r)
	}
	return Of(c), err
}

// PushWith publishes a branch together with the next commit of the run's claim.
func (k *Keeper) PushWith(ctx context.Context, mine forge.Claim, branch git.Update) (run.Claim, git.PushReport, error) {
	c, report, err := k.Refs.PushWith(ctx, mine, Holder(k.Self), branch)
	return Of(c), report, err
}

// Release gives the run's claim back. settled says that there was nothing of ours any more.
func (k *Keeper) Release(ctx context.Context, r run.Run) (settled bool, err error) {
	err = k.Refs.Release(ctx, k.known(r))
	if errors.Is(err, forge.ErrLost) {
		return true, nil
	}
	return false, err
}

// Unmark takes off the visible mark of the holder whose claim was taken over by the run's. Doing it
// again, or where nobody was there, does nothing.
func (k *Keeper) Unmark(ctx context.Context, r run.Run) error {
	before, there, err := k.Refs.Previous(ctx, k.known(r))
	if err != nil || !there || before.Released {
		return err
	}
	return k.Forge.ClearMark(ctx, r.Issue, before.Nonce, "")
}

// Inherit takes note of what the dead holders of a run had pushed to its claim and not saved, as
// it is at this moment: the caller has their lease. What others of this installation push from now
// on is a successor's, and makes the claim lost to us.
func (k *Keeper) Inherit(ctx context.Context, r run.Run) error {
	if r.Claim.Hash == "" {
		return nil // looked for by its nonce
	}
	c, err := k.Refs.Inherit(ctx, k.known(r))
	if errors.Is(err, forge.ErrLost) {
		return nil // whoever needs the claim finds that out, and says it
	}
	if err != nil {
		return fmt.Errorf("look at the claim of issue %d: %w", r.Issue, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.legacy == nil {
		k.legacy = map[string]forge.Claim{}
	}
	k.legacy[r.Claim.Hash] = c
	return nil
}

// Seen reports whether this installation has ever seen a claim of the issue.
func (k *Keeper) Seen(ctx context.Context, issue int64) bool { return k.Refs.Seen(ctx, issue) }

func (k *Keeper) known(r run.Run) forge.Claim {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c, ok := k.legacy[r.Claim.Hash]; ok && c.Nonce == r.Claim.Nonce {
		return c
	}
	return forge.Claim{
		Issue: r.Issue, Ref: r.Claim.Ref, Hash: r.Claim.Hash, Nonce: r.Claim.Nonce, Generation: r.Claim.Generation,
		Installation: k.Self.Installation,
	}
}

// Of is a claim as a run keeps it.
func Of(c forge.Claim) run.Claim {
	return run.Claim{Ref: c.Ref, Hash: c.Hash, Nonce: c.Nonce, Generation: c.Generation}
}

// Holder is how a holder is shown to people.
func Holder(h run.Holder) string { return fmt.Sprintf("process %d on %s", h.PID, h.Host) }
