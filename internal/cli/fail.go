package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"interlock/internal/agent"
	"interlock/internal/claim"
	"interlock/internal/engine"
	"interlock/internal/forge"
	"interlock/internal/forge/local"
	"interlock/internal/git"
	"interlock/internal/problem"
	"interlock/internal/retention"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/store"
	"interlock/internal/text"
)

// told is an error as a person or a script reads it: what happened to what, what is safe, and
// the command to type next.
type told struct {
	Exit int    `json:"exit"`
	What string `json:"what"`
	Safe string `json:"safe"`
	Next string `json:"next"`           // one command line
	Then string `json:"then,omitempty"` // what to do after it, or instead; for people
}

// text is the form for people.
func (p told) text() string {
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
	nothingChanged = problem.NothingChanged
	workKept       = problem.WorkKept
)

// explain maps an error to its exit code and its words. It is the only place that does.
func explain(ctx context.Context, err error, args []string) told {
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
		return told{run.ExitUsage, usage.what, nothingChanged, usage.next, ""}
	case errors.As(err, &own):
		return told{own.Exit, own.What, own.Safe, own.Next, ""}
	case errors.As(err, &stop):
		return ofEngine(stop, args)
	case interrupted(ctx, err):
		return told{run.ExitInterrupted, "stopped because you asked for it", workKept, "interlock " + text.QuoteAll(args), ""}
	case errors.As(err, &accept):
		return ofAccept(accept)
	case errors.As(err, &broken):
		return ofClaim(broken)
	case errors.As(err, &stays):
		return ofEngine(&engine.Refusal{Exit: stays.Exit, What: stays.What, Safe: stays.Safe, Next: stays.Next, Then: stays.Then}, args)
	case errors.As(err, &unfit):
		return told{run.ExitUnfit, unfit.Reason, nothingChanged, "interlock doctor", unfit.Remedy}
	case errors.As(err, &missing):
		return told{run.ExitRefused, fmt.Sprintf("there is no %s %d", missing.What, missing.Number), nothingChanged,
			"interlock " + missing.What + " list", ""}
	case errors.As(err, &nowhere):
		return told{run.ExitUsage, nowhere.Error(), nothingChanged, elsewhere(args), ""}
	case errors.As(err, &still):
		return told{run.ExitUsage, still.Error(), nothingChanged, "chmod +x " + text.Quote(still.Path), ""}
	}
	exit, safe, next := problem.Kind(err)
	if next == "" {
		next = "interlock " + text.QuoteAll(args)
	}
	return told{exit, err.Error(), safe, next, ""}
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
func ofAccept(e *local.AcceptError) told {
	next := e.Command
	if next == "" {
		next = fmt.Sprintf("interlock change show %d", e.Change)
	}
	return told{run.ExitRefused, fmt.Sprintf("change %d is not accepted: %s", e.Change, e.Why), nothingChanged, next, ""}
}

// ofClaim is a claim that is not broken.
func ofClaim(e *claim.RefusedError) told {
	exit := run.ExitRefused
	if e.Held {
		exit = run.ExitHeld
	}
	return told{exit, e.What, nothingChanged, e.Next, ""}
}

// ofEngine is a refusal of the engine, which has words of its own.
func ofEngine(r *engine.Refusal, args []string) told {
	p := told{r.Exit, r.What, r.Safe, r.Next, r.Then}
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
