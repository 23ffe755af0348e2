package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/store/sqlite"
)

// plug occupies the writer until it is pulled, so that what is queued meanwhile becomes one batch.
func plug(t *testing.T, s *sqlite.Store) (pull func()) {
	t.Helper()
	started, finish, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	start := sync.OnceFunc(func() { close(started) }) // it may run once more
	go func() {
		done <- s.Submit(context.Background(), func() error {
			start()
			<-finish
			return nil
		})
	}()
	<-started
	return sync.OnceFunc(func() {
		close(finish)
		<-done // it shares the fate of its batch
	})
}

// queue starts a write and waits until it is in the queue: until every goroutine of the bubble waits.
func queue(do func() error) <-chan error {
	got := make(chan error, 1)
	go func() { got <- do() }()
	synctest.Wait()
	return got
}

// inBubble runs a test in which queue knows when a write is queued. Time stands still there while
// anything goes on, so that no turn is over before its time.
func inBubble(t *testing.T, test func(*testing.T)) {
	t.Parallel()
	synctest.Test(t, test)
}

func note(n int) string {
	return fmt.Sprintf("INSERT INTO facts (name, value) VALUES ('note %d', 'x')", n)
}

func notes(t *testing.T, dir string) (n int) {
	t.Helper()
	db, err := sqlite.Raw(filepath.Join(dir, sqlite.DatabaseName))
	must(t, err)
	defer db.Close()
	must(t, db.QueryRow("SELECT count(*) FROM facts WHERE name LIKE 'note %'").Scan(&n))
	return n
}

func writes(t *testing.T, dir string) (n int64) {
	t.Helper()
	db, err := sqlite.Raw(filepath.Join(dir, sqlite.DatabaseName))
	must(t, err)
	defer db.Close()
	must(t, db.QueryRow("SELECT writes FROM ledger").Scan(&n))
	return n
}

// TestBatch: what is queued while a transaction runs is one transaction. An operation that fails
// leaves nothing, and its neighbours are done; one whose caller has gone is not done.
func TestBatch(t *testing.T) { inBubble(t, testBatch) }

func testBatch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, nil)
	pull := plug(t, s)
	defer pull()
	before := writes(t, dir)
	refusal := errors.New("a refusal")
	ctx, cancel := context.WithCancel(t.Context())
	var good []<-chan error
	bad := map[string]<-chan error{}
	for n := range 10 {
		good = append(good, queue(func() error { return s.SubmitSQL(t.Context(), nil, nil, note(n)) }))
		switch n {
		case 2:
			bad["refused"] = queue(func() error { return s.SubmitSQL(t.Context(), nil, refusal, note(100), note(101)) })
		case 5:
			bad["no SQL"] = queue(func() error { return s.SubmitSQL(t.Context(), nil, nil, note(200), "no SQL") })
		case 6:
			bad["taken twice"] = queue(func() error { return s.SubmitSQL(t.Context(), nil, nil, note(300), note(0)) })
		case 7:
			bad["gone"] = queue(func() error { return s.SubmitSQL(ctx, nil, nil, note(400)) })
		}
	}
	cancel()
	if err := <-bad["gone"]; !errors.Is(err, context.Canceled) {
		t.Errorf("who has gone was told %v", err)
	}
	pull()
	for _, got := range good {
		must(t, <-got)
	}
	if err := <-bad["refused"]; !errors.Is(err, refusal) {
		t.Errorf("who was refused was told %v", err)
	}
	for _, what := range []string{"no SQL", "taken twice"} {
		if err := <-bad[what]; err == nil {
			t.Errorf("%s: done", what)
		}
	}
	if n := notes(t, dir); n != 10 {
		t.Errorf("%d notes were kept, want 10", n)
	}
	if n := writes(t, dir) - before; n != 1 {
		t.Errorf("%d transactions were made of one queue of 10, want 1", n)
	}
}

// TestBatchBounds: a turn ends after so many operations, and after so much time: the process that
// waits by then has its turn next.
func TestBatchBounds(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		operations int
		time       time.Duration // that a turn may take
		most       int           // operations that are done before the other process has its turn
	}{
		"count": {3 * sqlite.BatchMost, time.Hour, sqlite.BatchMost - 1}, // the first of the turn is the plug
		"time":  {50, time.Nanosecond, 0},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if at := waitsFor(t, c.operations, c.time); at > c.most {
				t.Errorf("the other process had its turn after %d operations, want at most %d", at, c.most)
			}
		})
	}
}

// TestNextInLine: a process that waits for its turn has it next, however much is queued here, each
// time that it comes.
func TestNextInLine(t *testing.T) {
	t.Parallel()
	for range 5 {
		if at := waitsFor(t, 50, 0); at > 0 {
			t.Errorf("the other process had its turn after %d operations that came later", at)
		}
	}
}

