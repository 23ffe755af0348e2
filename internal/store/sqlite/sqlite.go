// Package sqlite keeps the store in one SQLite database in a state directory of this machine. All
// writes of a process go through one goroutine, which puts whatever is queued into one transaction,
// and the processes take turns by a kernel lock. It never decides what a run does next, and it
// never opens a database that is damaged, newer, or somewhere a lease cannot be kept.
package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	driver "modernc.org/sqlite"

	"interlock/internal/boottime"
	"interlock/internal/statedir"
	"interlock/internal/store"
	"interlock/internal/store/sqlite/statement"
)

// The files of a state directory. SQLite adds -wal and -shm beside the database.
const (
	databaseName = "state.db"
	lockName     = "state.lock"
)

// busyTimeout in milliseconds: how long SQLite waits for a lock of its own. Only a fall-back;
// writers wait for their turn instead.
const busyTimeout = 5000

// checkBytes is up to which size a database is read as a whole each time it is opened: about a
// tenth of a second. Above it that is left to Check.
const checkBytes = 64 << 20

// readers bounds the connections that only read.
const readers = 4

// Options adjust Open. The zero value is right outside of tests.
type Options struct {
	Clock         store.Clock            // nil: boottime.New
	Statfs        statedir.Statfs        // nil: statfs(2)
	TimeNamespace func() (string, error) // nil: /proc/self/ns/time
}

// Store is the driver of store.Store and store.Controls. Safe for use by many goroutines.
type Store struct {
	path         string // of the database
	identity     os.FileInfo
	clock        store.Clock
	warnings     []string
	installation string
	namespace    string  // of time, that this process is in
	write        *sql.DB // one connection, used by the writer goroutine only
	read         *sql.DB
	turn         *statedir.Turn
	presence     statedir.Presence
	queue        chan *operation
	stop         chan struct{}
	stopped      chan struct{}
	closing      sync.Once
	closed       error

	ahead atomic.Int64 // store time minus CLOCK_BOOTTIME, in nanoseconds

	// Of the writer goroutine, and of Open and Close before and after it.
	prepared  statement.Set // of the connection that writes
	epoch     string        // the line of history that was opened
	seen      int64         // write transactions of the database, as last seen
	unsealed  bool          // the floor says that the database is in use
	raised    string        // what was done about a database that was put back, "" if it was not
	batchTime time.Duration // after which a turn of this process is over
	logMost   int64         // size of the log in bytes above which it is cut back
	logNext   int64         // no attempt before it has come to this size
}

var (
	_ store.Store    = (*Store)(nil)
	_ store.Controls = (*Store)(nil)
)

// Open opens the state directory dir, and makes it when it is not there. It returns
// store.ErrUnfit, store.ErrNewer, store.ErrDamaged or store.ErrFull; then nothing has changed.
func Open(ctx context.Context, dir string, opts Options) (*Store, error) {
	s, err := prepare(dir, &opts)
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(fault(s.path, err), s.abandon())
	}
	go s.serve()
	return s, nil
}

// prepare makes the state directory fit. Nothing in it is read or written yet.
func prepare(dir string, opts *Options) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnfit, err)
	}
	if opts.Statfs == nil {
		opts.Statfs = statedir.SystemStatfs
	}
	if opts.TimeNamespace == nil {
		opts.TimeNamespace = statedir.TimeNamespace
	}
	if opts.Clock == nil {
		if opts.Clock, err = boottime.New(); err != nil {
			return nil, fmt.Errorf("%w: %w", store.ErrUnfit, err)
		}
	}
	warning, err := statedir.CheckFilesystem(dir, opts.Statfs)
	if err == nil {
		err = statedir.Prepare(dir, databaseName)
	}
	if err != nil {
		return nil, ofDirectory(err)
	}
	s := &Store{
		path:    filepath.Join(dir, databaseName),
		clock:   opts.Clock,
		turn:    &statedir.Turn{Path: filepath.Join(dir, lockName)},
		queue:   make(chan *operation),
		stop:    make(chan struct{}),
		stopped: make(chan struct{}),
		logMost: logMost, batchTime: batchTime,
	}
	if warning != "" {
		s.warnings = append(s.warnings, warning)
	}
	s.namespace, err = opts.TimeNamespace()
	if err != nil {
		return nil, fmt.Errorf("%w: the time namespace cannot be read, so leases cannot be compared; mount /proc: %w", store.ErrUnfit, err)
	}
	return s, nil
}

