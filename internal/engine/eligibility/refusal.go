package eligibility

import (
	"errors"
	"fmt"
	"time"

	"interlock/internal/claim"
	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/text"
)

// Refusal is an error for a person: what happened, what is safe, and a command that goes on.
type Refusal struct {
	Exit       int
	What       string
	Safe       string
	Next       string // one command line that can be pasted; "" is the same command again
	Then       string // what to do after it, or instead; for people
	NotStarted bool   // nothing was begun now, so another issue may be tried
	Err        error
}

func (r *Refusal) Error() string { return r.What }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// HeldError says that somebody else holds an issue at this moment.
type HeldError struct {
	Issue int64
	Run   string
	By    string           // for people
	Claim *claim.HeldError // when another installation holds it by its claim
	Why   string           // "" or why a dead holder's place cannot be taken yet
	Err   error
}

func (h *HeldError) Error() string {
	s := fmt.Sprintf("issue %d is held by %s", h.Issue, h.By)
	if h.Run != "" {
		s += " (run " + h.Run + ")"
	}
	if h.Why != "" {
		s += ": " + h.Why
	}
	return s
}

// Unwrap returns the cause.
func (h *HeldError) Unwrap() error { return h.Err }

// OnForge puts it into words that an issue is another installation's by its claim.
func OnForge(held *claim.HeldError) *HeldError {
	return &HeldError{Issue: held.Claim.Issue, By: held.By(), Why: held.Why(), Claim: held, Err: held}
}

// Refusal is what an operator is told who asked for the issue, and waited so long for it.
func (h *HeldError) Refusal(waited time.Duration, repo string) *Refusal {
	what := h.Error()
	if waited > 0 {
		what += fmt.Sprintf("; waited %s", waited)
	}
	next, then := "interlock runs", "type the command again with --wait 10m"
	if h.Run != "" {
		next = "interlock show " + h.Run
	}
	if h.Claim != nil { // or, if that installation is gone for good, claim break, which show prints
		next = fmt.Sprintf("interlock claim show %d --repo %s", h.Issue, text.Quote(repo))
	}
	return &Refusal{Exit: run.ExitHeld, What: what, Safe: "nothing was started", Next: next, Then: then, NotStarted: true, Err: h}
}

// Damaged makes a refusal of one issue out of a record of its run that cannot be read: the other
// issues are not touched by it. Other errors are passed on.
func Damaged(issue int64, err error) error {
	if !errors.Is(err, store.ErrDamagedRun) {
		return err
	}
	return &Refusal{
		Exit: run.ExitUnfit, What: fmt.Sprintf("issue %d is not worked: %v", issue, err),
		Safe: "nothing was started for it; the other issues can be worked", Next: "interlock state check", NotStarted: true, Err: err,
	}
}
