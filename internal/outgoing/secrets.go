package outgoing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"interlock/internal/git/patch"
	"interlock/internal/run"
	"interlock/internal/secret"
	"interlock/internal/text"
)

// lookTotal bounds each of the processes of git that read what is to be pushed.
const lookTotal = 5 * run.GitTotal

// LooksTotal bounds all that one Check does.
const LooksTotal = 3*lookTotal + 4*run.GitTotal

const (
	shown = 20   // findings that are listed
	most  = 1000 // findings after which no more are kept: the rest is only counted
)

// Words looks at the words that would be published beside the commits, and returns the event to save when
// a secret is in them. They are not the agent's, so no attempt would help.
func (g *Guard) Words(r run.Run) run.Event {
	allow, err := secret.ParseAllow(r.Plan.AllowSecrets)
	if err != nil {
		return badAllow(r, err)
	}
	known := g.Known(r.Plan)
	for _, w := range [][2]string{{"the issue's title", r.Task.Title}, {"the name of the branch", r.Branch}, {"the text of the change", r.ChangeText()}} {
		for _, h := range known.Scan(w[1]) {
			if allow.Fingerprint(h) {
				continue
			}
			return run.ParkedBecause{
				Reason: fmt.Sprintf("a secret would be published: %s in %s (%s)", h.Kind, w[0], h.Entry()),
				Say:    fmt.Sprintf("Nothing was pushed: there is a secret in %s. Whoever issued it has to revoke it.", w[0]),
				Next:   fmt.Sprintf("interlock show %s", r.ID),
				Then:   fmt.Sprintf("take it out, and revoke it; if it is no secret: type the command again with --allow-secret %s", h.Entry()),
				Exit:   run.ExitRefused,
			}
		}
	}
	return nil
}

func badAllow(r run.Run, err error) run.Event {
	return run.ParkedBecause{
		Reason: "what the run was told about secrets cannot be read: " + err.Error(), Next: "interlock show " + r.ID, Exit: run.ExitUsage,
		Say: "Nothing was pushed: the settings of the run cannot be read.",
	}
}

// place is where a secret was found. Its text is safe to print.
type place struct {
	hit    secret.Hit
	commit string
	file   string // "" for the commit itself, its message and its author
}

func (p place) String() string {
	at := fmt.Sprintf("line %d of commit %.12s itself (its message or its author)", p.hit.Line, p.commit)
	if p.file != "" {
		at = fmt.Sprintf("%s line %d of commit %.12s", text.Quote(text.Line(p.file)), p.hit.Line, p.commit)
	}
	if p.hit.Line == 0 {
		at = fmt.Sprintf("the name of the file %s of commit %.12s", text.Quote(text.Line(p.file)), p.commit)
	}
	return fmt.Sprintf("%s in %s (%s)", p.hit.Kind, at, p.hit.Entry())
}

// withoutSecrets looks for secrets in all that the commits bring.
func (g *Guard) withoutSecrets(ctx context.Context, r run.Run) (run.Event, error) {
	allow, err := secret.ParseAllow(r.Plan.AllowSecrets)
	if err != nil {
		return badAllow(r, err), nil
	}
	f := newFinder(g.Known(r.Plan), allow)
	if err := patch.Walk(ctx, g.Repo.Plumb, r.Base.Commit.Hash, r.Head.Hash, lookTotal, f); err != nil {
		return nil, fmt.Errorf("look for secrets in each commit: %w", err)
	}
	f.stream.Close()
	if f.count == 0 {
		return nil, nil
	}
	first := f.found[0].String()
	var b strings.Builder
	b.WriteString("A secret is in your commits, and nothing was pushed. A later commit that takes it out does not help. " +
		"Start your commits anew from the base (git reset --soft), without it; read it from the environment instead. Found:\n")
	for _, p := range f.found[:min(len(f.found), shown)] {
		fmt.Fprintf(&b, "- %s\n", p)
	}
	if f.count > shown {
		fmt.Fprintf(&b, "- and %d more\n", f.count-shown)
	}
	g.Say(r, "secret", "%s", first)
	return run.Failed{
		Reason: fmt.Sprintf("attempt %d: a secret would be pushed: %s (%d in all); if it is none: --allow-secret %s",
			r.Attempt, first, f.count, f.found[0].hit.Entry()),
		Findings: b.String(), AllowWith: f.allowWith(r.Plan.AllowSecrets),
	}, nil
}

// allowWith are the flags with which all that was found would be allowed, "" where it is too much.
func (f *finder) allowWith(before []string) string {
	if f.count > len(f.found) {
		return ""
	}
	entries := slices.Clone(before) // what is typed takes the place of what was
	for _, p := range f.found {
		entries = append(entries, p.hit.Entry())
	}
	return flags("--allow-secret", entries)
}

// finder is told what commits bring, and keeps where the secrets in it are.
type finder struct {
	known  *secret.Known
	allow  secret.Allow
	stream *secret.Stream
	commit string
	path   string // as in the tree
	file   string // without secrets in it
	found  []place
	count  int
}

func newFinder(known *secret.Known, allow secret.Allow) *finder {
	f := &finder{known: known, allow: allow}
	f.stream = known.Stream(f.hit)
	return f
}

func (f *finder) hit(h secret.Hit) {
	if f.allow.Covers(h, f.path) {
		return
	}
	p := place{hit: h, commit: f.commit, file: f.file}
	if slices.Contains(f.found[max(0, len(f.found)-shown):], p) {
		return // two kinds of it in one line, or a file that is told twice
	}
	if f.count++; len(f.found) < most {
		f.found = append(f.found, p)
	}
}

// File implements patch.Visitor. A name can be a secret, too.
func (f *finder) File(commit, path string) {
	f.stream.Close() // what is left belongs to the file before
	f.commit, f.path, f.file = commit, path, path
	hits := f.known.Scan(path)
	if len(hits) > 0 {
		f.file = f.known.Redact(path)
	}
	for _, h := range hits {
		h.Line = 0
		f.hit(h)
	}
}

// Lines implements patch.Visitor.
func (f *finder) Lines(from int) { f.stream.Begin(from) }

// Text implements patch.Visitor.
func (f *finder) Text(part []byte) { f.stream.Write(part) }
