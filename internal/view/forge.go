package view

import (
	"fmt"
	"io"
	"strings"

	"interlock/internal/forge"
	"interlock/internal/run"
	"interlock/internal/text"
)

// Issues prints issues as a table.
func Issues(w io.Writer, found []forge.Issue) error {
	t := text.NewTable(w, "ISSUE", "STATE", "TITLE", "LABELS", "ASSIGNED")
	for _, is := range found {
		t.Row(number(is.Number), is.State, text.Short(is.Title, 60), strings.Join(is.Labels, ", "), strings.Join(is.Assignees, ", "))
	}
	return t.Flush()
}

// Issue is an issue with its comments, for people.
func Issue(is forge.Issue) string {
	var b strings.Builder
	fmt.Fprintf(&b, "issue %d: %s\n", is.Number, text.Line(is.Title))
	field(&b, "state", is.State)
	field(&b, "author", is.Author)
	field(&b, "labels", strings.Join(is.Labels, ", "))
	field(&b, "assigned", strings.Join(is.Assignees, ", "))
	field(&b, "filed", day(is.Created))
	if is.Body != "" {
		b.WriteString("\n" + text.Indent(is.Body))
	}
	for _, c := range is.Comments {
		fmt.Fprintf(&b, "\n%s, %s:\n%s", text.Line(c.Author), day(c.Created), text.Indent(c.Body))
	}
	return b.String()
}

// Changes prints changes as a table.
func Changes(w io.Writer, found []forge.Change) error {
	t := text.NewTable(w, "CHANGE", "ISSUE", "STATE", "HEAD", "BASE", "TITLE")
	for _, c := range found {
		t.Row(number(c.Number), number(c.Issue), c.State, c.Head, c.Base, text.Short(c.Title, 60))
	}
	return t.Flush()
}

// Proposal is a change with what is needed to judge it.
type Proposal struct {
	forge.Change
	Verdict   *run.Verdict `json:"verdict"` // nil when no run of this state directory made it
	Patch     string       `json:"patch"`
	Truncated bool         `json:"truncated,omitempty"` // the patch is longer than what is shown
}

// Text is a proposal for people.
func (c Proposal) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "change %d: %s\n", c.Number, text.Line(c.Title))
	field(&b, "state", c.State)
	field(&b, "issue", number(c.Issue))
	field(&b, "head", strings.TrimSpace(c.Head+" "+c.HeadAt))
	field(&b, "base", strings.TrimSpace(c.Base+" "+c.BaseAt))
	field(&b, "author", c.Author)
	field(&b, "run", c.Marker)
	field(&b, "opened", day(c.Created))
	if c.Body != "" {
		b.WriteString("\n" + text.Indent(c.Body))
	}
	b.WriteString("\n")
	if c.Verdict == nil {
		b.WriteString("checks: no run in this state directory made this change, so what they said is not known here\n")
	} else {
		b.WriteString(Verdict(*c.Verdict))
	}
	if c.Patch == "" {
		b.WriteString("\nno diff: the branch is gone or changes nothing\n")
		return b.String()
	}
	return b.String() + "\n" + Difference{Patch: c.Patch, Truncated: c.Truncated, Base: c.BaseAt, Head: c.HeadAt}.Text()
}

// Difference is what a change changes, alone.
type Difference struct {
	Change    int64  `json:"change"`
	Base      string `json:"base_at"`
	Head      string `json:"head_at"`
	Patch     string `json:"patch"`
	Truncated bool   `json:"truncated,omitempty"` // it is longer than what is shown
}

// Text is a difference for people.
func (d Difference) Text() string {
	shown := text.Clean(d.Patch)
	if d.Truncated {
		shown += fmt.Sprintf("\n(it is longer; see all of it with: git diff %s %s)\n", text.Line(d.Base), text.Line(d.Head))
	}
	return shown
}
