package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"interlock/internal/agent"
	"interlock/internal/claim"
	"interlock/internal/engine"
	"interlock/internal/forge"
	"interlock/internal/forge/local"
	"interlock/internal/git"
	"interlock/internal/retention"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/store"
	"interlock/internal/text"
)

// problem is an error as a person or a script reads it: what happened to what, what is safe, and
// the command to type next.
type problem struct {
	Exit int    `json:"exit"`
	What string `json:"what"`
	Safe string `json:"safe"`
	Next string `json:"next"`           // one command line
	Then string `json:"then,omitempty"` // what to do after it, or instead; for people
}

// text is the form for people.
func (p problem) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "interlock: %s\n", strings.TrimRight(text.Clean(p.What), "\n"))
	if p.Safe != "" {
		fmt.Fprintf(&b, "  safe: %s\n", text.Line(p.Safe))
	}
	if p.Next != "" {
		fmt.Fprintf(&b, "  next: %s\n", text.Line(p.Next))
	}
	if p.Then != "" {
		fmt.Fprintf(&b, "  then: %s\n", text.Line(p.Then))
	}
	return b.String()
}

// usageError is a command line, or an environment, that cannot be worked with.
type usageError struct {
	what, next string
}

func (e *usageError) Error() string { return e.what }

// refusal is a refusal of the command line itself, in words of its own.
type refusal struct {
	Exit             int
	What, Safe, Next string
}

func (e *refusal) Error() string { return e.What }

const (
	nothingChanged = "nothing was changed"
	workKept       = "what was saved and committed is kept"
)

// explain maps an error to its exit code and its words. It is the only place that does.
func explain(ctx context.Context, err error, args []string) problem {
	var usage *usageError
	var own *refusal
	var stop *engine.Refusal
	var accept *local.AcceptError
	var broken *claim.RefusedError
	var stays *retention.RefusedError
	var unfit *sandbox.UnfitError
	var missing *forge.MissingError
	var nowhere *git.NotRepositoryError
	var still *agent.NotExecutableError
	switch {
	case errors.As(err, &usage):
		return problem{run.ExitUsage, usage.what, nothingChanged, usage.next, ""}
	case errors.As(err, &own):
		return problem{own.Exit, own.What, own.Safe, own.Next, ""}
	case errors.As(err, &stop):
		return ofEngine(stop, args)
	case interrupted(ctx, err):
		return problem{run.ExitInterrupted, "stopped because you asked for it", workKept, "interlock " + text.QuoteAll(args), ""}
	case errors.As(err, &accept):
		return ofAccept(accept)
	case errors.As(err, &broken):
		return ofClaim(broken)
	case errors.As(err, &stays):
		return ofEngine(&engine.Refusal{Exit: stays.Exit, What: stays.What, Safe: stays.Safe, Next: stays.Next, Then: stays.Then}, args)
	case errors.As(err, &unfit):
		return problem{run.ExitUnfit, unfit.Reason, nothingChanged, "interlock doctor", unfit.Remedy}
	case errors.As(err, &missing):
		return problem{run.ExitRefused, fmt.Sprintf("there is no %s %d", missing.What, missing.Number), nothingChanged,
			"interlock " + missing.What + " list", ""}
	case errors.As(err, &nowhere):
		return problem{run.ExitUsage, nowhere.Error(), nothingChanged, elsewhere(args), ""}
	case errors.As(err, &still):
		return problem{run.ExitUsage, still.Error(), nothingChanged, "chmod +x " + text.Quote(still.Path), ""}
	}
	return explainKind(err, args)
}

// elsewhere is a command line that was typed outside of any repository, for one that is in a
// repository; where a repository is to be furnished, one is made first.
func elsewhere(args []string) string {
	if c, _, err := (&app{dry: true}).root().Find(args); err == nil && c.Name() == "init" {
		if path, typed := flagValue(args, "--repo"); typed {
			return "git init " + text.Quote(path)
		}
		return "git init"
	}
	var same []string
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--repo":
			i++
		case strings.HasPrefix(args[i], "--repo="):
		default:
			same = append(same, args[i])
		}
	}
	return "interlock " + text.QuoteAll(append(same, "--repo", "PATH"))
}

// ofAccept is a change that the forge does not merge.
func ofAccept(e *local.AcceptError) problem {
	next := e.Command
	if next == "" {
		next = fmt.Sprintf("interlock change show %d", e.Change)
	}
	return problem{run.ExitRefused, fmt.Sprintf("change %d is not accepted: %s", e.Change, e.Why), nothingChanged, next, ""}
}

// ofClaim is a claim that is not broken.
func ofClaim(e *claim.RefusedError) problem {
	exit := run.ExitRefused
	if e.Held {
		exit = run.ExitHeld
	}
	return problem{exit, e.What, nothingChanged, e.Next, ""}
}

