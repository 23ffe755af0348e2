// Package command says what kind of thing a command does, as far as that can be told from its words
// without a shell. It never runs anything. It is best effort, and may be: whatever it misses, the sandbox holds. What it
// cannot read it calls Opaque, which counts as a change.
package command

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Class is a kind of command. A greater one outweighs a smaller one.
type Class int

// The classes.
const (
	Reads       Class = iota // changes nothing but what its output says
	Changes                  // may change files, or ask the network
	Opaque                   // what it does cannot be told from its words
	Interactive              // a program that does what is typed into it later
	Forbidden                // what no agent may call: pushing, forges, control of runs and loops
)

var classNames = [...]string{"reads", "changes", "opaque", "interactive", "forbidden"}

func (c Class) String() string {
	if c < 0 || int(c) >= len(classNames) {
		return "unknown"
	}
	return classNames[c]
}

// Finding is one command of a text that is more than a read, and why.
type Finding struct {
	Class Class
	Name  string // the program, without its directory; untrusted text
	Why   string // half a sentence
}

// Result is what a text does.
type Result struct {
	Class    Class // the greatest of its commands
	Findings []Finding
	Writes   []string // files that output is sent to, as they are written; untrusted text
}

// The bounds of what is looked at. What is beyond is Opaque, so that nobody makes it take long.
const (
	textMost   = 64 << 10 // bytes of a text
	nestedMost = 500      // brackets and quotes that could open something
	depthMost  = 8        // texts that run texts
	runsMost   = 10_000   // commands
	// The most findings that are told; the class is that of all of them.
	findingsMost = 100
)

// Shell reads a text for a POSIX shell or bash.
func Shell(text string) Result {
	r := &reader{}
	r.shell(text, 0)
	return r.result
}

// Argv reads a command that no shell reads first.
func Argv(argv []string) Result {
	r := &reader{}
	words := make([]word, len(argv))
	for i, a := range argv {
		words[i] = word{text: a, known: true}
	}
	r.run(words, 0)
	return r.result
}

// reader collects what it finds.
type reader struct {
	result Result
	runs   int
}

func (r *reader) find(c Class, name, why string) {
	r.result.Class = max(r.result.Class, c)
	if c > Reads && len(r.result.Findings) < findingsMost {
		r.result.Findings = append(r.result.Findings, Finding{c, name, why})
	}
}

// word is one word of a command, after the shell has done its part; known is false when only the
// shell can tell it.
type word struct {
	text  string
	known bool
}

// shell reads a text, and all commands in it, whether they are ever reached or not.
func (r *reader) shell(text string, depth int) {
	switch {
	case depth > depthMost:
		r.find(Opaque, "", "texts that run texts go too deep")
		return
	case len(text) > textMost:
		r.find(Opaque, "", "the text is too long to be looked at")
		return
	case strings.Count(text, "(")+strings.Count(text, "{")+strings.Count(text, "`")+strings.Count(text, "[")+strings.Count(text, `"`)+openings(text) > nestedMost:
		r.find(Opaque, "", "too much is nested in the text")
		return
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		r.find(Opaque, "", "it is no text that a shell would read as it stands")
		return
	}
	s := &script{reader: r, depth: depth, vars: variables(f)}
	syntax.Walk(f, s.visit)
}

// openings counts words that open something which more of the kind can be nested in.
func openings(text string) int {
	n := 0
	for _, w := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" \t\n;&|", c) }) {
		switch w {
		case "if", "while", "until", "for", "case", "select", "time", "!", "coproc", "do", "then", "else":
			n++
		}
	}
	return n
}

// script is one text.
type script struct {
	*reader
	depth int
	vars  map[string]string // variables that have one known value
}

// variables finds what is assigned once, as it stands. What is assigned twice is not known.
func variables(f *syntax.File) map[string]string {
	vars, seen := map[string]string{"IFS": " "}, map[string]bool{}
	syntax.Walk(f, func(n syntax.Node) bool {
		a, ok := n.(*syntax.Assign)
		if !ok || a.Name == nil {
			return true
		}
		name := a.Name.Value
		text, known := "", false
		if a.Value != nil && !a.Append && a.Index == nil {
			if lit := a.Value.Lit(); lit != "" {
				text, known = lit, true
			} else if len(a.Value.Parts) == 1 {
				if q, ok := a.Value.Parts[0].(*syntax.SglQuoted); ok && !q.Dollar {
					text, known = q.Value, true
				}
			}
		}
		delete(vars, name)
		if known && !seen[name] {
			vars[name] = text
		}
		seen[name] = true
		return true
	})
	return vars
}

