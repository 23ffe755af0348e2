package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"interlock/internal/agent"
	"interlock/internal/engine"
	"interlock/internal/forge"
	"interlock/internal/forge/local"
	"interlock/internal/git"
	"interlock/internal/problem"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/store"
)

// TestExplain: each class of error has its exit code, says what is safe, and has a next command.
func TestExplain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		exit int
	}{
		{errors.New("something else"), 1},
		{store.ErrNotFound, 1},
		{forge.ErrNotFound, 1}, {forge.ErrClosed, 1}, {forge.ErrDenied, 1}, {forge.ErrExists, 1}, {forge.ErrEmpty, 1},
		{git.ErrRefused, 1},
		{&local.AcceptError{Change: 1, Why: "the work tree is not clean", Command: "git status"}, 1}, {&local.AcceptError{Change: 1, Why: "it is merged"}, 1},
		{&usageError{"no", "interlock --help"}, 2},
		{git.ErrNotRepository, 2}, {forge.ErrDetached, 2}, {forge.ErrInvalid, 2}, {agent.ErrMissing, 2}, {store.ErrNewer, 2},
		{&store.HeldError{Lease: run.Lease{Key: "k"}}, 3}, {&forge.HeldError{Issue: 1}, 3}, {store.ErrDuplicate, 3},
		{&engine.Refusal{Exit: 4, What: "in review"}, 4},
		{forge.ErrUnknown, 5}, {git.ErrUnknown, 5},
		{store.ErrStale, 6}, {store.ErrBusy, 6}, {git.ErrStaleRef, 6}, {context.DeadlineExceeded, 6},
		{store.ErrUnfit, 7}, {store.ErrFull, 7}, {store.ErrDamaged, 7}, {git.ErrUnfit, 7},
		{&sandbox.UnfitError{Reason: "no bubblewrap", Remedy: "apt-get install bubblewrap"}, 7},
		{syscall.ENOSPC, 7}, {syscall.EROFS, 7}, {fs.ErrPermission, 7}, {syscall.EACCES, 7},
		{&engine.Refusal{Exit: 8, What: "the checks failed for good"}, 8},
		{store.ErrFenced, 9}, {forge.ErrLost, 9},
		{ErrInterrupted, 130}, {context.Canceled, 130},
	} {
		for _, err := range []error{c.err, fmt.Errorf("run 1-abc: %w", c.err)} {
			p := explain(t.Context(), err, []string{"runs", "--json"})
			if p.Exit != c.exit {
				t.Errorf("%v: exit code %d, want %d", err, p.Exit, c.exit)
			}
			if p.What == "" || p.Next == "" {
				t.Errorf("%v: what happened, or what to type next, is missing: %+v", err, p)
			}
		}
	}
}

// TestEveryExitCodeIsReached: no code of the table is a promise that nothing keeps.
func TestEveryExitCodeIsReached(t *testing.T) {
	t.Parallel()
	used := []int{run.ExitDone, run.ExitWaits, run.ExitFailed, run.ExitInterrupted} // of resting runs and the engine's refusals
	used = append(used, problem.Exits()...)
	for _, c := range run.ExitCodes {
		if !slices.Contains(used, c.Code) {
			t.Errorf("no error is mapped to %d, %s", c.Code, c.Meaning)
		}
	}
}

// TestInterruptedByCause: whatever an operation makes of it, a context that was ended by a person
// is an interruption; one that ended otherwise is not.
func TestInterruptedByCause(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ErrInterrupted)
	if p := explain(ctx, fmt.Errorf("list: %w", ctx.Err()), []string{"runs", "--repo", "a b"}); p.Exit != 130 || p.Next != "interlock runs --repo 'a b'" {
		t.Errorf("%+v", p)
	}
	if p := explain(ctx, errors.New("git: signal: killed"), nil); p.Exit != 130 {
		t.Errorf("a process that was killed by the interruption: %+v", p)
	}
	if p := explain(t.Context(), errors.New("git: signal: killed"), nil); p.Exit != run.ExitRefused {
		t.Errorf("a process that was killed by something else: %+v", p)
	}
	if p := explain(ctx, store.ErrFenced, nil); p.Exit != run.ExitLost {
		t.Errorf("a loss during an interruption: %+v", p)
	}
}

// TestProblemIsSafeToPrint: what others wrote does nothing to a terminal.
func TestProblemIsSafeToPrint(t *testing.T) {
	t.Parallel()
	p := told{1, "issue \x1b[31m\u202e", "kept\x1b", "git -C '\x07' status\nrm", "go on\x1b"}
	got := p.text()
	if strings.ContainsAny(got, "\x1b\u202e\x07") || strings.Count(got, "\n") != 4 {
		t.Errorf("%q", got)
	}
}
