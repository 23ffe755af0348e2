package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"interlock/internal/text"
)

// File is what a file says.
type File struct {
	Name     string // as it is shown
	Whose    Whose  // Repository or General
	Values   Values
	Sections []Section // of the operator's file, in its order
}

// Section is what the operator's file says of one repository.
type Section struct {
	Path   string // absolute, or beginning with ~/
	Line   int
	Values Values
}

// Parse reads a file. The error holds all mistakes at once, as Problems; what could be read is
// returned beside it. An empty file is a file without settings.
func Parse(name string, whose Whose, data []byte) (*File, error) {
	p := &parser{file: File{Name: name, Whose: whose, Values: Values{}}, broken: map[int]bool{}}
	if len(data) > MaxBytes {
		p.problem(1, 1, "", fmt.Sprintf("the file has more than the %d bytes that are read: a configuration is short", MaxBytes))
		return &p.file, p.problems
	}
	lines := p.scan(data)
	if p.more {
		return &p.file, p.problems.sorted().ended(p.more)
	}
	if doc := p.load(lines); doc != nil {
		p.document(doc)
	}
	if len(p.problems) > 0 {
		return &p.file, p.problems.sorted().ended(p.more)
	}
	return &p.file, nil
}

// parser reads one file.
type parser struct {
	file     File
	problems Problems
	broken   map[int]bool // lines in which a tab or a character was replaced to read on
	more     bool         // a mistake was found after the most that are told: nothing is looked at any more
}

func (p *parser) problem(line, column int, key, what string) {
	p.add(Problem{File: p.file.Name, Line: max(line, 1), Column: max(column, 1), Key: key, What: what})
}

// add tells of a mistake, cut to what can be read, unless enough are told.
func (p *parser) add(bad Problem) {
	if len(p.problems) >= mostProblems {
		p.more = true
		return
	}
	bad.Key, bad.What = text.Short(bad.Key, mostName), text.Short(bad.What, mostWhat)
	p.problems = append(p.problems, bad)
}

// mark is the byte-order mark.
const mark = "\ufeff"

// scan looks at the characters, before any YAML, and returns the lines with what cannot be read
// replaced, so that the rest can be looked at too.
func (p *parser) scan(data []byte) []string {
	if rest, ok := bytes.CutPrefix(data, []byte(mark)); ok {
		p.problem(1, 1, "", "begins with a byte-order mark: save it as UTF-8 without one")
		data = rest
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		lines = append(lines, p.scanLine(len(lines)+1, strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")))
	}
	return lines
}

func (p *parser) scanLine(n int, line string) string {
	if strings.HasPrefix(line, "%") {
		p.problem(n, 1, "", "a YAML directive: there are none here")
		return ""
	}
	body := strings.TrimLeft(line, " \t")
	indent := line[:len(line)-len(body)]
	if at := strings.IndexByte(indent, '\t'); at >= 0 && body != "" {
		p.problem(n, at+1, "", "a tab in the indentation: YAML takes spaces only")
		p.broken[n] = true
		line = strings.ReplaceAll(indent, "\t", "  ") + body
	}
	column, told := 0, false
	return strings.Map(func(r rune) rune {
		column++
		what := unreadable(r)
		if what == "" {
			return r
		}
		if !told {
			p.problem(n, column, "", what)
			told, p.broken[n] = true, true
		}
		return '?'
	}, line)
}

// unreadable says why a character has no place in a file, "" if it has.
func unreadable(r rune) string {
	switch {
	case r == utf8.RuneError:
		return "a byte that is not UTF-8 (or U+FFFD, which stands for one)"
	case r == '\t':
		return ""
	case unicode.IsControl(r), r == '\u2028', r == '\u2029':
		return fmt.Sprintf("a control character (U+%04X)", r)
	case unicode.Is(unicode.Cf, r):
		return fmt.Sprintf("a character that cannot be seen, or that changes the direction of text (U+%04X)", r)
	case r >= 0xfdd0 && r <= 0xfdef || r&0xfffe == 0xfffe:
		return fmt.Sprintf("no character (U+%04X)", r)
	}
	return ""
}

// mostTries is how many lines are left out to get at the mistakes behind one that breaks the
// syntax.
const mostTries = 16

// load makes a tree of the lines. A line that breaks the syntax is told and left out, so that the
// rest can be looked at; where that leads to nothing, only the first such line is told.
func (p *parser) load(lines []string) *yaml.Node {
	var found Problems
	first := ""
	for range mostTries {
		doc, err := p.once(lines)
		if err == nil {
			p.tell(found)
			return doc
		}
		bad := p.syntax(err)
		if first == "" {
			first = bad.What
		}
		if n := len(found); n > 0 && bad.Line <= found[n-1].Line || bad.Line > len(lines) {
			break
		}
		found = append(found, bad)
		lines[bad.Line-1] = ""
	}
	if len(found) == 0 {
		found = Problems{{File: p.file.Name, Line: 1, Column: 1, What: first}}
	}
	p.tell(found[:1])
	doc, err := p.once(lines[:found[0].Line-1])
	if err != nil {
		return nil
	}
	return doc
}

// tell tells of mistakes in the syntax, but for those that only come of a line being mended.
func (p *parser) tell(found Problems) {
	for _, bad := range found {
		if !p.broken[bad.Line] && !p.broken[bad.Line-1] {
			p.add(bad)
		}
	}
}

// once reads the lines as one document; nil where there is none.
func (p *parser) once(lines []string) (*yaml.Node, error) {
	l, err := yaml.NewLoader(strings.NewReader(strings.Join(lines, "\n") + "\n"))
	if err != nil {
		return nil, err
	}
	var doc, more yaml.Node
	if err := l.Load(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}
	err = l.Load(&more)
	switch {
	case err == nil:
		return nil, &secondError{more.Line}
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return &doc, nil
}

// secondError is a second document in a file.
type secondError struct{ line int }

func (e *secondError) Error() string { return "a second document: a file holds one" }

// syntax is a mistake in the syntax, at the place that a person has to look at.
func (p *parser) syntax(err error) Problem {
	bad := Problem{File: p.file.Name, Line: 1, Column: 1, What: "not YAML: " + err.Error()}
	var second *secondError
	if errors.As(err, &second) {
		bad.Line, bad.What = second.line, second.Error()
		return bad
	}
	var e *yaml.LoadError
	if !errors.As(err, &e) {
		return bad
	}
	at := e.Mark
	if begin := e.ContextMark; begin.Line > 0 && (strings.Contains(e.ContextMsg, "scanning a quoted") || strings.Contains(e.ContextMsg, "flow")) {
		at = begin // what was opened and not closed, not the end of the file
	}
	if at.Line > 0 {
		bad.Line, bad.Column = at.Line, max(at.Column, 1)
	}
	bad.What = "not YAML: " + e.Message
	if strings.Contains(e.Message, "unknown anchor") {
		bad.What = noAnchors
	}
	if strings.Contains(e.Message, "cannot start any token") {
		bad.What += "; a text that begins so has to stand in quotes"
	}
	if strings.Contains(e.Message, "mapping values are not allowed") {
		bad.What += "; a text with a colon has to stand in quotes, and keys of one level have the same indentation"
	}
	return bad
}

const noAnchors = "anchors and aliases are not taken: write the value where it belongs"
