package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/store/sqlite"
)

// closedState makes a state directory with one claimed run and closes it.
func closedState(t *testing.T) (dir, database string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "state")
	s := open(t, dir, nil)
	_, _, err := s.Claim(t.Context(), run.Holder{ID: "h"}, aRun("r1", 1), run.LeaseTTL)
	must(t, err)
	must(t, s.Close())
	return dir, filepath.Join(dir, sqlite.DatabaseName)
}

func aRun(id string, issue int64) run.Run {
	return run.Run{ID: id, Repo: "repo", Issue: issue, State: run.Queued}
}

// alter runs statements on a database whose last user was killed: one that was closed is sealed.
func alter(t *testing.T, database string, statements ...string) {
	t.Helper()
	db, err := sqlite.Raw(database)
	must(t, err)
	for _, q := range statements {
		_, err := db.Exec(q)
		must(t, err)
	}
	must(t, db.Close())
	if dir := filepath.Dir(database); filepath.Base(database) == sqlite.DatabaseName {
		must(t, sqlite.Unseal(dir))
	}
}

func TestNewerDatabase(t *testing.T) {
	t.Parallel()
	dir, database := closedState(t)
	alter(t, database, fmt.Sprintf("PRAGMA user_version = %d", sqlite.Migrations+1), "CREATE TABLE of_the_future (x)")
	refused(t, dir, sqlite.Options{}, store.ErrNewer, sqlite.DatabaseName, "--state-dir")
	alter(t, database, fmt.Sprintf("PRAGMA user_version = %d", sqlite.Migrations))
	open(t, dir, nil)
}

// TestNewerDatabaseWhileOpen: a newer program migrates the state under an older one that runs.
func TestNewerDatabaseWhileOpen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, nil)
	must(t, s.WriterExec(fmt.Sprintf("PRAGMA user_version = %d", sqlite.Migrations+1)))
	_, err := s.Acquire(t.Context(), run.Holder{ID: "h"}, "key", run.LeaseTTL, 0)
	if !errors.Is(err, store.ErrNewer) {
		t.Errorf("got %v, want ErrNewer", err)
	}
	if _, ok, err := s.Lease(t.Context(), "key"); ok || err != nil {
		t.Errorf("the refused write left a lease: %v, %v", ok, err)
	}
}

func TestDamagedDatabase(t *testing.T) {
	t.Parallel()
	for what, damage := range map[string]func(t *testing.T, database string){
		"text": func(t *testing.T, db string) {
			must(t, os.WriteFile(db, []byte(strings.Repeat("no database ", 999)), 0o600))
		},
		"empty":        func(t *testing.T, db string) { must(t, os.Truncate(db, 0)) },
		"cut":          func(t *testing.T, db string) { must(t, os.Truncate(db, 8192)) },
		"short":        func(t *testing.T, db string) { must(t, os.Truncate(db, 50)) },
		"flipped bits": flip,
		"a directory": func(t *testing.T, db string) {
			must(t, os.Remove(db))
			must(t, os.Mkdir(db, 0o700))
		},
		"a link": func(t *testing.T, db string) {
			must(t, os.Rename(db, db+".moved"))
			must(t, os.Symlink(db+".moved", db))
		},
		"another program's": func(t *testing.T, db string) {
			must(t, os.Remove(db))
			must(t, os.WriteFile(db+".x", nil, 0o600))
			alter(t, db+".x", "CREATE TABLE t (x)")
			must(t, os.Rename(db+".x", db))
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir, database := closedState(t)
			damage(t, database)
			refused(t, dir, sqlite.Options{}, store.ErrDamaged, sqlite.DatabaseName, "--state-dir", "nothing was changed")
		})
	}
}

// flip damages the pages behind the first one in their headers.
func flip(t *testing.T, database string) {
	t.Helper()
	b, err := os.ReadFile(database)
	must(t, err)
	for at := 4096; at < len(b); at += 4096 {
		b[at] ^= 0x55
		b[at+5] ^= 0x55
	}
	must(t, os.WriteFile(database, b, 0o600))
}

// TestDamagedRun: one record that cannot be read stops that run only.
func TestDamagedRun(t *testing.T) {
	t.Parallel()
	for what, data := range map[string]string{"no JSON": "'{'", "another run's": `'{"id":"r9"}'`, "a wrong type": `'{"id":7}'`} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir, database := closedState(t)
			alter(t, database, "UPDATE runs SET data = "+data+" WHERE id = 'r1'")
			s := open(t, dir, nil)
			_, _, err := s.Claim(t.Context(), run.Holder{ID: "h"}, aRun("r2", 2), run.LeaseTTL)
			must(t, err)
			if _, err := s.Load(t.Context(), "r1"); !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "r1") {
				t.Errorf("load: %v", err)
			}
			runs, err := s.List(t.Context(), store.Filter{})
			must(t, err)
			if len(runs) != 2 || runs[0].ID != "r2" || runs[1].ID != "r1" || runs[1].Issue != 1 || !strings.Contains(runs[1].Reason, "cannot be read") {
				t.Errorf("listed %+v", runs)
			}
			if _, err := s.Load(t.Context(), "r2"); err != nil {
				t.Errorf("the other run: %v", err)
			}
		})
	}
}