// open brings the database into being and checks it before anything is written to it. Who is alone
// does all in one turn. Otherwise others have it open: reading it as a whole would make them wait.
func (s *Store) open(ctx context.Context) error {
	// An open-file-description lock does not vanish when some other descriptor of the same file
	// is closed. Where it is not to be had, SQLite falls back to the other kind by itself.
	_, _ = driver.OFDLocking(true)
	var alone bool
	err := s.inTurn(ctx, func() (err error) {
		if alone, err = s.presence.Enter(filepath.Dir(s.path)); err != nil {
			return ofDirectory(err)
		}
		if err := s.create(ctx); err != nil || !alone {
			return err
		}
		changed, err := s.changedSinceSealed()
		if err == nil {
			err = s.inspect(ctx)
		}
		if err == nil {
			err = s.take(ctx, true, changed)
		}
		return errors.Join(err, s.presence.Share())
	})
	if err != nil {
		return err
	}
	if !alone {
		if err := s.inspect(ctx); err != nil {
			return err
		}
		if err := s.inTurn(ctx, func() error { return s.take(ctx, false, false) }); err != nil {
			return err
		}
	}
	if s.read, err = connect(s.path, readers, "query_only(1)"); err != nil {
		return err
	}
	return s.read.QueryRowContext(ctx, "SELECT value FROM facts WHERE name = 'installation'").Scan(&s.installation)
}

// take brings the database up to date and makes it ours to write.
func (s *Store) take(ctx context.Context, alone, changed bool) (err error) {
	if s.identity, err = os.Stat(s.path); err != nil {
		return err
	}
	if err := useLog(ctx, s.write, s.path); err != nil {
		return err
	}
	if err := s.keepBefore(ctx); err != nil {
		return err
	}
	if err := migrate(ctx, s.write, s.path, migrations); err != nil {
		return err
	}
	return s.adopt(ctx, alone, changed)
}

// inTurn runs f while this process has the turn to write. Only before the writer goroutine runs.
func (s *Store) inTurn(ctx context.Context, f func() error) error {
	if err := s.turn.Take(ctx.Done()); err != nil {
		if errors.Is(err, statedir.ErrStopped) {
			return ctx.Err()
		}
		return ofDirectory(err)
	}
	defer s.turn.Give()
	return f()
}

// create makes the database under another name and renames it, so that it is there as a whole or
// not at all: an empty file under the final name is damage, never a fresh start.
func (s *Store) create(ctx context.Context) error {
	info, err := os.Lstat(s.path)
	if err == nil {
		return checkFile(s.path, info)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", store.ErrUnfit, err)
	}
	fresh := s.path + ".new"
	for _, end := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(fresh + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unwritable(fresh+end, err)
		}
	}
	f, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return unwritable(fresh, err)
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := fill(ctx, fresh); err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	if err := os.Rename(fresh, s.path); err != nil {
		return err
	}
	return statedir.SyncDirectory(filepath.Dir(s.path))
}

// checkFile refuses what cannot be the database before SQLite sees it.
func checkFile(path string, info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return damaged(path, errors.New("it is not a regular file"))
	case info.Size() == 0:
		return damaged(path, errors.New("it is empty"))
	case info.Mode().Perm()&0o077 != 0:
		return os.Chmod(path, 0o600)
	}
	return nil
}

// fill writes a whole new database, with the id of this installation.
func fill(ctx context.Context, path string) (err error) {
	db, err := connect(path, 1, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := useLog(ctx, db, path); err != nil {
		return err
	}
	if err := migrate(ctx, db, path, migrations); err != nil {
		return err
	}
	var id [8]byte
	rand.Read(id[:])
	_, err = db.ExecContext(ctx, "INSERT INTO facts (name, value) VALUES ('installation', ?)", hex.EncodeToString(id[:]))
	return err
}

// useLog makes the database keep a write-ahead log. A copy that was put back may not have one.
func useLog(ctx context.Context, db *sql.DB, path string) error {
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("%w: %s cannot have a write-ahead log (journal mode %q); name a local directory with --state-dir",
			store.ErrUnfit, path, mode)
	}
	return nil
}

