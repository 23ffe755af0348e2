package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/store/sqlite"
)

// holdTurn takes the lock between processes, as another process would in the midst of a write.
func holdTurn(t *testing.T, dir string) (give func()) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, sqlite.LockName), os.O_RDWR, 0)
	must(t, err)
	must(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	return sync.OnceFunc(func() { f.Close() })
}

// TestTurn: no write begins while another process has the turn; reads go on. A caller who goes
// meanwhile has had nothing done, and the lock is free afterwards.
func TestTurn(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, nil)
	give := holdTurn(t, dir)
	defer give()
	ctx, cancel := context.WithCancel(t.Context())
	gone, waits := make(chan error, 1), make(chan error, 1)
	go func() { gone <- second(s.Acquire(ctx, run.Holder{ID: "gone"}, "a", run.LeaseTTL, 0)) }()
	time.Sleep(50 * time.Millisecond)
	go func() { waits <- second(s.Acquire(t.Context(), run.Holder{ID: "waits"}, "b", run.LeaseTTL, 0)) }()
	time.Sleep(50 * time.Millisecond)
	if _, ok, err := s.Lease(t.Context(), "a"); ok || err != nil {
		t.Errorf("a read beside the waiting writes: %v, %v", ok, err)
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller who went was told %v", err)
	}
	select {
	case err := <-waits:
		t.Fatalf("a write was done out of turn: %v", err)
	default:
	}
	give()
	must(t, <-waits)
	if l, ok, err := s.Lease(t.Context(), "a"); ok || err != nil {
		t.Errorf("the write of the caller who went was done: %v, %v", l, err)
	}
	must(t, second(open(t, dir, nil).Acquire(t.Context(), run.Holder{ID: "other"}, "c", run.LeaseTTL, 0)))
}

// TestTaken: a caller whose context ends after its write was taken is told the outcome.
func TestTaken(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "state"), nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, want := range []error{nil, store.ErrStale} {
		got := make(chan error, 1)
		started, finish := make(chan struct{}), make(chan struct{})
		go func() {
			got <- s.Submit(ctx, func() error {
				close(started)
				<-finish
				return want
			})
		}()
		<-started
		if want != nil {
			cancel()
			time.Sleep(20 * time.Millisecond)
		}
		close(finish)
		if err := <-got; !errors.Is(err, want) {
			t.Errorf("told %v, want %v", err, want)
		}
	}
}

