// Package storetest is the conformance suite that every driver of store.Store must pass: what a
// lease, a fence, a revision and an acknowledged write mean, tried with many goroutines, with real
// processes that are killed and stopped, and with a clock that the tests hold. It never looks
// inside a driver.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"interlock/internal/run"
	"interlock/internal/store"
)

// TTL is the time to live of the leases in the suite. The clock is the suite's, so nobody waits.
const TTL = run.LeaseTTL

// Opened is one driver, opened on an empty state for one test.
type Opened struct {
	Store store.Store
	Clock *Clock // the clock that Store runs on
	// Again opens the same state a second time with the same clock, as another process would. It
	// is closed when the test ends.
	Again func(t *testing.T) store.Store
	// Place is what Main's open is given in another process to open the same state.
	Place string
}

// Run runs the whole suite. open is called once for each test; it closes what it opened by
// t.Cleanup. The test binary must call Main in its TestMain.
func Run(t *testing.T, open func(t *testing.T) Opened) {
	for name, test := range map[string]func(*testing.T, Opened){
		"OneWinner":             oneWinner,
		"OneWinnerOfAProof":     oneWinnerOfAProof,
		"FencesRiseForEver":     fencesRiseForEver,
		"LockDelay":             lockDelay,
		"ProofOfDeath":          proofOfDeath,
		"LateRenew":             lateRenew,
		"ExpiredIsFenced":       expiredIsFenced,
		"Reboot":                reboot,
		"SameHolder":            sameHolder,
		"ForgedLease":           forgedLease,
		"LeaseIsShown":          leaseIsShown,
		"AcquireArguments":      acquireArguments,
		"Claim":                 claim,
		"ClaimArguments":        claimArguments,
		"ClaimHeld":             claimHeld,
		"ClaimDuplicate":        claimDuplicate,
		"ClaimRace":             claimRace,
		"WholeRun":              wholeRun,
		"Effects":               effects,
		"EffectPlannedAnew":     effectPlannedAnew,
		"Stale":                 stale,
		"FailedSave":            failedSave,
		"SaveOfAnotherIssue":    saveOfAnotherIssue,
		"Neighbours":            neighbours,
		"OneLiveRun":            oneLiveRun,
		"List":                  list,
		"Sessions":              sessions,
		"CancelRequest":         cancelRequest,
		"NotFound":              notFound,
		"EndedContext":          endedContext,
		"OddText":               oddText,
		"Installation":          installation,
		"KilledWriter":          killedWriter,
		"StoppedHolder":         stoppedHolder,
		"StoppedHolderIsProved": stoppedHolderIsProved,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// holder is a holder like an engine process would be.
func holder(name string) run.Holder {
	return run.Holder{ID: name, Installation: "0123456789abcdef", Host: "host", PID: 100 + len(name), Start: 7, Boot: "boot"}
}

func newRun(id string, issue int64) run.Run {
	return run.Run{
		ID: id, Repo: "local:1-2-3", RepoPath: "/somewhere", Issue: issue,
		Task:  run.Task{Title: "title", Body: "body", Digest: "digest"},
		Plan:  run.Plan{Lane: run.LanePropose, Command: "./agent", Checks: []string{"go test ./..."}, Attempts: 3, AgentTotal: time.Minute},
		State: run.Queued,
	}
}

// claimed makes a run that holds the lease of its issue.
func claimed(t *testing.T, s store.Store, who, id string, issue int64) (run.Lease, run.Run) {
	t.Helper()
	l, r, err := s.Claim(t.Context(), holder(who), newRun(id, issue), TTL)
	if err != nil {
		t.Fatalf("claim %s: %v", id, err)
	}
	return l, r
}

// claimEvent is the first event of a run.
var claimEvent = run.Claimed{
	Base:   run.Base{Branch: "main", Commit: run.Commit{Hash: "b1", Tree: "t1"}},
	Branch: "interlock/1",
	Claim:  run.Claim{Ref: "refs/interlock/claims/1", Nonce: "nonce"},
}

// step applies an event and saves the outcome.
func step(t *testing.T, s store.Store, l run.Lease, r run.Run, e run.Event) run.Run {
	t.Helper()
	next, _, err := run.Apply(r, e)
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	saved, err := s.Save(t.Context(), l, next, e)
	if err != nil {
		t.Fatalf("save %s: %v", e.Kind(), err)
	}
	return saved
}

// text is a value as JSON, to compare and to show.
func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// everything is all that the store shows of a run and its key.
func everything(t *testing.T, s store.Store, r run.Run) string {
	t.Helper()
	ctx := t.Context()
	h, err := s.History(ctx, r.ID)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := s.Load(ctx, r.ID)
	if err != nil {
		t.Fatal(err)
	}
	l, ok, err := s.Controls().Lease(ctx, store.Key(r.Repo, r.Issue))
	if err != nil {
		t.Fatal(err)
	}
	return text(t, map[string]any{"history": h, "run": kept, "lease": l, "held": ok})
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

func wantHeld(t *testing.T, what string, err error) *store.HeldError {
	t.Helper()
	held, ok := errors.AsType[*store.HeldError](err)
	if !ok {
		t.Fatalf("%s: got error %v, want a HeldError", what, err)
	}
	return held
}

// wantFenced tries every write that takes a lease and wants each refused, with nothing changed.
func wantFenced(t *testing.T, s store.Store, l run.Lease, r run.Run) {
	t.Helper()
	ctx := t.Context()
	before := everything(t, s, r)
	_, err := s.Save(ctx, l, r, run.Renewed{})
	wantErr(t, "save", err, store.ErrFenced)
	_, err = s.Renew(ctx, l, TTL)
	wantErr(t, "renew", err, store.ErrFenced)
	wantErr(t, "put session", s.PutSession(ctx, l, store.Session{ID: "late", Run: r.ID}), store.ErrFenced)
	wantErr(t, "release", s.Release(ctx, l), store.ErrFenced)
	if after := everything(t, s, r); after != before {
		t.Errorf("a refused write has changed something:\n%s\nbefore:\n%s", after, before)
	}
}

// acquire grants or fails the test.
func acquire(t *testing.T, s store.Store, who, key string) run.Lease {
	t.Helper()
	l, err := s.Acquire(t.Context(), holder(who), key, TTL, 0)
	if err != nil {
		t.Fatalf("acquire for %s: %v", who, err)
	}
	return l
}

// race lets n acquirers start at once and returns the one lease granted.
func race(t *testing.T, stores []store.Store, n int, try func(ctx context.Context, s store.Store, i int) (run.Lease, error)) run.Lease {
	t.Helper()
	type outcome struct {
		lease run.Lease
		err   error
	}
	start, out := make(chan struct{}), make(chan outcome, n)
	for i := range n {
		go func() {
			<-start
			l, err := try(t.Context(), stores[i%len(stores)], i)
			out <- outcome{l, err}
		}()
	}
	close(start)
	var won []run.Lease
	var held []run.Lease
	for range n {
		switch o := <-out; {
		case o.err == nil:
			won = append(won, o.lease)
		default:
			e, ok := errors.AsType[*store.HeldError](o.err)
			if !ok {
				t.Errorf("an acquirer got %v, want a lease or a HeldError", o.err)
				continue
			}
			held = append(held, e.Lease)
		}
	}
	if len(won) != 1 {
		t.Fatalf("%d acquirers won, want 1: %v", len(won), won)
	}
	for _, l := range held {
		if l != won[0] {
			t.Fatalf("a loser was told that %v holds the key, the winner is %v", l, won[0])
		}
	}
	return won[0]
}

func name(prefix string, i int) string { return fmt.Sprintf("%s-%d", prefix, i) }
