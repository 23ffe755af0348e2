package policy

import (
	"fmt"
	"slices"
	"strings"

	"interlock/internal/shell"
	"interlock/internal/text"
)

// Programs looks for the programs that the lines of a file begin with: those of checks in the
// directories of checkPath, the operator's agent in those of agentPath (both as $PATH has them).
// What is known not to be there is a problem; what cannot be known here is a warning.
func (f *File) Programs(checkPath, agentPath string) (missing Problems, warnings []string) {
	look := func(k *Key, line, path string, at int) {
		switch word, found := shell.Look(line, path); {
		case found == shell.Missing && word != "interlock" && (k.Kind == Lines || f.Whose != Repository):
			missing = append(missing, Problem{File: f.Name, Line: at, Column: 1, Key: k.Name,
				What: fmt.Sprintf("%s: there is no program %s for %s (looked for in %s)", k.Name, text.Quote(word), text.Quote(line), path)})
		case found == shell.Missing:
			warnings = append(warnings, fmt.Sprintf("%s:%d: there is no program %s on this machine for %s", f.Name, at, text.Quote(word), text.Quote(line)))
		case found == shell.Relative:
			warnings = append(warnings, fmt.Sprintf("%s:%d: %s is looked for in the commit that is checked, so only a run can tell whether it is there", f.Name, at, text.Quote(word)))
		case found == shell.Unproved && k.Kind == Lines:
			warnings = append(warnings, fmt.Sprintf("%s:%d: only a shell in the sandbox can tell which program %s begins with", f.Name, at, text.Quote(line)))
		}
	}
	all := []Values{f.Values}
	for _, s := range f.Sections {
		all = append(all, s.Values)
	}
	for _, values := range all {
		if c, ok := values["checks"]; ok {
			for i, line := range c.Value.([]string) {
				look(Named("checks"), line, checkPath, c.Lines[i])
			}
		}
		if c, ok := values["agent.command"]; ok && !strings.ContainsRune(shell.First(c.Value.(string)).Text, '/') {
			look(Named("agent.command"), c.Value.(string), agentPath, c.Lines[0])
		}
	}
	slices.SortStableFunc(missing, func(a, b Problem) int { return a.Line - b.Line })
	return missing, warnings
}