// TestOpenWaits: opening waits for its turn too, and can be given up.
func TestOpenWaits(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	must(t, open(t, dir, nil).Close())
	defer holdTurn(t, dir)()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := sqlite.Open(ctx, dir, sqlite.Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestLockFileRemoved: whoever removes the lock file does not get two turns at once.
func TestLockFileRemoved(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	a, b := open(t, dir, nil), open(t, dir, nil)
	lock := filepath.Join(dir, sqlite.LockName)
	must(t, a.Submit(t.Context(), func() error { return nil })) // both have the old file open
	must(t, b.Submit(t.Context(), func() error { return nil }))
	must(t, os.Remove(lock))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, s := range []*sqlite.Store{a, b, open(t, dir, nil)} {
		wg.Go(func() {
			for range 20 {
				err := s.Submit(t.Context(), func() error {
					if !mu.TryLock() {
						return errors.New("two writers at once")
					}
					defer mu.Unlock()
					time.Sleep(time.Millisecond)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	// Removed while somebody waits for it: the one who waited looks again.
	give := holdTurn(t, dir)
	got := make(chan error, 1)
	go func() { got <- a.Submit(t.Context(), func() error { return nil }) }()
	time.Sleep(50 * time.Millisecond)
	must(t, os.Remove(lock))
	give()
	must(t, <-got)
	if _, err := os.Stat(lock); err != nil {
		t.Errorf("the lock file was not made anew: %v", err)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, nil)
	give := holdTurn(t, dir)
	defer give()
	got := make(chan error, 2)
	for range 2 { // one is with the writer, one is still in front of it
		go func() { got <- s.Submit(t.Context(), func() error { return errors.New("done after the close") }) }()
	}
	time.Sleep(50 * time.Millisecond)
	must(t, s.Close()) // though the turn does not come
	must(t, s.Close())
	for range 2 {
		if err := <-got; err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("a write that was queued: %v", err)
		}
	}
	if err := second(s.Acquire(t.Context(), run.Holder{ID: "h"}, "key", run.LeaseTTL, 0)); err == nil {
		t.Error("a closed store has granted a lease")
	}
	if err := second(s.Load(t.Context(), "r1")); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("a closed store was read: %v", err)
	}
}

// TestCloseWaits: a write that was taken is finished before the database is closed under it.
func TestCloseWaits(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, nil)
	started, finish := make(chan struct{}), make(chan struct{})
	wrote, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		wrote <- s.Submit(t.Context(), func() error {
			close(started)
			<-finish
			return nil
		})
	}()
	<-started
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		t.Errorf("closed in the midst of a write: %v", err)
		closed <- nil
	case <-time.After(50 * time.Millisecond):
	}
	close(finish)
	must(t, <-closed)
	must(t, <-wrote)
}

// TestNothingIsLeftRunning is not parallel: it counts goroutines.
func TestNothingIsLeftRunning(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := filepath.Join(t.TempDir(), "state")
	s, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	give := holdTurn(t, dir)
	got := make(chan error, 1)
	go func() { got <- s.Submit(ctx, func() error { return nil }) }()
	time.Sleep(20 * time.Millisecond)
	cancel()
	<-got
	must(t, s.Close())
	give()
	if s, err := sqlite.Open(t.Context(), dir, sqlite.Options{TimeNamespace: func() (string, error) { return "", os.ErrPermission }}); err == nil {
		s.Close()
		t.Error("opened")
	}
}

// TestDescriptors: no descriptor of the state is inherited by a child.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, nil)
	must(t, second(s.Acquire(t.Context(), run.Holder{ID: "h"}, "key", run.LeaseTTL, 0)))
	must(t, second(s.List(t.Context(), store.Filter{})))
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	found := 0
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || !strings.HasPrefix(target, dir) {
			continue
		}
		found++
		info, err := os.ReadFile("/proc/self/fdinfo/" + e.Name())
		must(t, err)
		var flags int
		for line := range strings.Lines(string(info)) {
			if v, ok := strings.CutPrefix(line, "flags:"); ok {
				_, err = fmt.Sscanf(strings.TrimSpace(v), "%o", &flags)
				must(t, err)
			}
		}
		if flags&syscall.O_CLOEXEC == 0 {
			t.Errorf("%s would be inherited", target)
		}
	}
	if found < 4 { // database twice, -wal, lock at least
		t.Errorf("only %d descriptors were found", found)
	}
}

// wantFull fills the state until nothing fits any more, and wants a clear refusal, nothing kept of
// what was refused, and a store that works again when there is room.
func wantFull(t *testing.T, s *sqlite.Store, makeRoom func()) {
	t.Helper()
	ctx := t.Context()
	l, r, err := s.Claim(ctx, run.Holder{ID: "h"}, aRun("r1", 1), run.LeaseTTL)
	must(t, err)
	big := strings.Repeat("x", 20<<10)
	for range 1000 {
		next := r
		next.Findings = big
		if next, err = s.Save(ctx, l, next, run.Failed{Findings: big}); err != nil {
			break
		}
		r = next
	}
	if !errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), "free some room") || !strings.Contains(err.Error(), sqlite.DatabaseName) {
		t.Fatalf("got %v, want ErrFull", err)
	}
	kept, err := s.Load(ctx, r.ID)
	must(t, err)
	h, err := s.History(ctx, r.ID)
	must(t, err)
	if kept.Revision != r.Revision || int64(len(h.Events)) != r.Revision-1 {
		t.Errorf("acknowledged up to revision %d, kept %d with %d events", r.Revision, kept.Revision, len(h.Events))
	}
	makeRoom()
	must(t, second(s.Save(ctx, l, r, run.Failed{Findings: big})))
}

func TestFullDatabase(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "state"), nil)
	must(t, s.WriterExec("PRAGMA max_page_count = 150"))
	wantFull(t, s, func() { must(t, s.WriterExec("PRAGMA max_page_count = 100000")) })
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, "1200k")
	filler := filepath.Join(dir, "filler")
	must(t, os.WriteFile(filler, make([]byte, 300<<10), 0o600))
	s := open(t, filepath.Join(dir, "state"), nil)
	wantFull(t, s, func() { must(t, os.Remove(filler)) })
}

func TestOpenOnFullDisk(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, "100k")
	filler := filepath.Join(dir, "filler")
	_ = os.WriteFile(filler, make([]byte, 200<<10), 0o600)
	state := filepath.Join(dir, "state")
	must(t, os.Mkdir(state, 0o700))
	refused(t, state, sqlite.Options{}, store.ErrFull, "free some room")
	must(t, os.Remove(filler))
	must(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT, "size=2m"))
	open(t, state, nil)
}

// smallDisk mounts a filesystem of that size.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small filesystem; TestFullDatabase tries the same otherwise")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a small filesystem cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return dir
}

func second[T any](_ T, err error) error { return err }
