package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"interlock/internal/statedir"
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
	err   error
	done  chan error
}

// The bounds of one turn: after so many operations, or so much time, the other processes get theirs.
const (
	batchMost = 256
	batchTime = 50 * time.Millisecond
)

// txn is one write transaction. now and wall are those of the operation that is being done.
type txn struct {
	conn   *sql.Conn
	s      *Store
	ledger ledger // as it will be when this commits
	moved  bool   // the ledger has to be written though no operation changed anything
	before int64  // total_changes at the beginning
	now    time.Duration
	boot   string
	wall   time.Time
}

// submit queues one write and waits for its outcome. A caller whose ctx ends first gets ctx.Err()
// and the write will not be done, unless it was taken already: then its outcome is returned. An
// error in do undoes what do has written and nothing else. do may run more than once.
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
			s.round(op)
		case <-s.stop:
			return
		}
	}
}

// round does one turn: the first operation and whatever else is queued by then, in one transaction.
// Nobody is answered before that is on disk, also who was refused: the refusal may stand on what a
// neighbour wrote.
func (s *Store) round(first *operation) {
	if err := s.turn.Take(s.stop); err != nil {
		if errors.Is(err, statedir.ErrStopped) {
			err = errClosed
		}
		s.refuse(first, ofDirectory(err))
		return
	}
	ops, err := s.transact(s.gather(first))
	if err != nil && len(ops) > 1 && undone(err) {
		s.oneByOne(ops)
		err = nil
	}
	s.trim()
	// The turn is given back before anybody is answered: a process that is stopped once it was told
	// of its write must not keep all others from theirs.
	s.turn.Give()
	for _, op := range ops {
		op.done <- fault(s.path, cmp.Or(err, op.err))
	}
}

// refuse answers an operation, and all that are queued behind it: what kept it from its turn would
// keep them.
func (s *Store) refuse(op *operation, err error) {
	for {
		op.done <- err
		select {
		case op = <-s.queue:
		default:
			return
		}
	}
}

// gather returns what hands out the operations of one turn: nil when it is over.
func (s *Store) gather(first *operation) func() *operation {
	begin, taking, n := time.Now(), first, 0
	return func() *operation {
		for {
			if taking == nil {
				if n >= batchMost || time.Since(begin) > s.batchTime {
					return nil
				}
				select {
				case taking = <-s.queue:
				default:
					return nil
				}
			}
			op := taking
			taking = nil
			if op.state.CompareAndSwap(queued, taken) { // else its caller has gone
				n++
				return op
			}
		}
	}
}

// transact does operations in one transaction, each with an outcome of its own. An error is that
// of the transaction: then none was done, unless it is *uncertain.
func (s *Store) transact(next func() *operation) ([]*operation, error) {
	op := next()
	if op == nil {
		return nil, nil
	}
	ops := []*operation{op}
	if err := s.check(); err != nil {
		return ops, err
	}
	// The callers' contexts end here: what was taken is finished, so that its outcome is known.
	t, err := s.begin(context.Background())
	if err != nil {
		return ops, err
	}
	for ; op != nil; op = next() {
		if op != ops[len(ops)-1] {
			ops = append(ops, op)
		}
		if op.err, err = t.try(op.do); err != nil {
			t.abandon()
			return ops, err
		}
	}
	return ops, t.conclude()
}

// oneByOne does operations again that were undone together, each in a transaction of its own, so
// that what makes the whole fail (a disk on which one of them has no room) fails alone.
func (s *Store) oneByOne(ops []*operation) {
	for _, op := range ops {
		once := op
		_, err := s.transact(func() *operation {
			defer func() { once = nil }()
			return once
		})
		op.err = cmp.Or(err, op.err)
	}
}

// undone reports whether nothing of a failed transaction can have been kept.
func undone(err error) bool {
	_, open := errors.AsType[*uncertain](err)
	return !open || isFull(err)
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
	return t.s.prepared.Exec(t.conn, query, args...)
}

// each reads rows, each into the same dest, and calls f for each.
func (t *txn) each(dest []any, f func(), query string, args ...any) error {
	return t.s.prepared.Each(t.conn, dest, f, query, args...)
}

// scan reads one row; ok is false when there is none.
func (t *txn) scan(dest []any, query string, args ...any) (ok bool, err error) {
	err = t.each(dest, func() { ok = true }, query, args...)
	return ok, err
}

// one reads a row that is there.
func (t *txn) one(dest []any, query string, args ...any) error {
	ok, err := t.scan(dest, query, args...)
	if err == nil && !ok {
		err = sql.ErrNoRows
	}
	return err
}