// waitsFor returns how many operations of one process are done before one of another process, which
// stands in line when they begin. A turn of the first process may take so long.
func waitsFor(t *testing.T, operations int, turn time.Duration) (at int) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	s, other := open(t, dir, nil), open(t, dir, nil)
	s.SetBatchTime(turn)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var order []bool // true is the other process's
	do := func(s *sqlite.Store, others bool) {
		wg.Go(func() {
			err := s.Submit(t.Context(), func() error {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, others)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	pull := plug(t, s)
	defer pull()
	do(other, true)
	for !inLine(t, dir) {
		time.Sleep(time.Millisecond)
	}
	for range operations {
		do(s, false)
	}
	time.Sleep(100 * time.Millisecond) // with fewer in the queue than there are, the bound is only not reached
	pull()
	wg.Wait()
	return slices.Index(order, true)
}

// inLine reports whether a process stands at the door of the lock: it has the next turn.
func inLine(t *testing.T, dir string) bool {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, sqlite.LockName), os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Len: 1}
	must(t, unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock))
	return lock.Type != unix.F_UNLCK
}

// TestBatchIsAnsweredWhenKept: nobody is told anything before the transaction is committed, also
// who was refused because of what a neighbour wrote in it.
func TestBatchIsAnsweredWhenKept(t *testing.T) { inBubble(t, testAnsweredWhenKept) }

func testAnsweredWhenKept(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "state"), nil)
	pull := plug(t, s)
	defer pull()
	first := queue(func() error { return second(s.Acquire(t.Context(), run.Holder{ID: "a"}, "key", run.LeaseTTL, 0)) })
	loser := queue(func() error { return second(s.Acquire(t.Context(), run.Holder{ID: "b"}, "key", run.LeaseTTL, 0)) })
	// The last one makes the commit fail: its foreign key is checked then.
	last := queue(func() error {
		return s.SubmitSQL(t.Context(), nil, nil, "PRAGMA defer_foreign_keys = 1", "INSERT INTO cancels VALUES ('nobody', '', 0)")
	})
	pull()
	won, lost, failed := <-first, <-loser, <-last
	_, kept, err := s.Lease(t.Context(), "key")
	must(t, err)
	if won == nil || failed == nil {
		t.Errorf("told that it is kept: winner %v, last %v", won, failed)
	}
	if _, held := errors.AsType[*store.HeldError](lost); held {
		t.Error("the loser was told of a winner that is none")
	}
	if kept {
		t.Error("a lease was kept")
	}
	must(t, second(s.Acquire(t.Context(), run.Holder{ID: "c"}, "key", run.LeaseTTL, 0)))
}

// TestBatchOnFullDatabase: an operation for which there is no room fails alone, though SQLite
// undoes the whole transaction.
func TestBatchOnFullDatabase(t *testing.T) { inBubble(t, testBatchOnFullDatabase) }

func testBatchOnFullDatabase(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, nil)
	must(t, s.WriterExec("PRAGMA max_page_count = 150"))
	pull := plug(t, s)
	defer pull()
	big := fmt.Sprintf("INSERT INTO facts (name, value) VALUES ('big', '%s')", strings.Repeat("x", 1<<20))
	a := queue(func() error { return s.SubmitSQL(t.Context(), nil, nil, note(1)) })
	b := queue(func() error { return s.SubmitSQL(t.Context(), nil, nil, big) })
	c := queue(func() error { return s.SubmitSQL(t.Context(), nil, nil, note(2)) })
	pull()
	must(t, <-a)
	if err := <-b; !errors.Is(err, store.ErrFull) {
		t.Errorf("got %v, want ErrFull", err)
	}
	must(t, <-c)
	if n := notes(t, dir); n != 2 {
		t.Errorf("%d notes were kept, want 2", n)
	}
}

// TestLogIsBounded: readers that overlap at every instant do not keep the log from being cut back.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	const most = 1 << 20
	s := open(t, dir, nil)
	s.SetLogMost(most)
	l, r, err := s.Claim(t.Context(), run.Holder{ID: "h"}, aRun("r1", 1), time.Hour) // a slow disk may take longer than a lease
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for i := range 3 {
		db, err := sqlite.Raw(filepath.Join(dir, sqlite.DatabaseName))
		must(t, err)
		t.Cleanup(func() { db.Close() })
		wg.Go(func() {
			time.Sleep(time.Duration(i) * 7 * time.Millisecond)
			for ctx.Err() == nil {
				var n int
				tx, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
				if err != nil {
					continue
				}
				if err := tx.QueryRow("SELECT count(*) FROM runs").Scan(&n); err != nil {
					t.Error(err)
				}
				time.Sleep(20 * time.Millisecond)
				tx.Rollback()
			}
		})
	}
	var largest int64
	big := strings.Repeat("x", 64<<10)
	for range 150 {
		r.Findings = big
		r, err = s.Save(t.Context(), l, r, run.Failed{Findings: big})
		must(t, err)
		info, err := os.Stat(filepath.Join(dir, sqlite.DatabaseName+"-wal"))
		must(t, err)
		largest = max(largest, info.Size())
	}
	t.Logf("the log was %d KiB at most, its limit is %d KiB", largest>>10, most>>10)
	if largest > 4*most {
		t.Errorf("the log grew to %d bytes, its limit is %d", largest, most)
	}
}
