package reason

import (
	"fmt"
	"strings"
	"time"

	"interlock/internal/store"
	"interlock/internal/text"
)

// newest returns the last few records as they are told.
func newest(all []store.Record, most int) []Point {
	var points []Point
	for _, e := range all[max(0, len(all)-most):] {
		points = append(points, Point{e.At.UTC(), e.Kind, e.Detail()})
	}
	return points
}

// Text is an answer for people.
func (a Answer) Text() string {
	var b strings.Builder
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-9s %s\n", name, text.Line(value))
		}
	}
	fmt.Fprintf(&b, "issue %d: %s\n", a.Issue, text.Line(a.Title))
	state := a.State
	if !a.Since.IsZero() {
		state += ", since " + a.Since.UTC().Format(time.DateTime) + " UTC"
	}
	field("state", state)
	field("run", a.Run)
	field("why", a.Why)
	for _, c := range a.Changed {
		field("changed", c)
	}
	field("asked", a.Asked)
	for _, p := range a.Pending {
		field("pending", p)
	}
	field("next", a.Next)
	field("then", a.Then)
	if len(a.Last) > 0 {
		b.WriteString("last:\n")
	}
	for _, p := range a.Last {
		fmt.Fprintf(&b, "  %s UTC  %s\n", p.At.Format(time.DateTime), text.Line(strings.TrimSpace(p.What+"  "+p.Why)))
	}
	return b.String()
}