// visit looks at each statement; what is inside is visited as well.
func (s *script) visit(n syntax.Node) bool {
	stmt, ok := n.(*syntax.Stmt)
	if !ok {
		return true
	}
	input := s.redirects(stmt)
	if call, ok := stmt.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 {
		if len(call.Assigns) > 0 {
			s.find(Changes, "", "it sets variables for a command")
		}
		words := s.expand(call.Args)
		if input != nil && readsProgram(words) {
			s.shell(*input, s.depth+1)
			return true
		}
		s.run(words, s.depth)
	}
	return true
}

// redirects notes where output goes, and returns the text that standard input is made of, if it is
// in the text itself.
func (s *script) redirects(stmt *syntax.Stmt) (input *string) {
	for _, d := range stmt.Redirs {
		switch d.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if w := s.one(d.Hdoc); w.known {
				input = &w.text
			}
		case syntax.WordHdoc:
			if w := s.one(d.Word); w.known {
				input = &w.text
			}
		case syntax.RdrIn, syntax.DplIn:
		default:
			s.output(d)
		}
	}
	return input
}

func (s *script) output(d *syntax.Redirect) {
	w := s.one(d.Word)
	switch {
	case !w.known:
		s.find(Opaque, "", "where its output goes cannot be told")
	case d.Op == syntax.DplOut && strings.Trim(w.text, "0123456789-") == "":
	case w.text == "/dev/null" || w.text == "/dev/stdout" || w.text == "/dev/stderr":
	default:
		s.find(Changes, "", "its output goes to a file")
		s.result.Writes = append(s.result.Writes, w.text)
	}
}

// readsProgram reports whether a command runs what its standard input says.
func readsProgram(words []word) bool {
	if len(words) == 0 || !words[0].known || !shells[path.Base(words[0].text)] {
		return false
	}
	for _, w := range words[1:] {
		if !w.known || !strings.HasPrefix(w.text, "-") || strings.Contains(w.text, "c") {
			return false
		}
	}
	return true
}

// expand makes words of what the shell would make them of.
func (s *script) expand(args []*syntax.Word) []word {
	var words []word
	for _, a := range args {
		w := s.one(a)
		if w.known && s.splits(a) {
			for _, f := range strings.Fields(w.text) {
				words = append(words, word{f, true})
			}
			continue
		}
		words = append(words, w)
	}
	return words
}

// splits reports whether a word holds a variable outside of quotes, which may become several words.
func (s *script) splits(w *syntax.Word) bool {
	for _, p := range w.Parts {
		if _, ok := p.(*syntax.ParamExp); ok {
			return true
		}
	}
	return false
}

// one returns what a word says, if it can be known.
func (s *script) one(w *syntax.Word) word {
	if w == nil {
		return word{}
	}
	var b strings.Builder
	ok := s.parts(&b, w.Parts)
	return word{b.String(), ok}
}

func (s *script) parts(b *strings.Builder, parts []syntax.WordPart) bool {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(p.Value))
		case *syntax.SglQuoted:
			if p.Dollar { // escapes of its own
				return false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if !s.parts(b, p.Parts) {
				return false
			}
		case *syntax.ParamExp:
			v, known := s.value(p)
			if !known {
				return false
			}
			b.WriteString(v)
		default:
			return false
		}
	}
	return true
}

// value returns what a variable holds, if that is known and nothing is done to it.
func (s *script) value(p *syntax.ParamExp) (string, bool) {
	if p.Param == nil || p.Length || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Exp != nil || p.Excl {
		return "", false
	}
	v, known := s.vars[p.Param.Value]
	return v, known
}

// unescape takes the backslashes off that the parser leaves in a literal.
func unescape(lit string) string {
	if !strings.Contains(lit, `\`) {
		return lit
	}
	var b strings.Builder
	for i := 0; i < len(lit); i++ {
		if lit[i] == '\\' && i+1 < len(lit) {
			i++
			if lit[i] == '\n' {
				continue
			}
		}
		b.WriteByte(lit[i])
	}
	return b.String()
}
