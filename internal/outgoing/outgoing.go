// Package outgoing decides whether what a run has made may leave the machine: which paths its commits
// touch, and whether a secret is in them, in their messages or in what is said about them. It takes
// secrets out of what is written to a forge. It never pushes anything and never repeats a secret.
package outgoing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"interlock/internal/git"
	"interlock/internal/run"
	"interlock/internal/scope"
	"interlock/internal/secret"
	"interlock/internal/text"
)

// Guard looks at what is to leave one repository. All fields are required. It is safe for use by many
// goroutines.
type Guard struct {
	Repo *git.Repo // the engine's own
	Env  []string  // the operator's environment
	Key  []byte    // see Key
	// State is the state directory: which values agents were handed is noted in it, as keyed hashes.
	State string
	Say   func(r run.Run, kind, format string, args ...any)

	mu     sync.Mutex
	handed []string // names of variables that were handed to agents
	known  *secret.Known
}

// Check looks at what the exact head of a run changes against its recorded base, and at what each
// commit on the way changes: all of them are pushed. It returns the event to save when something must
// not leave, nil when all may.
func (g *Guard) Check(ctx context.Context, r run.Run) (run.Event, error) {
	if ev := g.Words(r); ev != nil {
		return ev, nil
	}
	if ev, err := g.unknown(r); ev != nil || err != nil {
		return ev, err
	}
	ev, err := g.inScope(ctx, r)
	if err == nil && ev == nil {
		ev, err = g.withoutSecrets(ctx, r)
	}
	if errors.Is(err, git.ErrTooBig) { // it would be too big the next time as well
		return run.Failed{
			Reason:   fmt.Sprintf("attempt %d: out of scope: its commits change more than can be looked at: %v", r.Attempt, err),
			Findings: "Your commits change more than can be looked at. Start your commits anew from the base (git reset --soft), with less in them.",
		}, nil
	}
	return ev, err
}

// inScope looks at the paths.
func (g *Guard) inScope(ctx context.Context, r run.Run) (run.Event, error) {
	touched, err := g.Repo.Touched(ctx, r.Base.Commit.Hash, r.Head.Hash)
	if err != nil {
		return nil, fmt.Errorf("compare each commit with the base: %w", err)
	}
	var paths []scope.Path
	seen := map[scope.Path]bool{}
	for _, c := range touched {
		p := scope.Path{Old: c.OldPath, New: c.Path, OldMode: c.OldMode, NewMode: c.NewMode}
		if !seen[p] {
			seen[p] = true
			paths = append(paths, p)
		}
	}
	found := scope.Check(paths, r.Plan.AllowPaths)
	if len(found) == 0 {
		return nil, nil
	}
	var b strings.Builder
	b.WriteString("These changes are not allowed, in no commit of yours. Start your commits anew from the base (git reset --soft), without them:\n")
	known := g.Known(r.Plan) // the name of a file may hold a secret
	for _, f := range found {
		fmt.Fprintf(&b, "- %s\n", known.Redact(f.Text))
	}
	first := known.Redact(found[0].Text)
	g.Say(r, "out of scope", "%s", first)
	return run.Failed{
		Reason:   fmt.Sprintf("attempt %d: out of scope: %s (%d in all)", r.Attempt, first, len(found)),
		Findings: b.String(), AllowWith: g.allowPaths(r, found),
	}, nil
}

// allowPaths are the flags with which all that was found would be allowed; "" where no flag allows it,
// or where the names are not ones to be typed.
func (g *Guard) allowPaths(r run.Run, found []scope.Finding) string {
	paths := slices.Clone(r.Plan.AllowPaths) // what is typed takes the place of what was
	for _, f := range found {
		_, protected := scope.Protected(f.Path)
		if _, err := scope.ParseAllow([]string{f.Path}); err != nil || !protected || f.Rule == scope.RuleGitlink ||
			text.Line(f.Path) != f.Path || g.Known(r.Plan).Redact(f.Path) != f.Path {
			return ""
		}
		paths = append(paths, f.Path)
	}
	return flags("--allow-path", paths)
}

// flags are a flag with each of some values, as they are typed; "" for more than anybody would type.
func flags(flag string, values []string) string {
	var all []string
	for _, v := range values {
		if word := flag + " " + text.Quote(v); !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	if len(all) > shown {
		return ""
	}
	return strings.Join(all, " ")
}
