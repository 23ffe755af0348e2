package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"interlock/internal/run"
	"interlock/internal/store/sqlite"
	"interlock/internal/store/sqlite/statement"
)

// TestStatements: statements are prepared once and their number is bounded; what failed once works the
// next time; and whoever closes the state last leaves none, so that the log is brought into the database.
func TestStatements(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, nil)
	l, err := s.Acquire(t.Context(), run.Holder{ID: "h"}, "key", run.LeaseTTL, 0)
	must(t, err)
	for range 3 {
		l, err = s.Renew(t.Context(), l, run.LeaseTTL)
		must(t, err)
	}
	before := s.Prepared()
	for range 20 {
		l, err = s.Renew(t.Context(), l, run.LeaseTTL)
		must(t, err)
	}
	if after := s.Prepared(); after != before || before == 0 {
		t.Errorf("%d statements after the first renewals, %d after more", before, after)
	}
	for n := range statement.Most + 20 {
		must(t, s.SubmitSQL(t.Context(), nil, nil, note(n)))
	}
	if err := s.SubmitSQL(t.Context(), nil, nil, note(0)); err == nil {
		t.Error("the same note twice")
	}
	must(t, s.SubmitSQL(t.Context(), nil, nil, "DELETE FROM facts WHERE name = 'note 0'", note(0)))
	if n := s.Prepared(); n > statement.Most {
		t.Errorf("%d statements are prepared, at most %d may be", n, statement.Most)
	}
	must(t, s.Close())
	if info, err := os.Stat(filepath.Join(dir, sqlite.DatabaseName+"-wal")); err == nil && info.Size() > 0 {
		t.Errorf("a log of %d bytes is left", info.Size())
	}
	if _, sealed, err := sqlite.FloorWrites(dir); err != nil || !sealed {
		t.Errorf("sealed: %t, %v", sealed, err)
	}
	if open := openDescriptors(t, dir); len(open) > 0 {
		t.Errorf("still open: %q", open)
	}
}

// openDescriptors are the files of a directory that this process has open.
func openDescriptors(t *testing.T, dir string) (open []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/self/fd/*")
	must(t, err)
	for _, fd := range all {
		if path, err := os.Readlink(fd); err == nil && filepath.Dir(path) == dir {
			open = append(open, path)
		}
	}
	return open
}
