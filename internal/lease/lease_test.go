package lease_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"interlock/internal/lease"
	"interlock/internal/run"
	"interlock/internal/sandbox/process"
	"interlock/internal/store"
	"interlock/internal/store/sqlite"
	"interlock/internal/storetest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// place is a real store with a clock that the test moves, a run in it, and another process.
type place struct {
	store       *sqlite.Store
	clock       *storetest.Clock
	self, other run.Holder
	run         run.Run
	lease       run.Lease
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{clock: storetest.NewClock(t)}
	var err error
	p.store, err = sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "state"), sqlite.Options{Clock: p.clock})
	must(t, err)
	t.Cleanup(func() { must(t, p.store.Close()) })
	p.self, err = lease.Self(t.Context(), p.store)
	must(t, err)
	p.other = p.self
	p.other.ID = "another"
	p.lease, p.run, err = p.store.Claim(t.Context(), p.self, run.Run{
		ID: "1-a", Repo: "r", Issue: 1, State: run.Queued, Created: p.clock.Wall(), Updated: p.clock.Wall(),
		Plan: run.Plan{Lane: run.LanePropose, Attempts: 1},
	}, run.LeaseTTL)
	must(t, err)
	return p
}

func (p *place) keep(t *testing.T, ctx context.Context) *lease.Hold {
	t.Helper()
	h := lease.Keep(ctx, p.store, p.clock, p.run.ID, p.lease, p.clock.Now())
	t.Cleanup(func() { _ = h.Close(context.Background()) }) // also of a test that has failed
	return h
}

// ended waits for the end of a context and returns its cause.
func ended(t *testing.T, ctx context.Context) error {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		t.Fatal("the context does not end")
	}
	return context.Cause(ctx)
}

// TestSelfIsThisProcess: what a holder says of itself is what its death is proved by.
func TestSelfIsThisProcess(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	alive, err := process.ID{PID: p.self.PID, Start: p.self.Start, Boot: p.self.Boot}.Alive()
	if err != nil || !alive || p.self.PID != os.Getpid() || p.self.Installation == "" || p.self.Namespace == "" {
		t.Errorf("%+v: alive %v, %v", p.self, alive, err)
	}
	again, err := lease.Self(t.Context(), p.store)
	if err != nil || again.ID == p.self.ID || again.Installation != p.self.Installation {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestPassedTimeEndsEverything: after its time a lease is not trusted at the very next use, whatever
// timers did, and all contexts end with the loss.
func TestPassedTimeEndsEverything(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := p.keep(t, t.Context())
	must(t, h.Check())
	p.clock.Advance(run.LeaseTTL - run.LeaseMargin)
	if _, err := h.Apply(p.run, run.Claimed{}); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a save: %v", err)
	}
	if err := h.Record(store.Session{ID: "s", Run: p.run.ID}); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a session: %v", err)
	}
	for _, ctx := range []context.Context{h.Live, h.Effects, h.Session} {
		if err := ended(t, ctx); !errors.Is(err, store.ErrFenced) {
			t.Errorf("the cause is %v", err)
		}
	}
	must(t, h.Close(t.Context()))
	hist, err := p.store.History(t.Context(), p.run.ID)
	if err != nil || len(hist.Sessions) != 0 {
		t.Errorf("%+v, %v", hist.Sessions, err)
	}
}

// TestKeptWhileTheStepIsInTime: the lease is renewed again and again, so it outlives its first time.
func TestKeptWhileTheStepIsInTime(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := p.keep(t, t.Context())
	h.Within(2 * run.LeaseTTL)
	expires := p.lease.Expires
	// A renewal begins only once the holder has taken up the one before, so the clock never
	// overtakes what the holder knows, however slow the machine is.
	for range run.LeaseTTL/run.LeaseRenew + 1 {
		p.clock.Advance(run.LeaseRenew)
		expires = p.renewed(t, expires)
	}
	must(t, h.Check())
	must(t, h.Close(t.Context()))
}

// renewed waits until the lease expires later than it did, and returns when it does now.
func (p *place) renewed(t *testing.T, expires time.Duration) time.Duration {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		l, ok, err := p.store.Controls().Lease(t.Context(), p.lease.Key)
		must(t, err)
		if ok && l.Expires > expires {
			return l.Expires
		}
		if time.Now().After(deadline) {
			t.Fatal("the lease is not renewed")
		}
	}
}

// TestOverdue: the deadline of a step ends the lease at the next renewal, long before its time.
func TestOverdue(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := p.keep(t, t.Context())
	h.Within(time.Second)
	p.clock.Advance(run.LeaseRenew)
	if err := ended(t, h.Live); !errors.Is(err, lease.ErrOverdue) {
		t.Errorf("the cause is %v", err)
	}
	must(t, h.Close(t.Context()))
}

// TestPeopleEndTheSessionOnly: an interrupt and a cancel end agents and checks; what is saved and
// under way is not cut off by them.
func TestPeopleEndTheSessionOnly(t *testing.T) {
	t.Parallel()
	for want, ask := range map[error]func(t *testing.T, p *place, stop func()){
		lease.ErrInterrupted: func(_ *testing.T, _ *place, stop func()) { stop() },
		lease.ErrCanceled: func(t *testing.T, p *place, _ func()) {
			must(t, p.store.Controls().RequestCancel(t.Context(), p.run.ID, "enough"))
		},
	} {
		t.Run(want.Error(), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			ctx, stop := context.WithCancel(t.Context())
			h := p.keep(t, ctx)
			ask(t, p, stop)
			if err := ended(t, h.Session); !errors.Is(err, want) {
				t.Errorf("the cause is %v", err)
			}
			if h.Live.Err() != nil {
				t.Errorf("saving has ended: %v", context.Cause(h.Live))
			}
			must(t, h.Record(store.Session{ID: "s", Run: p.run.ID, Kind: "agent", Ended: true}))
			must(t, h.Close(ctx))
			stop()
		})
	}
}

// TestClosedIsFree: what is given back is free at once, and what is lost to another is no error.
func TestClosedIsFree(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := p.keep(t, t.Context())
	if _, err := p.store.Acquire(t.Context(), p.other, p.lease.Key, run.LeaseTTL, 0); !errors.As(err, new(*store.HeldError)) {
		t.Errorf("while it is held: %v", err)
	}
	must(t, h.Close(t.Context()))
	taken, err := p.store.Acquire(t.Context(), p.other, p.lease.Key, run.LeaseTTL, 0)
	if err != nil || taken.Fence <= p.lease.Fence {
		t.Fatalf("%+v, %v", taken, err)
	}
	late := p.keep(t, t.Context())
	if _, err := late.Apply(p.run, run.CanceledBy{Reason: "x"}); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a save with an old fence: %v", err)
	}
	must(t, late.Close(t.Context()))
}

// TestLose: whoever finds out that the authority is gone says why, and everything ends with that.
func TestLose(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := p.keep(t, t.Context())
	cause := errors.New("the claim is another's")
	h.Lose(cause)
	if err := ended(t, h.Session); err != cause || h.Check() != cause {
		t.Errorf("the cause is %v, then %v", err, h.Check())
	}
	must(t, h.Close(t.Context()))
}
