package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite"

	"interlock/internal/bench"
)

// open opens a database that syncs at each commit, as the product's does.
func open(dir string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "rival.db")+"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // more of them contend, and are slower
	return db, nil
}

// oneEach: each client checks its fence and bumps it in a transaction of its own, by a statement that
// was prepared.
func oneEach(dir string, clients int) (func(time.Duration) (bench.Sample, error), func() error, error) {
	db, err := open(dir)
	if err != nil {
		return nil, nil, err
	}
	if _, err = db.Exec("CREATE TABLE leases (key TEXT PRIMARY KEY, fence INTEGER NOT NULL, identity TEXT NOT NULL) STRICT, WITHOUT ROWID"); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	for n := range clients {
		if _, err := db.Exec("INSERT INTO leases VALUES (?, 0, ?)", fmt.Sprintf("local:bench#%d", n+1), value); err != nil {
			return nil, nil, errors.Join(err, db.Close())
		}
	}
	bump, err := db.Prepare("UPDATE leases SET fence = fence + 1, identity = ? WHERE key = ? AND fence = ?")
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	at := make([]int64, clients)
	return load(clients, func(ctx context.Context, n int) error {
		done, err := bump.ExecContext(ctx, value, fmt.Sprintf("local:bench#%d", n+1), at[n])
		if err != nil {
			return err
		}
		if rows, err := done.RowsAffected(); err != nil || rows != 1 {
			return errors.Join(err, errors.New("a fence of its own did not match"))
		}
		at[n]++
		return nil
	}), db.Close, nil
}
