package run

import (
	"fmt"
	"strings"
)

// NotRun is Command.Why of a check that was not run because an earlier one failed.
const NotRun = "not run: an earlier check failed"

// Findings says in plain words what a failed verdict wants mended. It goes into the next prompt.
func (v Verdict) Findings() string {
	var b strings.Builder
	if v.Why != "" {
		fmt.Fprintf(&b, "%s\n", v.Why)
	}
	for _, c := range v.Commands {
		if c.Why == "" {
			continue
		}
		if c.Why == NotRun {
			fmt.Fprintf(&b, "\nCheck `%s` was %s\n", c.Line, c.Why)
			continue
		}
		fmt.Fprintf(&b, "\nCheck `%s` failed: %s\n", c.Line, c.Why)
		if c.Output != "" {
			fmt.Fprintf(&b, "\n%s\n", c.Output)
		}
	}
	if len(v.Warnings) > 0 {
		b.WriteString("\nSeen when the tests were compared with those of the base:\n")
		for _, w := range v.Warnings {
			fmt.Fprintf(&b, "- %s\n", w)
		}
	}
	return strings.TrimSpace(b.String())
}
