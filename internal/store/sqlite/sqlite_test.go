package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"interlock/internal/lineartest"
	"interlock/internal/store"
	"interlock/internal/store/sqlite"
	"interlock/internal/storetest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(openVariable); dir != "" {
		os.Exit(openAndTell(dir))
	}
	if dir := os.Getenv(fairVariable); dir != "" {
		os.Exit(writeAndTell(dir, os.Stdin, os.Stdout))
	}
	if dir := os.Getenv(killVariable); dir != "" {
		os.Exit(grantAndDie(dir))
	}
	if dir := os.Getenv(powerVariable); dir != "" {
		os.Exit(workAndTell(dir))
	}
	if dir := os.Getenv(fuseVariable); dir != "" {
		os.Exit(serveFUSE(dir))
	}
	if m, ok := lineartest.Self(); ok {
		os.Exit(askTheStore(m))
	}
	storetest.Main(m, func(ctx context.Context, place string, clock store.Clock) (store.Store, error) {
		return sqlite.Open(ctx, place, sqlite.Options{Clock: clock})
	})
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opened {
		dir, clock := filepath.Join(t.TempDir(), "state"), storetest.NewClock(t)
		again := func(t *testing.T) store.Store { return open(t, dir, clock) }
		return storetest.Opened{Store: again(t), Clock: clock, Again: again, Place: dir}
	})
}

func newClock(t *testing.T) *storetest.Clock { return storetest.NewClock(t) }

// open opens a state directory and closes it when the test ends.
func open(t *testing.T, dir string, clock store.Clock) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), dir, sqlite.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
