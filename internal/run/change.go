package run

import (
	"fmt"
	"strings"
)

// ChangeText is what a change says of its run: the issue that it closes, what was verified, and what
// the verdict names for the reviewer. What others chose in it is quoted.
func (r Run) ChangeText() string {
	tests := "tests were not counted"
	if r.Verdict != nil && r.Verdict.Tests != nil {
		tests = fmt.Sprintf("%d tests ran", *r.Verdict.Tests)
	}
	return fmt.Sprintf("Closes #%d\n\nVerified at %s on %s at %s: the checks passed, %s.\nRun %s, attempt %d, sandbox %s.\n%s",
		r.Issue, r.Head.Hash, r.Base.Branch, r.Base.Commit.Hash, tests, r.ID, r.Attempt, r.Sandbox, r.warnings())
}

func (r Run) warnings() string {
	if r.Verdict == nil || len(r.Verdict.Warnings) == 0 {
		return ""
	}
	const most = 20
	var b strings.Builder
	b.WriteString("\nLook at these (found by patterns, so there may be more, or less in it than it seems):\n\n")
	for i, w := range r.Verdict.Warnings {
		if i == most {
			fmt.Fprintf(&b, "- and %d more: `interlock show %s`\n", len(r.Verdict.Warnings)-most, r.ID)
			break
		}
		fmt.Fprintf(&b, "- %s\n", w)
	}
	return b.String()
}
