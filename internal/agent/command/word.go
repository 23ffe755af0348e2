package command

import (
	"slices"
	"strings"
)

// wordKind says what is known of the first word of a line.
type wordKind int

const (
	doubtful wordKind = iota // only the shell can tell; the line stays as it is
	plain                    // a word as it stands
	quoted                   // a word of which a part is quoted: never syntax, never an alias
)

// word is the first word of a shell line, with its quotes taken off.
type word struct {
	kind       wordKind
	text       string
	start, end int  // in the line
	tilde      bool // begins with an unquoted "~/"
}

// replace returns the line with this word replaced by a quoted path.
func (w word) replace(line, path string) string {
	return line[:w.start] + quote(path) + line[w.end:]
}

const blanks = " \t\n"

// firstWord finds the first word of a POSIX shell line (XCU 2.3, token recognition). It is
// doubtful where the word needs the shell: expansions, patterns, assignments, redirections,
// keywords, comments, functions, unbalanced quotes.
func firstWord(line string) word {
	w := word{start: len(line) - len(strings.TrimLeft(line, blanks))}
	end, text, kind := scanWord(line, w.start)
	if kind == doubtful || end == w.start {
		return word{}
	}
	w.end, w.text, w.kind = end, text, kind
	raw := line[w.start:w.end]
	if strings.HasPrefix(raw, "~") {
		if w.tilde = strings.HasPrefix(raw, "~/"); !w.tilde {
			return word{}
		}
	}
	rest := strings.TrimLeft(line[w.end:], " \t")
	switch {
	case strings.HasPrefix(raw, "#"), assignment(raw), kind == plain && keyword(text):
		return word{}
	case strings.HasPrefix(rest, "("): // a function definition
		return word{}
	case digits(raw) && w.end < len(line) && strings.ContainsRune("<>", rune(line[w.end])):
		return word{}
	}
	return w
}

// scanWord reads one word from at and takes its quotes off.
func scanWord(line string, at int) (end int, text string, kind wordKind) {
	var b strings.Builder
	kind = plain
	for i := at; i < len(line); {
		c := line[i]
		switch {
		case strings.IndexByte(blanks+"|&;<>()", c) >= 0:
			return i, b.String(), kind
		case strings.IndexByte("$`*?[{}", c) >= 0:
			return i, "", doubtful
		case c == '\\' || c == '\'' || c == '"':
			n, s, ok := unquote(line[i:])
			if !ok {
				return i, "", doubtful
			}
			b.WriteString(s)
			kind = quoted
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

// builtin reports whether /bin/sh runs this word itself (POSIX special and regular built-ins, and
// those of dash and bash).
func builtin(s string) bool {
	return slices.Contains([]string{".", ":", "[", "alias", "bg", "break", "builtin", "cd", "chdir", "command", "continue",
		"declare", "dirs", "echo", "enable", "eval", "exec", "exit", "export", "false", "fc", "fg", "getopts", "hash", "help",
		"history", "jobs", "kill", "let", "local", "logout", "popd", "printf", "pushd", "pwd", "read", "readonly", "return",
		"set", "shift", "shopt", "source", "test", "times", "trap", "true", "type", "typeset", "ulimit", "umask", "unalias",
		"unset", "wait"}, s)
}
