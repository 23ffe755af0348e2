package sqlite_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/store/sqlite"
)

// grant acquires a key, as the holder that it is given to first.
func grant(t *testing.T, s *sqlite.Store, who, key string) run.Lease {
	t.Helper()
	l, err := s.Acquire(t.Context(), run.Holder{ID: who}, key, run.LeaseTTL, 0)
	must(t, err)
	return l
}

// pass lets n holders have the key one after the other.
func pass(t *testing.T, s *sqlite.Store, key string, n int) (last run.Fence) {
	t.Helper()
	for range n {
		l := grant(t, s, "h", key)
		if l.Fence <= last {
			t.Fatalf("fence %d after %d", l.Fence, last)
		}
		last = l.Fence
		must(t, s.Release(t.Context(), l))
	}
	return last
}

// snap copies the database of a state that is closed.
func snap(t *testing.T, dir string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, sqlite.DatabaseName))
	must(t, err)
	return b
}

func putBack(t *testing.T, dir string, b []byte) {
	t.Helper()
	path := filepath.Join(dir, sqlite.DatabaseName)
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	must(t, os.WriteFile(path, b, 0o600))
}

// killed opens the state in another process, which does what the environment says and is killed.
func killed(t *testing.T, dir string, grants int) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), killVariable+"="+dir, fmt.Sprint(killVariable, "_N=", grants))
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("the process did not kill itself: %v: %s", err, out)
	}
}

const killVariable = "SQLITE_TEST_KILL"

// grantAndDie passes the key "key" so many times and kills itself.
func grantAndDie(dir string) int {
	s, err := sqlite.Open(background, dir, sqlite.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var n int
	fmt.Sscan(os.Getenv(killVariable+"_N"), &n)
	for range n {
		l, err := s.Acquire(background, run.Holder{ID: "killed"}, "key", run.LeaseTTL, 0)
		if err == nil {
			err = s.Release(background, l)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	self, _ := os.FindProcess(os.Getpid())
	_ = self.Kill()
	select {}
}

// TestOlderCopy: whenever a copy of state.db was made, and however the state was left, a database
// that is put back hands out no fence twice, and nobody can write with a lease of the past.
func TestOlderCopy(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		more   func(t *testing.T, dir string, s *sqlite.Store) // what comes after the copy
		notice bool                                            // it can be known that the copy is older
	}{
		"after a proper close": {func(t *testing.T, dir string, s *sqlite.Store) { pass(t, s, "key", 5) }, true},
		"after many grants": {func(t *testing.T, dir string, s *sqlite.Store) {
			for range 2 {
				must(t, s.SubmitSQL(t.Context(), nil, nil, fmt.Sprintf("UPDATE fences SET fence = fence + %d", sqlite.FenceStep-5)))
				pass(t, s, "key", 9)
			}
		}, true},
		"after a kill": {func(t *testing.T, dir string, s *sqlite.Store) {
			must(t, s.Close())
			killed(t, dir, 5)
		}, false},
		"after two kills": {func(t *testing.T, dir string, s *sqlite.Store) {
			must(t, s.Close())
			killed(t, dir, 5)
			killed(t, dir, 3)
		}, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "state")
			s := open(t, dir, nil)
			pass(t, s, "key", 3)
			stale := grant(t, s, "of the past", "its key")
			must(t, s.Close())
			copied := snap(t, dir)

			s = open(t, dir, nil)
			c.more(t, dir, s)
			must(t, s.Close())
			db, err := sqlite.Raw(filepath.Join(dir, sqlite.DatabaseName))
			must(t, err)
			var highest int64
			must(t, db.QueryRow("SELECT fence FROM fences WHERE key = 'key'").Scan(&highest))
			must(t, db.Close())
			if highest <= 3 {
				t.Fatalf("the test did nothing: fence %d", highest)
			}

			putBack(t, dir, copied)
			s = open(t, dir, nil)
			if c.notice != (s.Raised() != "") || c.notice && !strings.Contains(s.Raised(), "older copy") {
				t.Errorf("said of it: %q", s.Raised())
			}
			if c.notice {
				if _, err := s.Renew(t.Context(), stale, run.LeaseTTL); !errors.Is(err, store.ErrFenced) {
					t.Errorf("a lease of the past was renewed: %v", err)
				}
			}
			if l := grant(t, s, "next", "key"); int64(l.Fence) <= highest {
				t.Errorf("fence %d was handed out by the older copy, %d was before", l.Fence, highest)
			}
			if l := grant(t, s, "next", "another key"); int64(l.Fence) <= highest {
				t.Errorf("fence %d of another key", l.Fence)
			}
			must(t, s.Close())
			if s = open(t, dir, nil); s.Raised() != "" {
				t.Errorf("said again: %q", s.Raised())
			}
		})
	}
}

