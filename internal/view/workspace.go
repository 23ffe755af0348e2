package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"interlock/internal/retention"
	"interlock/internal/text"
)

// Workspaces prints workspaces as a table.
func Workspaces(w io.Writer, found []retention.Workspace, now time.Time) error {
	t := text.NewTable(w, "RUN", "WORKSPACE", "ISSUE", "STATE", "SIZE", "AGE", "WORK", "GOES", "REPOSITORY", "WHY")
	for _, f := range found {
		t.Row(f.Run, f.Name, number(f.Issue), string(f.State), text.Size(f.Bytes), age(now.Sub(f.Made)), string(f.Work),
			goes(f, now), text.Short(f.Repo, 40), text.Short(whyStays(f), 100))
	}
	return t.Flush()
}

func goes(f retention.Workspace, now time.Time) string {
	switch {
	case f.Kept:
		return "kept"
	case f.Goes == nil:
		return "not by time"
	case !f.Goes.After(now):
		return "at the next sweep"
	}
	return f.Goes.UTC().Format("2006-01-02")
}

// whyStays says why a workspace is not removed by time, and what is known of its work.
func whyStays(f retention.Workspace) string {
	if f.Stays == "" {
		return f.Why
	}
	return f.Stays + "; " + f.Why
}

// WorkspacesNext are the commands to type, each once, for people. full makes one that can be pasted.
func WorkspacesNext(found []retention.Workspace, full func(string) string) string {
	var b strings.Builder
	seen := map[string]bool{}
	for _, f := range found {
		if f.Goes != nil || seen[f.Next] {
			continue
		}
		if len(seen) == 0 {
			b.WriteString("next:\n")
		}
		seen[f.Next] = true
		fmt.Fprintf(&b, "  %s\n", text.Line(full(f.Next)))
	}
	return b.String()
}

// Dropped says for people what was removed on their word.
func Dropped(d retention.Dropped) string { return removed(d.Workspaces) }

func removed(all []retention.Workspace) string {
	var b strings.Builder
	for _, w := range all {
		fmt.Fprintf(&b, "removed workspace %s of run %s (%s); its work: %s, %s\n", text.Line(w.Name), text.Line(w.Run), text.Size(w.Bytes), w.Work, text.Line(w.Why))
	}
	return b.String()
}

// Swept says for people what a sweep removed.
func Swept(s retention.Swept) string {
	var b strings.Builder
	b.WriteString(removed(s.Workspaces))
	for _, l := range s.Left {
		fmt.Fprintf(&b, "stays: %s\n", text.Line(l))
	}
	fmt.Fprintf(&b, "%d workspaces removed (%s), the logs of %d runs, %d earlier removals finished\n", len(s.Workspaces), text.Size(s.Bytes), s.Logs, s.Finished)
	return b.String()
}

// Exported says for people what was written.
func Exported(x retention.Exported) string {
	var b strings.Builder
	if x.Checked != "" {
		fmt.Fprintf(&b, "%s: the work of run %s, as a repository of its own\n", text.Line(x.Dir), text.Line(x.Run))
	}
	for _, br := range x.Branches {
		here := " "
		if br.Name == x.Checked {
			here = "*"
		}
		fmt.Fprintf(&b, "%s %-12s %.12s  %s\n", here, text.Line(br.Name), text.Line(br.Commit), text.Line(br.What))
	}
	for _, l := range x.Left {
		fmt.Fprintf(&b, "not taken in: %s\n", text.Line(l))
	}
	return b.String()
}
