package engine

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

// The reasons for which the context of a held run ends.
var (
	errInterrupted = errors.New("interrupted")
	errCanceled    = errors.New("canceled by a person")
	errOverdue     = errors.New("the step took longer than its deadline")
)

// controlEvery is how often what people ask for is looked at: a person waits less than a second.
const controlEvery = 250 * time.Millisecond

// effectGrace is how long an effect that is under way may go on after an interrupt.
const effectGrace = 10 * time.Second

// hold is a lease turned into contexts. It renews the lease while the current step is within its
// deadline, and ends the contexts when the lease is lost, by the earlier of the store's word and
// our own clock.
type hold struct {
	e   *Engine
	run string

	// live ends when the lease is lost. Saves run under it.
	live context.Context
	// effects ends also a while after an interrupt: what is under way may finish, but a remote
	// that hangs does not hold its operator. What is cut off is looked for by whoever goes on.
	effects context.Context
	// session ends also on an interrupt and on a cancel. Agents and checks run under it.
	session context.Context

	heldBy *heldError // who holds the issue on the forge, when that made this run end

	mu       sync.Mutex
	lease    run.Lease
	until    time.Duration // store time until which the lease may be trusted
	deadline time.Duration // store time at which the current step is overdue; 0: none
	claimed  time.Duration // store time of the last renewal of the claim; of the driving goroutine
	lose     context.CancelCauseFunc
	stop     context.CancelCauseFunc
	done     chan struct{}
}

// trusted is how long after a renewal was asked for the lease is believed to be ours.
func trusted() time.Duration { return failpoint.Sooner("TRUST", run.LeaseTTL-run.LeaseMargin) }

// newHold starts to keep a lease. start is the store time before the grant was asked for. The
// caller must call close.
func (e *Engine) newHold(ctx context.Context, runID string, l run.Lease, start time.Duration) *hold {
	h := &hold{e: e, run: runID, lease: l, until: start + trusted(), done: make(chan struct{})}
	h.live, h.lose = context.WithCancelCause(context.WithoutCancel(ctx))
	h.session, h.stop = context.WithCancelCause(h.live)
	effects, cut := context.WithCancelCause(h.live)
	h.effects, h.claimed = effects, start
	context.AfterFunc(h.session, func() {
		select {
		case <-h.live.Done():
		case <-time.After(failpoint.Sooner("GRACE", effectGrace)):
			cut(errInterrupted)
		}
	})
	go h.keep(ctx)
	return h
}

// keep looks at clock, interrupts and what people asked for at each tick; close waits for it. The
// renewal runs beside it, so that a store that does not answer keeps nobody from looking.
func (h *hold) keep(parent context.Context) {
	defer close(h.done)
	tick := time.NewTicker(controlEvery)
	defer tick.Stop()
	renewed, renewing, idle := h.e.Clock.Now(), make(chan bool, 1), true
	defer func() {
		if !idle {
			<-renewing
		}
	}()
	interrupted := parent.Done()
	for {
		select {
		case <-h.live.Done():
			return
		case <-interrupted:
			h.stop(errInterrupted)
			interrupted = nil
		case ok := <-renewing:
			if idle = true; !ok { // not yet lost: soon again
				renewed = h.e.Clock.Now() - run.LeaseRenew + time.Second
			}
		case <-tick.C:
		}
		if err := h.Check(); err != nil {
			h.lose(err)
			return
		}
		if _, asked, err := h.e.Store.Controls().Cancel(h.live, h.run); err == nil && asked {
			h.stop(errCanceled)
		}
		if now := h.e.Clock.Now(); idle && now-renewed >= failpoint.Sooner("RENEWALS", run.LeaseRenew) {
			idle, renewed = false, now
			go func() { renewing <- h.renew(now) }()
		}
	}
}

// renew reports whether the lease was renewed. A store that does not answer is not a loss yet:
// the lease is trusted until its time, which Check holds.
func (h *hold) renew(start time.Duration) bool {
	h.mu.Lock()
	l, deadline := h.lease, h.deadline
	h.mu.Unlock()
	if deadline != 0 && start > deadline {
		h.lose(errOverdue)
		return false
	}
	l, err := h.e.Store.Renew(h.live, l, run.LeaseTTL)
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
func (h *hold) Check() error {
	if err := context.Cause(h.live); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.e.Clock.Now(); now >= h.until {
		return fmt.Errorf("%w: not renewed in time", store.ErrFenced)
	}
	return nil
}

// within sets the deadline of the step that begins now; 0 takes it away.
func (h *hold) within(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deadline = 0
	if d > 0 {
		h.deadline = h.e.Clock.Now() + d
	}
}

func (h *hold) current() run.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease
}

// close stops renewing and gives the lease back, so that the next holder need not wait.
func (h *hold) close(ctx context.Context) error {
	h.lose(context.Canceled)
	<-h.done
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := h.e.Store.Release(ctx, h.current())
	if errors.Is(err, store.ErrFenced) {
		return nil // it is somebody else's by now
	}
	return err
}

// apply moves the run by an event and saves it, with the event's effects, in one transaction.
func (h *hold) apply(r run.Run, ev run.Event) (run.Run, error) {
	if err := h.Check(); err != nil {
		return r, err
	}
	next, _, err := run.Apply(r, ev)
	if err != nil {
		return r, err
	}
	next.Updated = h.e.Clock.Wall()
	saved, err := h.e.Store.Save(h.live, h.current(), next, ev)
	if err != nil {
		return r, fmt.Errorf("save run %s after %q: %w", r.ID, ev.Kind(), err)
	}
	return saved, nil
}
