package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"interlock/internal/text"
)

// Problem is one mistake in a file.
type Problem struct {
	File   string `json:"file"`
	Line   int    `json:"line"`   // from 1
	Column int    `json:"column"` // from 1, in characters
	Key    string `json:"key,omitempty"`
	What   string `json:"what"`
	Meant  string `json:"meant,omitempty"` // the nearest known key
}

// String is file:line:column: what is wrong.
func (p Problem) String() string {
	s := fmt.Sprintf("%s:%d:%d: %s", text.Line(p.File), p.Line, p.Column, text.Line(p.What))
	if p.Meant != "" {
		s += fmt.Sprintf("; did you mean %q?", p.Meant)
	}
	return s
}

// mostProblems are shown of one file; the rest is counted.
const mostProblems = 100

// Problems are all mistakes of a file, in the order of their lines. They are an error.
type Problems []Problem

// Error has one line for each mistake.
func (ps Problems) Error() string {
	var b strings.Builder
	for i, p := range ps {
		if i == mostProblems {
			fmt.Fprintf(&b, "\nand %d more", len(ps)-i)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.String())
	}
	return b.String()
}

// sorted returns them in the order of the file, each once.
func (ps Problems) sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(ps)
}
