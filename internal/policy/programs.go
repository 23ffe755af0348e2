package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"interlock/internal/shell"
)

// mostLooked is how many lines of a file have their programs looked for: one section after the
// other could hold as many as the file has bytes for, and each costs a look into every directory.
const mostLooked = 1000

// Programs looks for the programs that the lines of a file begin with: those of checks in the
// directories of checkPath, the operator's agent in those of agentPath (both as $PATH has them).
// What is known not to be there is a problem; what cannot be known here is a warning. Of both the
// first are told, and then that there may be more. The error is that of the context.
func (f *File) Programs(ctx context.Context, checkPath, agentPath string) (Problems, []string, error) {
	l := looker{file: f}
	for _, at := range f.lines() {
		if l.looked++; l.looked > mostLooked || l.full() {
			l.warnings = append(l.warnings, fmt.Sprintf("%s: the programs of some lines were not looked for: there are too many", f.Name))
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		path := agentPath
		if at.key.Kind == Lines {
			path = checkPath
		}
		l.look(at.key, at.text, path, at.line)
	}
	slices.SortStableFunc(l.missing, func(a, b Problem) int { return a.Line - b.Line })
	return l.missing, l.warnings, nil
}

// shellLine is a line of a file that a shell runs.
type shellLine struct {
	key  *Key
	text string
	line int // where it stands
}

// lines lists the shell lines of a file whose program can be looked for.
func (f *File) lines() []shellLine {
	sources := []Values{f.Values}
	for _, s := range f.Sections {
		sources = append(sources, s.Values)
	}
	var found []shellLine
	for _, values := range sources {
		if c, ok := values["checks"]; ok {
			for i, line := range c.Value.([]string) {
				found = append(found, shellLine{Named("checks"), line, c.Lines[i]})
			}
		}
		if c, ok := values["agent.command"]; ok && !strings.ContainsRune(shell.First(c.Value.(string)).Text, '/') {
			found = append(found, shellLine{Named("agent.command"), c.Value.(string), c.Lines[0]})
		}
	}
	return found
}

// looker collects what is found of the programs of one file.
type looker struct {
	file     *File
	looked   int
	missing  Problems
	warnings []string
}

// full reports whether enough is told.
func (l *looker) full() bool { return len(l.missing)+len(l.warnings) >= mostProblems }

func (l *looker) look(k *Key, line, path string, at int) {
	f, shown := l.file, cut(line)
	switch word, found := shell.Look(line, path); {
	case found == shell.Missing && word != "interlock" && (k.Kind == Lines || f.Whose != Repository):
		l.missing = append(l.missing, Problem{File: f.Name, Line: at, Column: 1, Key: k.Name,
			What: fmt.Sprintf("%s: there is no program %s for %s (looked for in %s)", k.Name, cut(word), shown, path)})
	case found == shell.Missing:
		l.warnings = append(l.warnings, fmt.Sprintf("%s:%d: there is no program %s on this machine for %s", f.Name, at, cut(word), shown))
	case found == shell.Relative:
		l.warnings = append(l.warnings, fmt.Sprintf("%s:%d: %s is looked for in the commit that is checked, so only a run can tell whether it is there", f.Name, at, cut(word)))
	case found == shell.Unproved && k.Kind == Lines:
		l.warnings = append(l.warnings, fmt.Sprintf("%s:%d: only a shell in the sandbox can tell which program %s begins with", f.Name, at, shown))
	}
}
