// Package lease turns a lease of the store into contexts that end when it is lost, and moves the
// run under it. It renews and checks; it never takes a lease, and never decides what is done under
// one.
package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"interlock/internal/failpoint"
	"interlock/internal/run"
	"interlock/internal/store"
)

// The causes that the contexts of a held run end with, beside the error of a loss.
var (
	ErrInterrupted = errors.New("interrupted")
	ErrCanceled    = errors.New("canceled by a person")
	ErrOverdue     = errors.New("the step took longer than its deadline")
)

// Every is how often what people ask for is looked at: a person waits less than a second.
const Every = 250 * time.Millisecond

// effectGrace is how long an effect that is under way may go on after an interrupt.
const effectGrace = 10 * time.Second

// trusted is how long after a renewal was asked for the lease is believed to be ours.
func trusted() time.Duration { return failpoint.Sooner("TRUST", run.LeaseTTL-run.LeaseMargin) }

// Hold is a lease turned into contexts. It renews the lease while the current step is within its
// deadline, and ends the contexts when the lease is lost, by the earlier of the store's word and
// our own clock.
type Hold struct {
	store store.Store
	clock store.Clock
	run   string

	// Live ends when the lease is lost. Saves run under it.
	Live context.Context
	// Effects ends also a while after an interrupt: what is under way may finish, but a remote
	// that hangs does not hold its operator. What is cut off is looked for by whoever goes on.
	Effects context.Context
	// Session ends also on an interrupt and on a cancel. Agents and checks run under it.
	Session context.Context

	mu       sync.Mutex
	lease    run.Lease
	until    time.Duration // store time until which the lease may be trusted
	deadline time.Duration // store time at which the current step is overdue; 0: none
	lose     context.CancelCauseFunc
	stop     context.CancelCauseFunc
	done     chan struct{}
}

// Keep starts to keep a lease. start is the store time before the grant was asked for. The caller
// must call Close.
func Keep(ctx context.Context, s store.Store, c store.Clock, runID string, l run.Lease, start time.Duration) *Hold {
	h := &Hold{store: s, clock: c, run: runID, lease: l, until: start + trusted(), done: make(chan struct{})}
	h.Live, h.lose = context.WithCancelCause(context.WithoutCancel(ctx))
	h.Session, h.stop = context.WithCancelCause(h.Live)
	var cut context.CancelCauseFunc
	h.Effects, cut = context.WithCancelCause(h.Live)
	context.AfterFunc(h.Session, func() {
		select {
		case <-h.Live.Done():
		case <-time.After(failpoint.Sooner("GRACE", effectGrace)):
			cut(ErrInterrupted)
		}
	})
	go h.keep(ctx, start)
	return h
}

// keep looks at clock, interrupts and what people asked for at each tick; Close waits for it. The
// renewal runs beside it, so that a store that does not answer keeps nobody from looking.
func (h *Hold) keep(parent context.Context, renewed time.Duration) {
	defer close(h.done)
	tick := time.NewTicker(Every)
	defer tick.Stop()
	renewing, idle := make(chan bool, 1), true
	defer func() {
		if !idle {
			<-renewing
		}
	}()
	interrupted := parent.Done()
	for {
		select {
		case <-h.Live.Done():
			return
		case <-interrupted:
			h.stop(ErrInterrupted)
			interrupted = nil
		case ok := <-renewing:
			if idle = true; !ok { // not yet lost: soon again
				renewed = h.clock.Now() - run.LeaseRenew + time.Second
			}
		case <-tick.C:
		}
		if err := h.Check(); err != nil {
			h.lose(err)
			return
		}
		if _, asked, err := h.store.Controls().Cancel(h.Live, h.run); err == nil && asked {
			h.stop(ErrCanceled)
		}
		if now := h.clock.Now(); idle && now-renewed >= failpoint.Sooner("RENEWALS", run.LeaseRenew) {
			idle, renewed = false, now
			go func() { renewing <- h.renew(now) }()
		}
	}
}

// renew reports whether the lease was renewed. A store that does not answer is not a loss yet:
// the lease is trusted until its time, which Check holds.
func (h *Hold) renew(start time.Duration) bool {
	h.mu.Lock()
	l, deadline := h.lease, h.deadline
	h.mu.Unlock()
	if deadline != 0 && start > deadline {
		h.lose(ErrOverdue)
		return false
	}
	l, err := h.store.Renew(h.Live, l, run.LeaseTTL)
	if errors.Is(err, store.ErrFenced) {
		h.lose(err)
	}
	if err != nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lease, h.until = l, start+trusted()
	return true
}

// Check compares the present time with the time until which the lease may be trusted. It is
// called before each use: timers stop while a machine is suspended.
func (h *Hold) Check() error {
	if err := context.Cause(h.Live); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.clock.Now(); now >= h.until {
		return fmt.Errorf("%w: not renewed in time", store.ErrFenced)
	}
	return nil
}

// Within sets the deadline of the step that begins now; 0 takes it away.
func (h *Hold) Within(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deadline = 0
	if d > 0 {
		h.deadline = h.clock.Now() + d
	}
}

func (h *Hold) current() run.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease
}

// Close stops renewing and gives the lease back, so that the next holder need not wait.
func (h *Hold) Close(ctx context.Context) error {
	h.lose(context.Canceled)
	<-h.done
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := h.store.Release(ctx, h.current())
	if errors.Is(err, store.ErrFenced) {
		return nil // it is somebody else's by now
	}
	return err
}

// Apply moves the run by an event and saves it, with the event's effects, in one transaction.
func (h *Hold) Apply(r run.Run, ev run.Event) (run.Run, error) {
	if err := h.Check(); err != nil {
		return r, err
	}
	next, _, err := run.Apply(r, ev)
	if err != nil {
		return r, err
	}
	next.Updated = h.clock.Wall()
	saved, err := h.store.Save(h.Live, h.current(), next, ev)
	if err != nil {
		return r, fmt.Errorf("save run %s after %q: %w", r.ID, ev.Kind(), err)
	}
	return saved, nil
}

// Record saves a session tree before it is started, and again when it is seen to be gone.
func (h *Hold) Record(s store.Session) error {
	if err := h.Check(); err != nil {
		return err
	}
	return h.store.PutSession(h.Live, h.current(), s)
}

// Lose gives the lease up because of cause: its contexts end with that.
func (h *Hold) Lose(cause error) { h.lose(cause) }
