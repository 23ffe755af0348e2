package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"interlock/internal/store"
)

// ledger is the one row about the database as a whole; migrations/0002_ledger.sql says what each
// column is.
type ledger struct {
	epoch           string
	writes          int64
	base, reserved  int64
	boot, namespace string
	ahead, mark     time.Duration
}

const selectLedger = "SELECT epoch, writes, base, reserved, boot, namespace, ahead, mark FROM ledger"

func (l *ledger) fields() []any {
	return []any{&l.epoch, &l.writes, &l.base, &l.reserved, &l.boot, &l.namespace, &l.ahead, &l.mark}
}

func readLedger(ctx context.Context, q querier) (l ledger, err error) {
	err = q.QueryRowContext(ctx, selectLedger).Scan(l.fields()...)
	return l, err
}

// begin starts a write transaction and finds out at which instant of store time it acts. Call it
// with the turn held: waiting for that may take longer than a lease lives.
func (s *Store) begin(ctx context.Context) (*txn, error) {
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return nil, err
	}
	t := &txn{conn: conn, s: s}
	if _, err = t.exec("BEGIN IMMEDIATE"); err == nil {
		err = t.orient()
	}
	if err != nil {
		t.abandon()
		return nil, err
	}
	return t, nil
}

// orient reads where the database stands.
func (t *txn) orient() error {
	var have int
	if err := t.one([]any{&have}, selectVersion); err != nil {
		return err
	}
	// A newer program may have migrated the database while this one had it open.
	if err := checkVersion(t.s.path, have, len(migrations)); err != nil {
		return err
	}
	if err := t.one(t.ledger.fields(), selectLedger); err != nil {
		return err
	}
	if s := t.s; s.epoch != "" && (t.ledger.epoch != s.epoch || t.ledger.writes < s.seen) {
		return damaged(s.path, errors.New("an older copy was put in its place while it was in use"))
	}
	if err := t.one([]any{&t.before}, selectChanges); err != nil {
		return err
	}
	if err := t.setClock(); err != nil {
		return err
	}
	t.tick()
	return nil
}

// setClock makes store time go on from its mark in a boot that the database does not know yet, and
// refuses a process whose clock runs apart from the one that the leases of this boot are timed by.
func (t *txn) setClock() error {
	l, c := &t.ledger, t.s.clock
	t.boot = c.Boot()
	if l.boot == t.boot && l.namespace != t.s.namespace {
		return fmt.Errorf("%w: %s is used in this boot by processes of time namespace %s, this one is in %s, where the clock of leases may "+
			"differ; nothing was changed; start outside of the time namespace (without unshare --time) or name another --state-dir",
			store.ErrUnfit, t.s.path, l.namespace, t.s.namespace)
	}
	if l.boot != t.boot {
		l.boot, l.namespace, l.ahead = t.boot, t.s.namespace, max(0, l.mark-c.Now())
		t.moved = true
	}
	t.s.ahead.Store(int64(l.ahead))
	return nil
}

// tick reads the clock anew. Should the clock go back, store time stands still until it has caught
// up: no lease ends sooner for it, and none is granted twice.
func (t *txn) tick() {
	l := &t.ledger
	t.now = max(t.s.clock.Now()+l.ahead, l.mark)
	l.mark = t.now
	t.wall = t.s.clock.Wall().UTC().Round(0)
}

// conclude commits, with the mark of store time, when anything has changed. Until it commits, all is
// undone when it fails; *uncertain means that the commit itself failed.
func (t *txn) conclude() error {
	var after int64
	if err := t.one([]any{&after}, selectChanges); err != nil {
		t.abandon()
		return err
	}
	if after == t.before && !t.moved {
		t.abandon()
		return nil
	}
	l := &t.ledger
	l.writes++
	err := t.s.unseal()
	if err == nil {
		_, err = t.exec("UPDATE ledger SET epoch = ?, writes = ?, base = ?, reserved = ?, boot = ?, namespace = ?, ahead = ?, mark = ?",
			l.epoch, l.writes, l.base, l.reserved, l.boot, l.namespace, int64(l.ahead), int64(l.mark))
	}
	if err != nil {
		t.abandon()
		return err
	}
	if _, err := t.exec("COMMIT"); err != nil {
		t.abandon()
		return &uncertain{err}
	}
	t.done()
	t.s.epoch, t.s.seen = l.epoch, l.writes
	return nil
}

// uncertain is a commit that failed.
type uncertain struct{ error }

func (u *uncertain) Unwrap() error { return u.error }

// abandon undoes the transaction. After some failures SQLite has done so by itself and says that
// there is none; a rollback that truly failed makes the next begin fail.
func (t *txn) abandon() {
	_, _ = t.exec("ROLLBACK")
	t.done()
}

// done gives the connection back.
func (t *txn) done() { _ = t.conn.Close() }

const selectChanges = "SELECT total_changes()"

// try does one operation under a savepoint, so that its refusal undoes nothing else. refused is
// what it said; err means that the whole transaction is gone.
func (t *txn) try(do func(*txn) error) (refused, err error) {
	if _, err := t.exec("SAVEPOINT operation"); err != nil {
		return nil, err
	}
	t.tick()
	reserved := t.ledger.reserved
	if refused = do(t); refused != nil {
		t.ledger.reserved = reserved
		if _, err := t.exec("ROLLBACK TO operation"); err != nil {
			return refused, refused
		}
	}
	_, err = t.exec("RELEASE operation")
	return refused, err
}

// storeClock is the store's time as a clock of its own.
type storeClock struct {
	store.Clock
	s *Store
}

// Now implements store.Clock.
func (c storeClock) Now() time.Duration { return c.Clock.Now() + time.Duration(c.s.ahead.Load()) }

// Clock is the clock that leases are timed by: store time.
func (s *Store) Clock() store.Clock { return storeClock{s.clock, s} }
