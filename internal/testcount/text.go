package testcount

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// runner reads the lines of one format. Each line is without its end and without colours.
type runner interface {
	line(s string)
	// tally is what the format said so far; ok is false when nothing of it was seen.
	tally() (t Tally, ok bool)
}

// Text reads what test runners printed, line by line, in linear time.
type Text struct {
	marks  *marks
	tap    *tap
	marked []runner // those that print marks
	all    []runner
	quiet  bool // the last line ended whatever was open, and said nothing
}

// NewText returns a reader that has seen nothing.
func NewText() *Text {
	t := &Text{marks: &marks{}, tap: newTAP()}
	t.marked = []runner{&nodeTest{marks: t.marks, tap: t.tap}, &jest{marks: t.marks}, &vitest{marks: t.marks}, &mocha{marks: t.marks}}
	t.all = append([]runner{&pytest{}, &unittest{}, &cargo{}, &goText{}, t.tap}, t.marked...)
	return t
}

// pattern is a regular expression that is compiled at its first use: most processes of the program
// count no test, and there are many patterns.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// colour is a sequence by which a terminal is told a colour, or to clear a line.
var colour = pattern(`\x1b\[[0-9;?]*[A-Za-z]`)

// Line takes one line. What is longer than a runner's own lines is cut.
func (t *Text) Line(line []byte) {
	if len(line) > maxLine {
		line = line[:maxLine]
	}
	line = bytes.TrimRight(line, "\r\n")
	if !telling(line) {
		if t.quiet {
			return
		}
		t.quiet = len(line) > 0
	} else {
		t.quiet = false
	}
	s := string(line)
	if strings.IndexByte(s, 0x1b) >= 0 {
		s = colour().ReplaceAllString(s, "")
	}
	t.marks.line(s)
	for _, r := range t.all {
		r.line(s)
	}
}

// telling reports whether a line may be one of a runner: each of theirs has one of these characters.
// It keeps a flood of other lines cheap: of many in a row only the first is looked at.
func telling(line []byte) bool {
	for _, b := range line {
		if b >= utf8.RuneSelf || b >= '0' && b <= '9' || strings.IndexByte("\x1b.-=:OFNPEk", b) >= 0 {
			return true
		}
	}
	return false
}

// Tallies is what was said, one for each format that was seen.
func (t *Text) Tallies() []Tally {
	var marked, out []Tally
	for _, r := range t.marked {
		if tally, ok := r.tally(); ok {
			marked = append(marked, tally)
		}
	}
	for i := range marked {
		marked[i].Cut = marked[i].Cut || t.marks.all.Cut
		if len(marked) > 1 { // it is not known whose tests are marked
			marked[i].Names = nil
		}
	}
	_, isNode := t.marked[0].tally()
	for _, r := range t.all[:len(t.all)-len(t.marked)] {
		if r == runner(t.tap) && isNode { // it prints TAP, and sums it up
			continue
		}
		if tally, ok := r.tally(); ok {
			out = append(out, tally)
		}
	}
	return append(out, marked...)
}

// number reads the digits of a summary; what is no number is 0.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

var countOf = pattern(`(\d{1,9}) ([a-z]+)`)

// countsOf reads "1 failed, 4 passed" and its like.
func countsOf(s string) map[string]int {
	found := map[string]int{}
	for _, m := range countOf().FindAllStringSubmatch(s, -1) {
		found[m[2]] = sum(found[m[2]], number(m[1]))
	}
	return found
}
