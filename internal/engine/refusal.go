package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"interlock/internal/engine/eligibility"
	"interlock/internal/forge"
	"interlock/internal/lease"
	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/text"
)

// Refusal is an error for a person: what happened, what is safe, and a command that goes on.
type Refusal = eligibility.Refusal

// HeldError says that somebody else holds an issue at this moment.
type HeldError = eligibility.HeldError

// every is how often what is held is looked at again: a look at a forge costs more.
func every(h *HeldError) time.Duration {
	if h.Claim != nil {
		return 8 * waitEvery
	}
	return waitEvery
}

// interrupted is what an operator sees who pressed Ctrl-C.
func (e *Engine) interrupted(r run.Run) *Refusal {
	if r.ID == "" {
		return &Refusal{Exit: run.ExitInterrupted, What: "interrupted; nothing had been started here", Safe: "nothing was changed"}
	}
	return &Refusal{
		Exit: run.ExitInterrupted,
		What: fmt.Sprintf("interrupted: run %s of issue %d stopped in state %q", r.ID, r.Issue, r.State),
		Safe: "its claim, its commits and its workspaces are kept; no process of it is left",
		Then: "it goes on; to end it instead: interlock cancel " + r.ID,
	}
}

// lost is what an operator sees when the lease or the claim went to somebody else.
func (e *Engine) lost(r run.Run, err error) *Refusal {
	return &Refusal{
		Exit: run.ExitLost,
		What: fmt.Sprintf("run %s of issue %d lost its authority: %v", r.ID, r.Issue, err),
		Safe: "its session was ended first; nothing was written after the loss; its work is kept",
		Next: "interlock show " + r.ID, Err: err,
	}
}

// ended turns a resting run into what its operator is told: nil when it is what was asked for.
func (e *Engine) ended(r run.Run) error {
	switch r.State {
	case run.InReview, run.Done:
		return nil
	case run.Parked:
		return &Refusal{
			Exit: r.Exit, What: fmt.Sprintf("issue %d is parked by run %s: %s", r.Issue, r.ID, r.Reason),
			Safe: e.keptWork(r), Next: r.Next, Then: r.Then,
		}
	}
	return &Refusal{
		Exit: run.ExitRefused, What: fmt.Sprintf("run %s of issue %d was canceled: %s", r.ID, r.Issue, r.Reason),
		Safe: e.keptWork(r), Next: "interlock show " + r.ID,
	}
}

func (e *Engine) keptWork(r run.Run) string {
	if r.Tip == "" || r.Tip == r.Base.Commit.Hash {
		return "the repository is as it was"
	}
	return fmt.Sprintf("the work is kept: git --git-dir %s show %s", text.Quote(e.repo.Dir()), r.Tip)
}

// moved reports whether an error came because the repository is not where it was.
func (e *Engine) moved(err error) bool {
	_, serr := os.Stat(e.RepoPath)
	return errors.Is(serr, fs.ErrNotExist) && err != nil
}

// explain turns an error that ended the driving of a run into one for its operator.
func (e *Engine) explain(r run.Run, err error) error {
	var refusal *Refusal
	switch {
	case err == nil || errors.As(err, &refusal):
		return err
	case errors.Is(err, lease.ErrInterrupted):
		return e.interrupted(r)
	case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrStale), errors.Is(err, forge.ErrLost):
		return e.lost(r, err)
	case strings.Contains(err.Error(), "No space left on device"), errors.Is(err, syscall.ENOSPC):
		return &Refusal{
			Exit: run.ExitUnfit, What: fmt.Sprintf("run %s of issue %d: %v", r.ID, r.Issue, err),
			Safe: "what was saved before is whole", Next: "df -h " + text.Quote(e.State), Then: "make room, then type the command again", Err: err,
		}
	case e.moved(err):
		return &Refusal{
			Exit: run.ExitRefused, What: fmt.Sprintf("run %s of issue %d: there is no repository at %s any more", r.ID, r.Issue, e.RepoPath),
			Safe: "its work is kept, and its claim stays with the repository", Next: "interlock show " + r.ID,
			Then: "type the command again with --repo and the path that it has now", Err: err,
		}
	case unknown(err), errors.Is(err, lease.ErrOverdue):
		return &Refusal{
			Exit: run.ExitUnknown, What: fmt.Sprintf("run %s of issue %d: %v", r.ID, r.Issue, err),
			Safe: "what may have happened is written down and will be looked for before anything is done again",
			Err:  err,
		}
	}
	return fmt.Errorf("run %s of issue %d: %w", r.ID, r.Issue, err)
}