// TestSealed: opening, reading and closing again changes neither the floor nor the fences.
func TestSealed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, nil)
	last := pass(t, s, "key", 3)
	must(t, s.Close())
	before := tree(t, dir)
	for range 3 {
		s = open(t, dir, nil)
		must(t, second(s.List(t.Context(), store.Filter{})))
		must(t, s.Close())
	}
	if after := tree(t, dir); after != before {
		t.Errorf("reading has changed\n%s\nto\n%s", before, after)
	}
	if l := grant(t, open(t, dir, nil), "h", "key"); l.Fence != last+1 {
		t.Errorf("fence %d after %d", l.Fence, last)
	}
	if _, sealed, err := sqlite.FloorWrites(dir); sealed || err != nil {
		t.Errorf("sealed while it is written to: %v, %v", sealed, err)
	}
}

// TestFloorLost: without its floor a database goes on far above what it knows, and says so; with a
// floor that is damaged it is refused.
func TestFloorLost(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, nil)
	last := pass(t, s, "key", 3)
	must(t, s.Close())
	path := filepath.Join(dir, sqlite.FloorName)
	if mode(t, path) != 0o600 {
		t.Error("the floor is open to others")
	}
	whole, err := os.ReadFile(path)
	must(t, err)
	for at := 3; at < len(whole)-1; at += 17 {
		bad := append([]byte(nil), whole...)
		bad[at] ^= 1
		must(t, os.WriteFile(path, bad, 0o600))
		refused(t, dir, sqlite.Options{}, store.ErrDamaged, sqlite.FloorName, "nothing was changed", "remove that file")
	}
	must(t, os.Remove(path))
	s = open(t, dir, nil)
	if !strings.Contains(s.Raised(), "is missing") {
		t.Errorf("said of it: %q", s.Raised())
	}
	if l := grant(t, s, "h", "key"); int64(l.Fence) <= int64(last)+sqlite.FenceLeap {
		t.Errorf("fence %d after %d", l.Fence, last)
	}
	must(t, s.Close())
	// An older floor is there: the count of writes does not fit.
	must(t, os.WriteFile(path, whole, 0o600))
	s = open(t, dir, nil)
	if !strings.Contains(s.Raised(), "fences go on above") {
		t.Errorf("said of it: %q", s.Raised())
	}
	if l := grant(t, s, "h", "key"); int64(l.Fence) <= int64(last)+sqlite.FenceLeap+1 {
		t.Errorf("fence %d with an older floor", l.Fence)
	}
	must(t, s.Close())
	// The database is gone and the floor is there.
	must(t, os.Remove(filepath.Join(dir, sqlite.DatabaseName)))
	s = open(t, dir, nil)
	if !strings.Contains(s.Raised(), "made anew") {
		t.Errorf("said of it: %q", s.Raised())
	}
	if l := grant(t, s, "h", "key"); int64(l.Fence) <= int64(last)+sqlite.FenceLeap {
		t.Errorf("fence %d after the database was lost", l.Fence)
	}
}

