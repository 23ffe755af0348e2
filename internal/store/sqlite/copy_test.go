package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/store/sqlite"
)

var background = context.Background()

// TestBackup: a copy made while others write is one instant, private, and never over a file.
func TestBackup(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, nil)
	l, r, err := s.Claim(t.Context(), run.Holder{ID: "h"}, aRun("r1", 1), run.LeaseTTL)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			saved, err := s.Save(t.Context(), l, r, run.Failed{Findings: "x"})
			if err != nil {
				t.Error(err)
				return
			}
			r = saved
		}
	})
	for range 5 {
		file := filepath.Join(t.TempDir(), "copy")
		must(t, s.Backup(t.Context(), file))
		if got := mode(t, file); got != 0o600 {
			t.Errorf("the copy has mode %04o", got)
		}
		if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
			t.Errorf("beside the copy: %v, %v", entries, err)
		}
		db, err := sqlite.Raw(file)
		must(t, err)
		var revision, events int64
		must(t, db.QueryRow("SELECT revision, (SELECT count(*) FROM events) FROM runs").Scan(&revision, &events))
		must(t, db.Close())
		if revision != events+1 {
			t.Errorf("the copy has revision %d and %d events", revision, events)
		}
		before, err := os.ReadFile(file)
		must(t, err)
		if err := s.Backup(t.Context(), file); !errors.Is(err, fs.ErrExist) {
			t.Errorf("over a file: %v", err)
		}
		if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
			t.Errorf("the file was touched: %v", err)
		}
	}
	cancel()
	wg.Wait()
	if err := s.Backup(t.Context(), filepath.Join(dir, "no", "such", "place")); err == nil {
		t.Error("a backup nowhere")
	}
}

// TestRestore puts a copy back: the database of before is kept, the copy too, no fence comes twice,
// and no lease of the copy lives.
func TestRestore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	file := filepath.Join(t.TempDir(), "copy")
	s := open(t, dir, nil)
	l, _, err := s.Claim(t.Context(), run.Holder{ID: "h"}, aRun("r1", 1), run.LeaseTTL)
	must(t, err)
	must(t, s.Backup(t.Context(), file))
	copied, err := os.ReadFile(file)
	must(t, err)
	last := pass(t, s, "key", 20)
	_, _, err = s.Claim(t.Context(), run.Holder{ID: "h"}, aRun("r2", 2), run.LeaseTTL)
	must(t, err)

	// Not while it is open here.
	before := tree(t, dir)
	if _, err := sqlite.Restore(t.Context(), dir, file, sqlite.Options{}); !errors.Is(err, store.ErrBusy) || !strings.Contains(err.Error(), "open") {
		t.Errorf("restored under a process that has it open: %v", err)
	}
	if after := tree(t, dir); after != before {
		t.Errorf("the refusal has changed\n%s\nto\n%s", before, after)
	}
	must(t, s.Close())

	for round := range 2 {
		done, err := sqlite.Restore(t.Context(), dir, file, sqlite.Options{})
		must(t, err)
		if done.From != file || mode(t, done.Kept) != 0o600 || !strings.Contains(done.Raised, "fences go on above") {
			t.Errorf("restored: %+v", done)
		}
		s = open(t, dir, nil)
		if _, err := s.Load(t.Context(), "r2"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a run of after the copy: %v", err)
		}
		must(t, second(s.Load(t.Context(), "r1")))
		if err := second(s.Renew(t.Context(), l, run.LeaseTTL)); !errors.Is(err, store.ErrFenced) {
			t.Errorf("the lease of the copy lives: %v", err)
		}
		if next := grant(t, s, "next", "key"); next.Fence <= last {
			t.Errorf("round %d: fence %d after %d", round, next.Fence, last)
		} else {
			last = next.Fence
		}
		if next := grant(t, s, "next", l.Key); next.Fence <= l.Fence {
			t.Errorf("fence %d after %d", next.Fence, l.Fence)
		}
		must(t, s.Close())
		kept, err := sqlite.Raw(done.Kept)
		must(t, err)
		var n int
		must(t, kept.QueryRow("SELECT count(*) FROM runs").Scan(&n))
		must(t, kept.Close())
		if want := 2 - round; n != want {
			t.Errorf("the database of before has %d runs, want %d", n, want)
		}
	}
	if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, copied) {
		t.Errorf("the copy was changed: %v", err)
	}
	s = open(t, dir, nil)
	r, err := s.Examine(t.Context())
	must(t, err)
	if len(r.Copies) != 2 || r.Runs != 1 || !strings.Contains(r.Raised, "restored") || r.Version != sqlite.Migrations {
		t.Errorf("examined: %+v", r)
	}
}

