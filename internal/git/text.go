package git

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes text from outside safe to show: everything but printable characters, newline and
// tab becomes a backslash form, so that it can neither drive a terminal nor reorder what is read.
// Carriage returns before a newline and spaces at the end of a line are taken off.
func Escape(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == '\n' || r == '\t' || unicode.IsPrint(r):
			b.WriteString(text[i : i+size])
		case r == '\r' && strings.HasPrefix(text[i+1:], "\n"):
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
		i += size
	}
	return b.String()
}

// tidy escapes what a program printed, cuts it to max bytes and takes off blank ends of lines.
func tidy(text string, max int) string {
	lines := strings.Split(Escape(text), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t")
	}
	out := strings.Trim(strings.Join(lines, "\n"), "\n")
	if len(out) > max {
		cut := max
		for cut > 0 && !utf8.RuneStart(out[cut]) {
			cut--
		}
		out = out[:cut] + " [cut]"
	}
	return out
}