// TestReplacedWhileOpen: an older copy under processes that have the state open is refused, for
// them and for whoever comes.
func TestReplacedWhileOpen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, nil)
	pass(t, s, "key", 3)
	must(t, s.Close())
	copied := snap(t, dir)
	s, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	must(t, err)
	pass(t, s, "key", 3)
	putBack(t, dir, copied)
	if _, err := sqlite.Open(t.Context(), dir, sqlite.Options{}); !errors.Is(err, store.ErrBusy) || !strings.Contains(err.Error(), "was replaced while other") {
		t.Errorf("the newcomer: %v", err)
	}
	if _, err := s.Acquire(t.Context(), run.Holder{ID: "h"}, "key", run.LeaseTTL, 0); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("who had it open: %v", err)
	}
	must(t, s.Close())
	s = open(t, dir, nil)
	if l := grant(t, s, "h", "key"); l.Fence <= 6 {
		t.Errorf("fence %d once more", l.Fence)
	}
}

// TestFlippedBit: one bit anywhere in the closed file, and it is refused by every open.
func TestFlippedBit(t *testing.T) {
	t.Parallel()
	dir, database := closedState(t)
	whole := snap(t, dir)
	seen := 0
	for at := 100; at < len(whole); at += len(whole)/40 + 13 {
		bad := append([]byte(nil), whole...)
		bad[at] ^= 1 << (at % 8)
		must(t, os.WriteFile(database, bad, 0o600))
		refused(t, dir, sqlite.Options{}, store.ErrDamaged, sqlite.DatabaseName, "nothing was changed")
		seen++
	}
	if seen < 30 {
		t.Errorf("only %d bits were tried", seen)
	}
	must(t, os.WriteFile(database, whole, 0o600))
	open(t, dir, nil)
}

// TestStoreTime: store time goes on from its mark in the next boot, also when the clock of that
// boot is far behind, and never goes back when the clock does.
func TestStoreTime(t *testing.T) {
	t.Parallel()
	dir, clock := filepath.Join(t.TempDir(), "state"), newClock(t)
	s := open(t, dir, clock)
	var last time.Duration
	now := func(what string, atLeast time.Duration) {
		t.Helper()
		at, err := s.StoreTime(t.Context())
		must(t, err)
		if at < last+atLeast {
			t.Errorf("%s: store time is %v after %v", what, at, last)
		}
		if shown := s.Clock().Now(); atLeast > 0 && shown != at {
			t.Errorf("%s: the clock shows %v, store time is %v", what, shown, at)
		}
		last = at
	}
	now("first", time.Hour)
	l := grant(t, s, "h", "key")
	if l.Granted != time.Hour {
		t.Errorf("granted at %v in the first boot", l.Granted)
	}
	for boot := range 3 {
		clock.Advance(time.Hour)
		now("an hour later", time.Hour)
		must(t, second(s.Acquire(t.Context(), run.Holder{ID: "h"}, fmt.Sprint("key", boot), run.LeaseTTL, 0)))
		must(t, s.Close())
		clock.Reboot()
		s = open(t, dir, clock)
		now("after a reboot", 0)
		clock.Advance(time.Minute)
		now("a minute after the reboot", time.Minute)
		l = grant(t, s, "h", "key")
	}
	// The clock goes back by an hour: store time stands, and the lease neither ends nor lives on.
	clock.Advance(-time.Hour)
	now("the clock went back", 0)
	must(t, second(s.Renew(t.Context(), l, run.LeaseTTL)))
	clock.Advance(time.Hour + run.LeaseTTL)
	if _, err := s.Renew(t.Context(), l, run.LeaseTTL); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the lease lives on: %v", err)
	}
}

