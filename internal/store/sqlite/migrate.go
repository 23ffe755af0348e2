package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"interlock/internal/store"
)

// application marks a database as ours: "ILCK".
const application = 0x494c434b

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrations are applied in order, each once, each in a transaction of its own. The list only
// ever grows: a file that was released is never changed.
var migrations = readMigrations(migrationFiles)

func readMigrations(files fs.FS) []string {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil || len(names) == 0 {
		panic(fmt.Sprintf("the embedded migrations cannot be listed: %v", err))
	}
	slices.Sort(names)
	var list []string
	for i, name := range names {
		var n int
		if _, err := fmt.Sscanf(name, "migrations/%04d_", &n); err != nil || n != i+1 {
			panic(fmt.Sprintf("migration %q does not have the number %d", name, i+1))
		}
		b, err := fs.ReadFile(files, name)
		if err != nil {
			panic(err)
		}
		list = append(list, string(b))
	}
	return list
}

// version reads the number of migrations a database has had.
func version(ctx context.Context, q querier) (int, error) {
	var v int
	err := q.QueryRowContext(ctx, selectVersion).Scan(&v)
	return v, err
}

const selectVersion = "PRAGMA user_version"

// checkVersion refuses a database that a newer program has written.
func checkVersion(path string, have, known int) error {
	if have <= known {
		return nil
	}
	return fmt.Errorf("%w: %s has version %d, this program knows %d; nothing was changed; use the newer interlock, or another --state-dir",
		store.ErrNewer, path, have, known)
}

// migrate brings a database to the newest version. Call it with the turn held. A process that
// comes second finds the work done.
func migrate(ctx context.Context, db *sql.DB, path string, list []string) error {
	for {
		done, err := migrateOne(ctx, db, path, list)
		if done || err != nil {
			return err
		}
	}
}

func migrateOne(ctx context.Context, db *sql.DB, path string, list []string) (done bool, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() {
		if e := tx.Rollback(); e != nil && !errors.Is(e, sql.ErrTxDone) {
			err = errors.Join(err, e)
		}
	}()
	have, err := version(ctx, tx)
	if err != nil {
		return false, err
	}
	if err := checkVersion(path, have, len(list)); err != nil {
		return false, err
	}
	if have == len(list) {
		return true, nil
	}
	if _, err := tx.ExecContext(ctx, list[have]); err != nil {
		return false, fmt.Errorf("migration %d: %w", have+1, err)
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", application, have+1)); err != nil {
		return false, fmt.Errorf("migration %d: %w", have+1, err)
	}
	return false, tx.Commit()
}

// querier is what reads: a database, a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}