// inspect opens the connection that writes, and reads enough of the database to know that it is
// ours, whole, and not newer. It writes nothing.
func (s *Store) inspect(ctx context.Context) (err error) {
	if s.write, err = connect(s.path, 1, ""); err != nil {
		return err
	}
	if err := identify(ctx, s.write, s.path); err != nil {
		return err
	}
	if info, err := os.Stat(s.path); err != nil || info.Size() > checkBytes {
		return err
	}
	return integrity(ctx, s.write, s.path, "quick_check(1)")
}

// identify wants a database to be ours and not newer than this program.
func identify(ctx context.Context, q querier, path string) error {
	var app int
	if err := q.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app); err != nil {
		return err
	}
	if app != application {
		return damaged(path, errors.New("it belongs to another program"))
	}
	have, err := version(ctx, q)
	if err != nil {
		return err
	}
	return checkVersion(path, have, len(migrations))
}

// integrity asks SQLite whether the database is whole.
func integrity(ctx context.Context, q querier, path, pragma string) error {
	var said string
	if err := q.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(&said); err != nil {
		return err
	}
	if said != "ok" {
		return damaged(path, errors.New(said))
	}
	return nil
}

// Check reads the whole database from its files, whatever its size, and returns store.ErrDamaged
// when it is not what was written.
func (s *Store) Check(ctx context.Context) error {
	db, err := connect(s.path, 1, "query_only(1)") // a connection of its own has nothing cached
	if err != nil {
		return err
	}
	err = integrity(ctx, db, s.path, "integrity_check(1)")
	return fault(s.path, errors.Join(err, db.Close()))
}

// connect opens a pool on a database that is there. Every connection syncs fully at each commit:
// a fence must not go back after a power loss.
func connect(path string, most int, pragma string) (*sql.DB, error) {
	q := url.Values{}
	q.Set("mode", "rw")
	q.Set("_txlock", "immediate")
	q.Set("_defensive", "1")
	q.Set("_dqs", "0")
	for _, p := range []string{fmt.Sprintf("busy_timeout(%d)", busyTimeout), "foreign_keys(1)", "synchronous(FULL)", "trusted_schema(0)",
		"cell_size_check(1)", "temp_store(MEMORY)", pragma} {
		if p != "" {
			q.Add("_pragma", p)
		}
	}
	name := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	return db, nil
}

func pragmaTimeout(ms int) string { return fmt.Sprintf("PRAGMA busy_timeout = %d", ms) }

// Raised says what was done when this Open found a database that is not the one that was in use
// last, "" when it was.
func (s *Store) Raised() string { return s.raised }

// Warnings says what is not wrong enough to refuse, for people.
func (s *Store) Warnings() []string { return append([]string(nil), s.warnings...) }

// Controls implements store.Store.
func (s *Store) Controls() store.Controls { return s }

// Close ends the writer and closes the database. Operations that were taken finish, those still
// queued are refused and not done. Closing twice is the same as once.
func (s *Store) Close() error {
	s.closing.Do(func() {
		close(s.stop)
		<-s.stopped
		s.closed = s.abandon()
	})
	return s.closed
}

// closeWriter closes the connection that writes. Closing twice is the same as once.
func (s *Store) closeWriter() error { return errors.Join(s.prepared.Close(), s.write.Close()) }

// abandon closes everything. What the seal cannot say is only lost time for the next to open.
func (s *Store) abandon() error {
	var errs []error
	if s.read != nil {
		errs = append(errs, s.read.Close())
	}
	if s.write != nil {
		_ = s.seal()
		errs = append(errs, s.closeWriter())
	}
	s.presence.Leave()
	s.turn.Close()
	return errors.Join(errs...)
}