// ofEngine is a refusal of the engine, which has words of its own.
func ofEngine(r *engine.Refusal, args []string) problem {
	p := problem{r.Exit, r.What, r.Safe, r.Next, r.Then}
	if p.Next == "" {
		p.Next = "interlock " + text.QuoteAll(args)
	}
	return p
}

// interrupted reports whether a command ended because a person stopped it. What an operation makes
// of a context that has ended is not to be relied on (a process that was killed, for example), but
// a loss of authority, or an outcome that is not known, is worth more than the interruption.
func interrupted(ctx context.Context, err error) bool {
	if errors.Is(err, ErrInterrupted) || errors.Is(err, context.Canceled) {
		return true
	}
	for _, more := range []error{store.ErrFenced, forge.ErrLost, forge.ErrUnknown, git.ErrUnknown} {
		if errors.Is(err, more) {
			return false
		}
	}
	return errors.Is(context.Cause(ctx), ErrInterrupted)
}

// kind is one row of the mapping of errors that say no more than which sort they are of.
type kind struct {
	is   error
	exit int
	safe string
	next string // "" means the same command again
}

// kinds is looked through from the top; the first that fits is taken.
var kinds = []kind{
	{store.ErrFenced, run.ExitLost, "nothing was written after the loss; " + workKept, ""},
	{forge.ErrLost, run.ExitLost, "nothing was written after the loss; " + workKept, ""},
	{store.ErrDuplicate, run.ExitHeld, nothingChanged, "interlock runs"},
	{store.ErrStale, run.ExitBusy, "nothing was written", ""},
	{store.ErrUnfit, run.ExitUnfit, nothingChanged, "interlock doctor"},
	{store.ErrNewer, run.ExitUsage, nothingChanged, "interlock version"},
	{store.ErrDamaged, run.ExitUnfit, "the files were left as they are; branches and issues are in their repositories", "interlock doctor"},
	{store.ErrFull, run.ExitUnfit, "what was saved before is whole; nothing half-written counts", "df -h"},
	{store.ErrBusy, run.ExitBusy, "nothing was written", ""},
	{store.ErrNotFound, run.ExitRefused, nothingChanged, "interlock runs"},
	{git.ErrUnfit, run.ExitUnfit, nothingChanged, "interlock doctor"},
	{git.ErrNotRepository, run.ExitUsage, nothingChanged, "interlock --help"},
	{git.ErrUnknown, run.ExitUnknown, "it is looked for in the world before anything is done again", ""},
	{git.ErrStaleRef, run.ExitBusy, "nothing was moved", ""},
	{git.ErrRefused, run.ExitRefused, "nothing was moved; " + workKept, "interlock doctor"},
	{forge.ErrUnknown, run.ExitUnknown, "it is looked for in the world before anything is done again", ""},
	{forge.ErrEmpty, run.ExitRefused, nothingChanged, "git commit --allow-empty -m 'First commit'"},
	{forge.ErrDetached, run.ExitUsage, nothingChanged, "git switch BRANCH"},
	{forge.ErrClosed, run.ExitRefused, nothingChanged, "interlock issue list"},
	{forge.ErrDenied, run.ExitRefused, nothingChanged, "interlock doctor"},
	{forge.ErrInvalid, run.ExitUsage, nothingChanged, "interlock --help"},
	{forge.ErrExists, run.ExitRefused, nothingChanged, "interlock change list"},
	{forge.ErrNotFound, run.ExitRefused, nothingChanged, "interlock issue list"},
	{agent.ErrMissing, run.ExitUsage, nothingChanged, "interlock run --help"},
	{syscall.ENOSPC, run.ExitUnfit, "what was saved before is whole; nothing half-written counts", "df -h"},
	{syscall.EDQUOT, run.ExitUnfit, "what was saved before is whole; nothing half-written counts", "quota"},
	{syscall.EROFS, run.ExitUnfit, nothingChanged, "interlock --state-dir DIR doctor"},
	{fs.ErrPermission, run.ExitUnfit, nothingChanged, "interlock doctor"},
	{fs.ErrNotExist, run.ExitUsage, nothingChanged, "interlock --help"},
	{context.DeadlineExceeded, run.ExitBusy, workKept, ""},
}

// explainKind maps the errors that come without words of their own.
func explainKind(err error, args []string) problem {
	again := "interlock " + text.QuoteAll(args)
	var storeHeld *store.HeldError
	var forgeHeld *forge.HeldError
	if errors.As(err, &storeHeld) || errors.As(err, &forgeHeld) {
		return problem{run.ExitHeld, err.Error(), nothingChanged, "interlock runs", ""}
	}
	if strings.Contains(err.Error(), "No space left on device") { // as git says it
		return problem{run.ExitUnfit, err.Error(), "what was saved before is whole; nothing half-written counts", "df -h", ""}
	}
	for _, k := range kinds {
		if errors.Is(err, k.is) {
			next := k.next
			if next == "" {
				next = again
			}
			return problem{k.exit, err.Error(), k.safe, next, ""}
		}
	}
	return problem{run.ExitRefused, err.Error(), workKept, "interlock doctor", ""}
}
