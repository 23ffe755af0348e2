package sqlite

import (
	"context"
	"database/sql"
	"path/filepath"
	"time"

	"interlock/internal/statedir"
)

// The names tests need to damage a state directory on purpose.
const (
	DatabaseName = databaseName
	LockName     = lockName
)

// Migrations is how many there are.
var Migrations = len(migrations)

// MigrationList is the list itself.
var MigrationList = migrations

// The bounds that tests try.
const (
	BatchMost = batchMost
	FenceStep = fenceStep
	FenceLeap = fenceLeap
	FloorName = floorName
)

// SetLogMost sets the size above which the log is cut back. Before the first write only.
func (s *Store) SetLogMost(n int64) { s.logMost = n }

// SetBatchTime sets the time after which a turn is over. Before the first write only.
func (s *Store) SetBatchTime(d time.Duration) { s.batchTime = d }

// FloorWrites is the count of write transactions in the floor, and whether it is sealed.
func FloorWrites(dir string) (writes int64, sealed bool, err error) {
	f, _, err := (&Store{path: filepath.Join(dir, databaseName)}).readFloor()
	return f.Writes, f.Sealed, err
}

// StoreTime is the instant at which a write would act now.
func (s *Store) StoreTime(ctx context.Context) (now time.Duration, err error) {
	err = s.submit(ctx, func(t *txn) error {
		now = t.now
		return nil
	})
	return now, err
}

// SubmitSQL queues a write that runs statements, and fails with err afterwards.
func (s *Store) SubmitSQL(ctx context.Context, before func(), err error, statements ...string) error {
	return s.submit(ctx, func(t *txn) error {
		if before != nil {
			before()
		}
		for _, q := range statements {
			if _, err := t.exec(q); err != nil {
				return err
			}
		}
		return err
	})
}

// Raw opens a database beside the driver.
func Raw(path string) (*sql.DB, error) { return connect(path, 1, "") }

// Migrate brings a raw database through a list of migrations, in its turn.
func Migrate(ctx context.Context, path string, list []string) error {
	s := &Store{path: path, turn: &statedir.Turn{Path: path + ".lock"}}
	db, err := connect(path, 1, "")
	if err != nil {
		return err
	}
	defer db.Close()
	defer s.turn.Close()
	return s.inTurn(ctx, func() error { return fault(path, migrate(ctx, db, path, list)) })
}

// Unseal makes a closed state look as a kill would have left it.
func Unseal(dir string) error {
	s := &Store{path: filepath.Join(dir, databaseName)}
	f, found, err := s.readFloor()
	if err != nil || !found {
		return err
	}
	f.Sealed, f.Digest = false, ""
	return s.writeFloor(f)
}

// WriterExec runs a statement on the connection that writes.
func (s *Store) WriterExec(query string) error {
	_, err := s.write.Exec(query)
	return err
}

// ReaderPragma reads a pragma on a connection that reads, WriterPragma on the one that writes.
func (s *Store) ReaderPragma(name string) (v string, err error) {
	err = s.read.QueryRow("PRAGMA " + name).Scan(&v)
	return v, err
}

// WriterPragma is described above.
func (s *Store) WriterPragma(name string) (v string, err error) {
	err = s.write.QueryRow("PRAGMA " + name).Scan(&v)
	return v, err
}

// Submit queues a write that does f while it holds the turn.
func (s *Store) Submit(ctx context.Context, f func() error) error {
	return s.submit(ctx, func(*txn) error { return f() })
}

// Prepared is how many statements of the connection that writes are prepared.
func (s *Store) Prepared() int { return s.prepared.Len() }
