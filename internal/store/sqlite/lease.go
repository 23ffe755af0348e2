package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"interlock/internal/run"
	"interlock/internal/store"
)

// held is the condition under which a lease lets its holder write: the very grant, by the very
// holder, in this boot, not expired, not given back. Its arguments are heldBy.
const held = "key = ? AND fence = ? AND holder = ? AND boot = ? AND expires > ? AND released = 0"

func heldBy(t *txn, l run.Lease) []any {
	return []any{l.Key, int64(l.Fence), l.Holder.ID, t.boot, int64(t.now)}
}

// fenced is the refusal for a lease that does not hold.
func fenced(l run.Lease) error {
	return fmt.Errorf("%w: %s, fence %d", store.ErrFenced, l.Key, l.Fence)
}

// requireHeld returns store.ErrFenced unless the lease holds.
func requireHeld(t *txn, l run.Lease) error {
	var one int
	ok, err := t.scan([]any{&one}, "SELECT 1 FROM leases WHERE "+held, heldBy(t, l)...)
	if err != nil {
		return err
	}
	if !ok {
		return fenced(l)
	}
	return nil
}

// grant is a row of leases.
type grant struct {
	lease    run.Lease
	boot     string
	released bool
}

const grantColumns = "fence, identity, boot, granted, expires, released"

func (g *grant) scan(key string, scan func(...any) error) error {
	var identity string
	var fence, granted, expires int64
	if err := scan(&fence, &identity, &g.boot, &granted, &expires, &g.released); err != nil {
		return err
	}
	g.lease = run.Lease{Key: key, Fence: run.Fence(fence), Granted: time.Duration(granted), Expires: time.Duration(expires)}
	if err := json.Unmarshal([]byte(identity), &g.lease.Holder); err != nil {
		return fmt.Errorf("%w: the holder of %s cannot be read: %w", store.ErrDamagedRun, key, err)
	}
	return nil
}

// Acquire implements store.Store. A holder that asks again while its lease lives gets that lease,
// renewed; one that asks after it expired gets a new grant, so that whatever of it still uses the
// old one is fenced.
func (s *Store) Acquire(ctx context.Context, h run.Holder, key string, ttl time.Duration, dead run.Fence) (run.Lease, error) {
	var l run.Lease
	err := s.submit(ctx, func(t *txn) (err error) {
		l, err = acquire(t, h, key, ttl, dead)
		return err
	})
	if err != nil {
		return run.Lease{}, err
	}
	return l, nil
}

func acquire(t *txn, h run.Holder, key string, ttl time.Duration, dead run.Fence) (run.Lease, error) {
	if key == "" || h.ID == "" || ttl <= 0 {
		return run.Lease{}, errors.New("a lease needs a key, a holder with an id, and a time to live")
	}
	var g grant
	ok, err := t.scanGrant(&g, key)
	if err != nil {
		return run.Lease{}, err
	}
	free := g.lease.Expires + run.LockDelay
	switch {
	case !ok, g.released: // free
	case g.boot != t.boot: // whoever held it ended with its boot
	case dead != 0 && dead == g.lease.Fence: // proved
	case g.lease.Holder.ID == h.ID && t.now < g.lease.Expires:
		return renew(t, g.lease, ttl)
	case g.lease.Holder.ID == h.ID: // it is here to say that it lives; its old fence dies with this
	case t.now >= free: // long dead, or long stepped down
	default:
		return run.Lease{}, &store.HeldError{Lease: g.lease, Free: free, Boot: true}
	}
	return give(t, h, key, ttl)
}

func (t *txn) scanGrant(g *grant, key string) (bool, error) {
	var ok bool
	err := g.scan(key, func(dest ...any) (err error) {
		ok, err = t.scan(dest, "SELECT "+grantColumns+" FROM leases WHERE key = ?", key)
		if err == nil && !ok {
			return errNone
		}
		return err
	})
	if errors.Is(err, errNone) {
		return false, nil
	}
	return ok, err
}

var errNone = errors.New("no row")

// give grants the key with the next fence. Fences live in a row of their own that outlives every
// lease, and start above what was ever handed out before this database came, so they rise for ever.
func give(t *txn, h run.Holder, key string, ttl time.Duration) (run.Lease, error) {
	identity, err := json.Marshal(h)
	if err != nil {
		return run.Lease{}, err
	}
	var fence int64
	_, err = t.scan([]any{&fence}, `INSERT INTO fences (key, fence) VALUES (?1, ?2 + 1)
		ON CONFLICT (key) DO UPDATE SET fence = max(fence, ?2) + 1 RETURNING fence`, key, t.ledger.base)
	if err != nil {
		return run.Lease{}, err
	}
	if err := t.reserve(fence); err != nil {
		return run.Lease{}, err
	}
	l := run.Lease{Key: key, Holder: h, Fence: run.Fence(fence), Granted: t.now, Expires: t.now + ttl}
	_, err = t.exec(`INSERT OR REPLACE INTO leases (key, fence, holder, identity, boot, granted, expires, released)
		VALUES (?, ?, ?, ?, ?, ?, ?, 0)`, key, fence, h.ID, string(identity), t.boot, int64(l.Granted), int64(l.Expires))
	return l, err
}

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, l run.Lease, ttl time.Duration) (run.Lease, error) {
	if ttl <= 0 {
		return run.Lease{}, errors.New("a lease needs a time to live")
	}
	var renewed run.Lease
	err := s.submit(ctx, func(t *txn) (err error) {
		renewed, err = renew(t, l, ttl)
		return err
	})
	if err != nil {
		return run.Lease{}, err
	}
	return renewed, nil
}

func renew(t *txn, l run.Lease, ttl time.Duration) (run.Lease, error) {
	expires := t.now + ttl
	n, err := t.exec("UPDATE leases SET expires = ? WHERE "+held, append([]any{int64(expires)}, heldBy(t, l)...)...)
	if err != nil {
		return run.Lease{}, err
	}
	if n != 1 {
		return run.Lease{}, fenced(l)
	}
	l.Expires = expires
	return l, nil
}

// Release implements store.Store.
func (s *Store) Release(ctx context.Context, l run.Lease) error {
	return s.submit(ctx, func(t *txn) error {
		n, err := t.exec("UPDATE leases SET released = 1 WHERE "+held, heldBy(t, l)...)
		if err == nil && n != 1 {
			err = fenced(l)
		}
		return err
	})
}
