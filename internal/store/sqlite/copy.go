package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"interlock/internal/failpoint"
	"interlock/internal/statedir"
	"interlock/internal/store"
)

// Backup writes a whole copy of the database, as it is at one instant, to a new file (mode 0600).
// When it returns nil the copy was read back whole and is on disk. Others may go on meanwhile. It
// returns an error that is fs.ErrExist when there is a file already.
func (s *Store) Backup(ctx context.Context, file string) error {
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("%s: %w", file, fs.ErrExist)
	}
	return s.copyTo(ctx, file, unix.RENAME_NOREPLACE)
}

// keepBefore keeps a copy of the database as it was before a migration, under the number of that
// migration. A copy that an attempt before this one has left is of the same database.
func (s *Store) keepBefore(ctx context.Context) error {
	have, err := version(ctx, s.write)
	if err != nil || have == 0 || have >= len(migrations) {
		return err
	}
	return s.copyTo(ctx, fmt.Sprintf("%s.before-%d", s.path, have+1), 0)
}

// copyTo makes the copy under another name first, so that a file of the final name is whole.
func (s *Store) copyTo(ctx context.Context, file string, how uint) (err error) {
	part := file + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part))
		}
	}()
	if err := vacuumInto(ctx, s.path, part); err != nil {
		return fault(part, err)
	}
	if err := f.Sync(); err != nil {
		return fault(part, err)
	}
	if err := verify(ctx, part); err != nil {
		return fault(part, err)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, part, unix.AT_FDCWD, file, how); err != nil {
		return &fs.PathError{Op: "rename to", Path: file, Err: err}
	}
	return statedir.SyncDirectory(filepath.Dir(file))
}

func vacuumInto(ctx context.Context, from, to string) error {
	db, err := connect(from, 1, "")
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", to)
	return errors.Join(err, db.Close())
}

// verify reads a file that nobody has open and wants it to be a whole database of ours.
func verify(ctx context.Context, path string) error {
	name := url.URL{Scheme: "file", Path: path, RawQuery: "mode=ro&immutable=1&_pragma=cell_size_check(1)&_pragma=trusted_schema(0)"}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return err
	}
	err = func() error {
		if err := identify(ctx, db, path); err != nil {
			return err
		}
		return integrity(ctx, db, path, "integrity_check(1)")
	}()
	return errors.Join(err, db.Close())
}

// Restore puts a copy in the place of the database. The copy is read as a whole first, and stays.
// The database that is there is kept beside. It returns store.ErrBusy when any process has the
// state open, and store.ErrDamaged or store.ErrNewer when the copy cannot serve; then nothing has
// changed. The fences of the restored database are above all that were ever handed out in dir, and
// its leases are void.
func Restore(ctx context.Context, dir, file string, opts Options) (store.Restored, error) {
	s, err := prepare(dir, &opts)
	if err != nil {
		return store.Restored{}, err
	}
	done := store.Restored{From: file}
	err = s.inTurn(ctx, func() error {
		alone, err := s.presence.Enter(filepath.Dir(s.path))
		if err != nil {
			return err
		}
		if !alone {
			return fmt.Errorf("%w: other processes have %s open; nothing was changed; end them (interlock runs --live, ps) and type the "+
				"command again", store.ErrBusy, filepath.Dir(s.path))
		}
		done.Kept, err = s.putBack(ctx, file)
		return err
	})
	if err := errors.Join(fault(s.path, err), s.abandon()); err != nil {
		return store.Restored{}, err
	}
	// Whoever opens it first sees that it is another database, and raises its fences.
	if s, err = Open(ctx, dir, opts); err != nil {
		return store.Restored{}, err
	}
	done.Raised = s.raised
	return done, s.Close()
}

// putBack makes the copy ready beside the database, and then puts it in its place by one rename.
func (s *Store) putBack(ctx context.Context, file string) (kept string, err error) {
	for _, end := range []string{"-wal", "-journal"} {
		if info, err := os.Lstat(file + end); err == nil && info.Size() > 0 {
			return "", damaged(file, fmt.Errorf("%s is beside it, so a part of it may be there only; make copies with interlock state backup", file+end))
		}
	}
	part := s.path + ".part"
	defer func() { err = errors.Join(err, removeAll(part)) }()
	if err := removeAll(part); err != nil {
		return "", unwritable(part, err)
	}
	if err := statedir.CopyFile(file, part); err != nil {
		return "", err
	}
	if err := verify(ctx, part); err != nil {
		return "", fault(file, err)
	}
	if err := s.disown(ctx, part); err != nil {
		return "", fault(part, err)
	}
	failpoint.Here("before restore")
	if kept, err = s.setAside(ctx); err != nil {
		return "", err
	}
	failpoint.Here("in the midst of restore")
	if err := os.Rename(part, s.path); err != nil {
		return "", err
	}
	failpoint.Here("after restore")
	return kept, statedir.SyncDirectory(filepath.Dir(s.path))
}

// disown takes its place in history from a database that is going to be put back: whatever the
// floor says, it is not the one that was used last.
func (s *Store) disown(ctx context.Context, path string) error {
	db, err := connect(path, 1, "")
	if err != nil {
		return err
	}
	err = func() error {
		if err := useLog(ctx, db, path); err != nil {
			return err
		}
		if have, err := version(ctx, db); err != nil || have < 2 {
			return err // it has no ledger before its migration
		}
		_, err := db.ExecContext(ctx, "UPDATE ledger SET epoch = ''")
		return err
	}()
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// setAside keeps a copy of what is there under another name, and takes its log away: left behind,
// that would be replayed into what comes next.
func (s *Store) setAside(ctx context.Context) (kept string, err error) {
	if _, err := os.Lstat(s.path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	for n := 1; ; n++ {
		kept = fmt.Sprintf("%s.replaced-%d", s.path, n)
		if _, err := os.Lstat(kept); errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err := copyWithLog(s.path, kept); err != nil {
		return "", err
	}
	// A copy that is whole takes its log in, so that it can be put back as one file. A damaged one
	// is kept as it was found: SQLite may have touched it by then.
	if err := absorb(ctx, kept); err != nil {
		if err := errors.Join(removeAll(kept), copyWithLog(s.path, kept)); err != nil {
			return "", err
		}
	}
	if err := statedir.SyncDirectory(filepath.Dir(s.path)); err != nil {
		return "", err
	}
	for _, end := range logs {
		if err := os.Remove(s.path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return kept, nil
}

// logs are the ends of the names of what SQLite keeps beside a database.
var logs = []string{"-wal", "-shm", "-journal"}

func copyWithLog(from, to string) error {
	if err := statedir.CopyFile(from, to); err != nil {
		return err
	}
	for _, end := range []string{"-wal", "-journal"} {
		if err := statedir.CopyFile(from+end, to+end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// absorb takes the log of a database that is whole into its file.
func absorb(ctx context.Context, path string) error {
	db, err := connect(path, 1, "")
	if err != nil {
		return err
	}
	if err = integrity(ctx, db, path, "quick_check(1)"); err == nil {
		_, err = db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	}
	return errors.Join(err, db.Close())
}

func removeAll(path string) error {
	var errs []error
	for _, end := range append([]string{""}, logs...) {
		if err := os.Remove(path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