// versionOne makes a state as version 1 left it, with a live lease of this boot and a fence.
func versionOne(t *testing.T, clock store.Clock) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "state")
	must(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, sqlite.DatabaseName)
	must(t, os.WriteFile(path, nil, 0o600))
	must(t, sqlite.Migrate(t.Context(), path, sqlite.MigrationList[:1]))
	must(t, os.Remove(path+".lock"))
	db, err := sqlite.Raw(path)
	must(t, err)
	defer db.Close()
	ns, err := os.Readlink("/proc/self/ns/time")
	if err != nil {
		ns = "none"
	}
	for _, q := range []string{
		"PRAGMA journal_mode = WAL",
		"INSERT INTO facts VALUES ('installation', '0123456789abcdef'), ('time', '" + clock.Boot() + " " + ns + "')",
		"INSERT INTO fences VALUES ('key', 7), ('other', 40)",
		fmt.Sprintf(`INSERT INTO leases VALUES ('key', 7, 'h', '{"id":"h"}', '%s', %d, %d, 0)`, clock.Boot(), clock.Now(), clock.Now()+run.LeaseTTL),
		`INSERT INTO leases VALUES ('other', 40, 'h', '{"id":"h"}', 'long ago', 900000000000000000, 900000030000000000, 0)`,
	} {
		_, err := db.Exec(q)
		must(t, err)
	}
	return dir
}

// TestMigrationFromVersionOne: leases of this boot live on, fences go on, and a copy is kept of
// what was there before.
func TestMigrationFromVersionOne(t *testing.T) {
	t.Parallel()
	clock := newClock(t)
	dir := versionOne(t, clock)
	s := open(t, dir, clock)
	if s.Raised() != "" {
		t.Errorf("said: %q", s.Raised())
	}
	l, ok, err := s.Lease(t.Context(), "key")
	must(t, err)
	if !ok || l.Fence != 7 {
		t.Fatalf("the lease is %v, %v", l, ok)
	}
	clock.Advance(run.LeaseTTL / 2)
	must(t, second(s.Renew(t.Context(), l, run.LeaseTTL)))
	if _, err := s.Acquire(t.Context(), run.Holder{ID: "second"}, "key", run.LeaseTTL, 0); err == nil {
		t.Error("the lease of version 1 was given to another")
	}
	if l := grant(t, s, "second", "other"); l.Fence <= 40 || l.Granted > 2*time.Hour {
		t.Errorf("the next grant is %v", l)
	}
	before := filepath.Join(dir, sqlite.DatabaseName+".before-2")
	if got := mode(t, before); got != 0o600 {
		t.Errorf("the copy has mode %04o", got)
	}
	db, err := sqlite.Raw(before)
	must(t, err)
	defer db.Close()
	var version, fence int
	must(t, db.QueryRow("PRAGMA user_version").Scan(&version))
	must(t, db.QueryRow("SELECT fence FROM fences WHERE key = 'other'").Scan(&fence))
	if version != 1 || fence != 40 {
		t.Errorf("the copy has version %d and fence %d", version, fence)
	}
	must(t, s.Close())
	// The copy of before can be put back: it is migrated again, above what was handed out since.
	done, err := sqlite.Restore(t.Context(), dir, before, sqlite.Options{Clock: clock})
	must(t, err)
	if done.Raised == "" || done.Kept == "" {
		t.Errorf("restored: %+v", done)
	}
	if l := grant(t, open(t, dir, clock), "third", "other"); l.Fence <= 41 {
		t.Errorf("fence %d again", l.Fence)
	}
}

// TestMigrationCopyFails: without room for the copy nothing is migrated.
func TestMigrationCopyFails(t *testing.T) {
	t.Parallel()
	dir := versionOne(t, newClock(t))
	before := filepath.Join(dir, sqlite.DatabaseName+".before-2")
	must(t, os.MkdirAll(filepath.Join(before, "in the way"), 0o700))
	if _, err := sqlite.Open(t.Context(), dir, sqlite.Options{}); err == nil || !strings.Contains(err.Error(), "before-2") {
		t.Errorf("got %v", err)
	}
	db, err := sqlite.Raw(filepath.Join(dir, sqlite.DatabaseName))
	must(t, err)
	defer db.Close()
	var version int
	must(t, db.QueryRow("PRAGMA user_version").Scan(&version))
	if version != 1 {
		t.Errorf("migrated to version %d without a copy", version)
	}
}
