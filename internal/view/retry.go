package view

import (
	"fmt"
	"strings"

	"interlock/internal/engine"
	"interlock/internal/run"
	"interlock/internal/text"
)

// Retry is what a retry did, for scripts.
type Retry struct {
	Run     string    `json:"run"`
	Issue   int64     `json:"issue"`
	State   run.State `json:"state"`
	Asked   bool      `json:"asked"`             // this call is the one that counts
	Changed []string  `json:"changed"`           // what has changed since the run ended; empty: nothing has
	Allowed int       `json:"allowed,omitempty"` // sessions that may be spent in all, where the retry has raised that
	Next    string    `json:"next"`
	Reason  string    `json:"reason,omitempty"` // why it is to go again, of whoever asked first
}

// RetryOf is what a retry did.
func RetryOf(r engine.Retried) Retry {
	changed := r.Changed
	if changed == nil {
		changed = []string{}
	}
	return Retry{
		Run: r.Run.ID, Issue: r.Run.Issue, State: r.Run.State, Asked: r.Asked, Changed: changed, Allowed: r.Run.Allowed, Reason: r.Run.Retry,
	}
}

// Text says it to people.
func (r Retry) Text() string {
	var b strings.Builder
	switch {
	case r.Asked:
		fmt.Fprintf(&b, "issue %d is to be worked again; run %s is %s\n", r.Issue, text.Line(r.Run), r.State)
	default:
		fmt.Fprintf(&b, "issue %d was to be worked again already, so nothing was changed: %s\n", r.Issue, text.Line(r.Reason))
	}
	for _, c := range r.Changed {
		fmt.Fprintf(&b, "  changed since: %s\n", text.Line(c))
	}
	if len(r.Changed) == 0 {
		b.WriteString("  nothing that it depends on has changed since\n")
	}
	if r.Allowed > 0 {
		fmt.Fprintf(&b, "  sessions that it may have in all: %d\n", r.Allowed)
	}
	return b.String()
}
