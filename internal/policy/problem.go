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

// What is told of one file, whatever is in it.
const (
	mostProblems = 100  // mistakes; then it is not looked at any more
	mostName     = 128  // characters of a key
	mostWhat     = 1000 // characters of a mistake
	mostValue    = 200  // characters of a value that a mistake repeats
)

// Problems are the mistakes of a file, in the order of their lines: all, or the first that were
// found and a last entry that says that there may be more. They are an error.
type Problems []Problem

// Error has one line for each mistake.
func (ps Problems) Error() string {
	var b strings.Builder
	for i, p := range ps {
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

// ended adds, where looking stopped before all was looked at, an entry that says so.
func (ps Problems) ended(more bool) Problems {
	if !more {
		return ps
	}
	last := ps[len(ps)-1]
	return append(ps, Problem{File: last.File, Line: last.Line, Column: last.Column,
		What: fmt.Sprintf("%s: looking ended after %d", thereMayBeMore, mostProblems)})
}

const thereMayBeMore = "there may be more mistakes"

// Count is how many mistakes they are, without the entries that say that there may be more.
func (ps Problems) Count() int {
	n := 0
	for _, p := range ps {
		if !strings.HasPrefix(p.What, thereMayBeMore) {
			n++
		}
	}
	return n
}

// cut quotes a value, or the beginning of a long one.
func cut(s string) string { return text.Quote(text.Short(s, mostValue)) }