// TestRestoreRefuses what cannot serve, and changes nothing.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	dir, database := closedState(t)
	whole := snap(t, dir)
	write := func(name string, b []byte) string {
		path := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(path, b, 0o600))
		return path
	}
	damagedCopy := append([]byte(nil), whole...)
	for at := 4096; at < len(damagedCopy); at += 4096 {
		damagedCopy[at] ^= 0x55
	}
	newer := write("newer", whole)
	alter(t, newer, "PRAGMA user_version = 999")
	withLog := write("with log", whole)
	must(t, os.WriteFile(withLog+"-wal", []byte("something"), 0o600))
	for what, c := range map[string]struct {
		file string
		want error
	}{
		"text":      {write("text", []byte(strings.Repeat("text ", 999))), store.ErrDamaged},
		"empty":     {write("empty", nil), store.ErrDamaged},
		"damaged":   {write("damaged", damagedCopy), store.ErrDamaged},
		"cut":       {write("cut", whole[:8192]), store.ErrDamaged},
		"newer":     {newer, store.ErrNewer},
		"with log":  {withLog, store.ErrDamaged},
		"missing":   {filepath.Join(dir, "nosuch"), fs.ErrNotExist},
		"directory": {t.TempDir(), nil},
	} {
		before := tree(t, dir)
		_, err := sqlite.Restore(t.Context(), dir, c.file, sqlite.Options{})
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", what, err, c.want)
		}
		if after := tree(t, dir); after != before {
			t.Errorf("%s: the refusal has changed\n%s\nto\n%s", what, before, after)
		}
	}
	// A damaged database is replaced, and kept with its log: left behind, the log would be replayed
	// into what comes next.
	good := write("good", whole)
	killed(t, dir, 5)
	flip(t, database)
	found := snap(t, dir)
	done, err := sqlite.Restore(t.Context(), dir, good, sqlite.Options{})
	must(t, err)
	for _, end := range []string{"", "-wal"} {
		if info, err := os.Stat(done.Kept + end); err != nil || info.Size() == 0 {
			t.Errorf("not kept: %v", err)
		}
	}
	if now, err := os.ReadFile(done.Kept); err != nil || !bytes.Equal(now, found) {
		t.Errorf("the damaged database was not kept as it was found: %v", err)
	}
	s := open(t, dir, nil)
	must(t, second(s.Load(t.Context(), "r1")))
	if l, ok, err := s.Lease(t.Context(), "key"); ok || err != nil {
		t.Errorf("the log of the damaged database is in the restored one: %v, %v", l, err)
	}
	r, err := s.Examine(t.Context())
	must(t, err)
	if r.Fence != 1 {
		t.Errorf("the restored database knows of fence %d", r.Fence)
	}
}

// TestRestoreKeepsTheLog: a database whose last user was killed is kept with what its log holds, as
// one file that can itself be put back.
func TestRestoreKeepsTheLog(t *testing.T) {
	t.Parallel()
	dir, _ := closedState(t)
	file := filepath.Join(t.TempDir(), "copy")
	must(t, os.WriteFile(file, snap(t, dir), 0o600))
	killed(t, dir, 5)
	first, err := sqlite.Restore(t.Context(), dir, file, sqlite.Options{})
	must(t, err)
	must(t, second(sqlite.Restore(t.Context(), dir, first.Kept, sqlite.Options{})))
	s := open(t, dir, nil)
	r, err := s.Examine(t.Context())
	must(t, err)
	if r.Fence != 5 {
		t.Errorf("the kept database knows of fence %d, want 5", r.Fence)
	}
	if l := grant(t, s, "h", "key"); l.Fence <= 5 {
		t.Errorf("fence %d again", l.Fence)
	}
}