// TestReplacedDatabase: a writer whose database is no longer the one that others find stops.
func TestReplacedDatabase(t *testing.T) {
	t.Parallel()
	for what, replace := range map[string]func(database string) error{
		"removed":  os.Remove,
		"replaced": func(db string) error { return errors.Join(os.Rename(db, db+".old"), os.WriteFile(db, nil, 0o600)) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "state")
			s := open(t, dir, nil)
			must(t, replace(filepath.Join(dir, sqlite.DatabaseName)))
			_, err := s.Acquire(t.Context(), run.Holder{ID: "h"}, "key", run.LeaseTTL, 0)
			if !errors.Is(err, store.ErrDamaged) {
				t.Errorf("got %v, want ErrDamaged", err)
			}
		})
	}
}

// TestOpenedAtOnce: many openers of a state that is not there yet make one.
func TestOpenedAtOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	var wg sync.WaitGroup
	ids := make([]string, 16)
	for i := range ids {
		wg.Go(func() {
			s, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			ids[i], err = s.Installation(t.Context())
			if err != nil {
				t.Error(err)
			}
			if _, err := s.Acquire(t.Context(), run.Holder{ID: fmt.Sprint(i)}, fmt.Sprint("key", i), run.LeaseTTL, 0); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] || len(id) != 16 {
			t.Errorf("installations %q", ids)
			break
		}
	}
}

// TestCreationCutShort: what a process left that died while it made the database does no harm.
func TestCreationCutShort(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o700))
	for _, end := range []string{".new", ".new-wal", ".new-shm"} {
		must(t, os.WriteFile(filepath.Join(dir, sqlite.DatabaseName+end), []byte("half of something"), 0o600))
	}
	open(t, dir, nil)
	if left, err := filepath.Glob(filepath.Join(dir, "*.new*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestMigrateAtOnce: many processes bring an old database up to date; each migration is done once.
func TestMigrateAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "db")
	must(t, os.WriteFile(path, nil, 0o600))
	list := []string{"CREATE TABLE a (x INTEGER)", "INSERT INTO a VALUES (1)", "INSERT INTO a VALUES (2)"}
	must(t, sqlite.Migrate(t.Context(), path, list[:1]))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := sqlite.Migrate(t.Context(), path, list); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := sum(t, path); got != 3 {
		t.Errorf("the migrations ran to %d, want 3", got)
	}
	// One that fails changes nothing, and the next attempt goes on from there.
	bad := append(list, "INSERT INTO a VALUES (4); INSERT INTO missing VALUES (1)")
	if err := sqlite.Migrate(t.Context(), path, bad); err == nil {
		t.Error("a migration that fails was done")
	}
	if got := sum(t, path); got != 3 {
		t.Errorf("the failed migration left %d, want 3", got)
	}
	must(t, sqlite.Migrate(t.Context(), path, append(list, "INSERT INTO a VALUES (4)")))
	if got := sum(t, path); got != 7 {
		t.Errorf("the mended migration left %d, want 7", got)
	}
	if err := sqlite.Migrate(t.Context(), path, list); !errors.Is(err, store.ErrNewer) {
		t.Errorf("an older program: %v, want ErrNewer", err)
	}
}

func sum(t *testing.T, path string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	defer db.Close()
	must(t, db.QueryRowContext(context.Background(), "SELECT sum(x) FROM a").Scan(&n))
	return n
}

func TestDurability(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "state"), nil)
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "trusted_schema": "0", "query_only": "0"} {
		if got, err := s.WriterPragma(pragma); got != want || err != nil {
			t.Errorf("writer: %s is %q, %v, want %q", pragma, got, err, want)
		}
	}
	if got, err := s.ReaderPragma("query_only"); got != "1" || err != nil {
		t.Errorf("reader: query_only is %q, %v", got, err)
	}
}

// TestOddPath: no character of a path becomes part of the database's address.
func TestOddPath(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a b?mode=memory&c#d%41;é")
	s := open(t, dir, nil)
	_, err := s.Acquire(t.Context(), run.Holder{ID: "h"}, "key", run.LeaseTTL, 0)
	must(t, err)
	if mode(t, filepath.Join(dir, sqlite.DatabaseName)) != 0o600 {
		t.Error("the database is elsewhere")
	}
	if _, ok, err := open(t, dir, nil).Lease(t.Context(), "key"); !ok || err != nil {
		t.Errorf("the lease is not there: %v", err)
	}
}

// TestCheck finds damage that came after the opening.
func TestCheck(t *testing.T) {
	t.Parallel()
	dir, database := closedState(t)
	s := open(t, dir, nil)
	must(t, s.Check(t.Context()))
	f, err := os.OpenFile(database, os.O_WRONLY, 0)
	must(t, err)
	for at := int64(4096); at < 20*4096; at += 4096 {
		_, err := f.WriteAt([]byte{0x55, 0x55, 0x55, 0x55, 0x55, 0x55}, at)
		must(t, err)
	}
	must(t, f.Close())
	if err := s.Check(t.Context()); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("got %v, want ErrDamaged", err)
	}
}
