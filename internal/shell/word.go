// Package shell reads the first word of a shell line, as far as that can be known without a shell.
// It never runs anything, and what only a shell can tell it calls Doubtful.
package shell

import (
	"slices"
	"strings"
)

// Kind says what is known of the first word of a line.
type Kind int

// The kinds of first words.
const (
	Doubtful Kind = iota // only the shell can tell
	Plain                // a word as it stands
	Quoted               // a word of which a part is quoted: never syntax, never an alias
)

// Word is the first word of a shell line, with its quotes taken off.
type Word struct {
	Kind       Kind
	Text       string
	Start, End int  // in the line
	Tilde      bool // begins with an unquoted "~/"
}

const blanks = " \t\n"

// First finds the first word of a POSIX shell line (XCU 2.3, token recognition). It is
// doubtful where the word needs the shell: expansions, patterns, assignments, redirections,
// keywords, comments, functions, unbalanced quotes.
func First(line string) Word {
	w := Word{Start: len(line) - len(strings.TrimLeft(line, blanks))}
	end, text, kind := scanWord(line, w.Start)
	if kind == Doubtful || end == w.Start {
		return Word{}
	}
	w.End, w.Text, w.Kind = end, text, kind
	raw := line[w.Start:w.End]
	if strings.HasPrefix(raw, "~") {
		if w.Tilde = strings.HasPrefix(raw, "~/"); !w.Tilde {
			return Word{}
		}
	}
	rest := strings.TrimLeft(line[w.End:], " \t")
	switch {
	case strings.HasPrefix(raw, "#"), assignment(raw), kind == Plain && keyword(text):
		return Word{}
	case strings.HasPrefix(rest, "("): // a function definition
		return Word{}
	case digits(raw) && w.End < len(line) && strings.ContainsRune("<>", rune(line[w.End])):
		return Word{}
	}
	return w
}

// scanWord reads one word from at and takes its quotes off.
func scanWord(line string, at int) (end int, text string, kind Kind) {
	var b strings.Builder
	kind = Plain
	for i := at; i < len(line); {
		c := line[i]
		switch {
		case strings.IndexByte(blanks+"|&;<>()", c) >= 0:
			return i, b.String(), kind
		case strings.IndexByte("$`*?[{}", c) >= 0:
			return i, "", Doubtful
		case c == '\\' || c == '\'' || c == '"':
			n, s, ok := unquote(line[i:])
			if !ok {
				return i, "", Doubtful
			}
			b.WriteString(s)
			kind = Quoted
			i += n
		default:
			b.WriteByte(c)
			i++
		}
	}
	return len(line), b.String(), kind
}

// unquote takes one quoted part off the start of s and says how long it was. It gives up where
// the part holds an expansion or does not end.
func unquote(s string) (n int, text string, ok bool) {
	switch s[0] {
	case '\\':
		if len(s) < 2 {
			return 0, "", false
		}
		if s[1] == '\n' { // a continued line
			return 2, "", true
		}
		return 2, s[1:2], true
	case '\'':
		end := strings.IndexByte(s[1:], '\'')
		if end < 0 {
			return 0, "", false
		}
		return end + 2, s[1 : 1+end], true
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return i + 1, b.String(), true
		case c == '$' || c == '`':
			return 0, "", false
		case c == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0:
			if i++; s[i] != '\n' {
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return 0, "", false
}

// assignment reports whether an unquoted word is NAME=value.
func assignment(raw string) bool {
	name, _, found := strings.Cut(raw, "=")
	if !found || name == "" || '0' <= name[0] && name[0] <= '9' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }

func keyword(s string) bool {
	return slices.Contains([]string{"!", "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
		"select", "then", "until", "while", "time", "[["}, s)
}

// Builtin reports whether /bin/sh runs this word itself (POSIX special and regular built-ins, and
// those of dash and bash).
func Builtin(s string) bool {
	return slices.Contains([]string{".", ":", "[", "alias", "bg", "break", "builtin", "cd", "chdir", "command", "continue",
		"declare", "dirs", "echo", "enable", "eval", "exec", "exit", "export", "false", "fc", "fg", "getopts", "hash", "help",
		"history", "jobs", "kill", "let", "local", "logout", "popd", "printf", "pushd", "pwd", "read", "readonly", "return",
		"set", "shift", "shopt", "source", "test", "times", "trap", "true", "type", "typeset", "ulimit", "umask", "unalias",
		"unset", "wait"}, s)
}
