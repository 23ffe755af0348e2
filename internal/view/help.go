package view

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"interlock/internal/run"
)

// RootHelp is what `interlock --help` says beside the list of commands.
func RootHelp() string {
	var b strings.Builder
	b.WriteString(`Interlock lets coding agents work the issues of a repository unattended: one holder per
issue, a private and confined workspace, checks at the exact commit, exactly one change for
review. Kill it at any moment and type the same command again: it goes on where it was.

Exit codes:
`)
	for _, c := range run.ExitCodes {
		fmt.Fprintf(&b, "  %3d  %s\n", c.Code, c.Meaning)
	}
	b.WriteString("\nDefaults:\n")
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, d := range run.Defaults {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", d.What, d.Value, d.Why)
	}
	_ = w.Flush() // a strings.Builder takes everything
	return strings.TrimRight(b.String(), "\n")
}
