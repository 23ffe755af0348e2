//go:build failpoint

package writes

import (
	"context"
	"fmt"
	"strings"
	"time"

	"interlock/internal/failpoint"
	"interlock/internal/forge"
	"interlock/internal/run"
	"interlock/internal/store"
)

// Store returns s with a failpoint around each write. A save is named after its event, a settled
// effect after its kind, a session after its own kind.
func Store(s store.Store) store.Store { return pointedStore{s} }

// Forge returns f with a failpoint around each write. A write that is told to have failed is an
// unknown outcome, as a lost connection is.
func Forge(f forge.Forge) forge.Forge { return pointedForge{f} }

// around does a write between its two points. A fault hides its result.
func around[T any](name string, write func() (T, error)) (T, error) {
	failpoint.Here("before " + name)
	v, err := write()
	failpoint.Here("after " + name)
	if err == nil {
		err = failpoint.Fault(name)
	}
	if err != nil {
		var none T
		return none, err
	}
	return v, nil
}

// alone is around for a write that returns nothing.
func alone(name string, write func() error) error {
	_, err := around(name, func() (struct{}, error) { return struct{}{}, write() })
	return err
}

type pointedStore struct{ store.Store }

func (s pointedStore) Claim(ctx context.Context, h run.Holder, r run.Run, ttl time.Duration) (run.Lease, run.Run, error) {
	var l run.Lease
	r, err := around("claim", func() (_ run.Run, err error) {
		l, r, err = s.Store.Claim(ctx, h, r, ttl)
		return r, err
	})
	return l, r, err
}

// Acquire cannot be told to have failed: its outcome is looked up by asking again.
func (s pointedStore) Acquire(ctx context.Context, h run.Holder, key string, ttl time.Duration, dead run.Fence) (run.Lease, error) {
	name := "acquire"
	if dead != 0 {
		name = "acquire from the dead"
	}
	failpoint.Here("before " + name)
	l, err := s.Store.Acquire(ctx, h, key, ttl, dead)
	if err == nil {
		failpoint.Here("after " + name)
		err = failpoint.Fault(name)
	}
	return l, err
}

func (s pointedStore) Renew(ctx context.Context, l run.Lease, ttl time.Duration) (run.Lease, error) {
	return around("renew", func() (run.Lease, error) { return s.Store.Renew(ctx, l, ttl) })
}

func (s pointedStore) Release(ctx context.Context, l run.Lease) error {
	return alone("release of the lease", func() error { return s.Store.Release(ctx, l) })
}

func (s pointedStore) Save(ctx context.Context, l run.Lease, next run.Run, events ...run.Event) (run.Run, error) {
	name := "save"
	for _, e := range events {
		name += " " + e.Kind()
		if settled, ok := e.(run.Settled); ok {
			kind, _, _ := strings.Cut(settled.Key, ":")
			name += " " + kind
		}
	}
	return around(name, func() (run.Run, error) { return s.Store.Save(ctx, l, next, events...) })
}

func (s pointedStore) PutSession(ctx context.Context, l run.Lease, rec store.Session) error {
	name := fmt.Sprintf("session %s ended %t", rec.Kind, rec.Ended)
	return alone(name, func() error { return s.Store.PutSession(ctx, l, rec) })
}

func (s pointedStore) Controls() store.Controls { return pointedControls{s.Store.Controls()} }

type pointedControls struct{ store.Controls }

func (c pointedControls) RequestCancel(ctx context.Context, id, reason string) error {
	return alone("request of the cancel", func() error { return c.Controls.RequestCancel(ctx, id, reason) })
}

type pointedForge struct{ forge.Forge }

// unknown is what a forge says of a write whose answer was lost.
func unknown[T any](v T, err error) (T, error) {
	if failpoint.IsFault(err) {
		err = fmt.Errorf("%w: %w", forge.ErrUnknown, err)
	}
	return v, err
}

func (f pointedForge) SetMark(ctx context.Context, issue int64, m forge.Mark) error {
	_, err := unknown(0, alone("forge mark", func() error { return f.Forge.SetMark(ctx, issue, m) }))
	return err
}

func (f pointedForge) ClearMark(ctx context.Context, issue int64, nonce, then string) error {
	_, err := unknown(0, alone("forge unmark", func() error { return f.Forge.ClearMark(ctx, issue, nonce, then) }))
	return err
}

func (f pointedForge) Comment(ctx context.Context, issue int64, key, body string) (forge.Comment, error) {
	return unknown(around("forge comment", func() (forge.Comment, error) { return f.Forge.Comment(ctx, issue, key, body) }))
}

// Propose is told apart from a refusal: a change that exists is returned with its error.
func (f pointedForge) Propose(ctx context.Context, c forge.Change) (forge.Change, error) {
	failpoint.Here("before forge propose")
	made, err := f.Forge.Propose(ctx, c)
	failpoint.Here("after forge propose")
	if err == nil {
		err = failpoint.Fault("forge propose")
	}
	return unknown(made, err)
}
