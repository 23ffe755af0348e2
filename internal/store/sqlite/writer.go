package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"sync/atomic"
	"time"
)

// An operation is queued, then taken by the writer or withdrawn by its caller, never both.
const (
	queued int32 = iota
	taken
	withdrawn
)

type operation struct {
	do    func(*txn) error
	state atomic.Int32
	done  chan error
}

// txn is one write transaction and the instant it acts at. The instant is read after the turn was
// had: waiting for it may take longer than a lease lives.
type txn struct {
	*sql.Tx
	ctx  context.Context
	now  time.Duration
	boot string
	wall time.Time
}

// submit queues one write and waits for its outcome. A caller whose ctx ends first gets ctx.Err()
// and the write will not be done, unless it was taken already: then its outcome is returned. An
// error in do rolls everything back.
func (s *Store) submit(ctx context.Context, do func(*txn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	op := &operation{do: do, done: make(chan error, 1)}
	select {
	case s.queue <- op:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.stop:
		return errClosed
	}
	select {
	case err := <-op.done:
		return err
	case <-ctx.Done():
		if op.state.CompareAndSwap(queued, withdrawn) {
			return ctx.Err()
		}
		return <-op.done
	}
}

// serve is the one writer of this process. Close waits for it.
func (s *Store) serve() {
	defer close(s.stopped)
	for {
		select {
		case op := <-s.queue:
			op.done <- fault(s.path, s.perform(op))
		case <-s.stop:
			return
		}
	}
}

// perform does one operation in its turn, in one transaction.
func (s *Store) perform(op *operation) error {
	if err := s.turn.take(s.stop); err != nil {
		if errors.Is(err, errStopped) {
			return errClosed
		}
		return err
	}
	defer s.turn.give()
	if !op.state.CompareAndSwap(queued, taken) {
		return nil // its caller has gone, and nobody reads this
	}
	if err := s.check(); err != nil {
		return err
	}
	// The caller's context ends here: what was taken is finished, so that its outcome is known.
	ctx := context.Background()
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	t := &txn{Tx: tx, ctx: ctx, now: s.clock.Now(), boot: s.clock.Boot(), wall: s.clock.Wall().UTC().Round(0)}
	if err := s.within(t, op.do); err != nil {
		// After some failures SQLite has rolled back by itself and says so here. A rollback that
		// truly failed makes the next begin fail.
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

func (s *Store) within(t *txn, do func(*txn) error) error {
	have, err := version(t.ctx, t)
	if err != nil {
		return err
	}
	// A newer program may have migrated the database while this one had it open.
	if err := checkVersion(s.path, have, len(migrations)); err != nil {
		return err
	}
	return do(t)
}

// check makes sure that the database we have open is still the one that others find: two of them
// would grant one key twice.
func (s *Store) check() error {
	there, err := os.Stat(s.path)
	if err != nil {
		return damaged(s.path, err)
	}
	if !os.SameFile(there, s.identity) {
		return damaged(s.path, errors.New("it was replaced while in use"))
	}
	return nil
}

// exec runs one statement and returns how many rows it changed.
func (t *txn) exec(query string, args ...any) (int64, error) {
	res, err := t.ExecContext(t.ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// scan reads one row; ok is false when there is none.
func (t *txn) scan(dest []any, query string, args ...any) (ok bool, err error) {
	err = t.QueryRowContext(t.ctx, query, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
