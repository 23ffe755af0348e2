// Package text makes text safe and fit to show: escaped for terminals, quoted for shells, in
// columns, as JSON. It knows nothing of what the text is about and never drops any of it.
package text

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes text that others wrote harmless for a terminal: control characters, characters that
// change the direction of text or cannot be seen, and bytes that are not UTF-8 are shown as
// escapes. Newlines and tabs stay. All text that Interlock did not write itself goes through
// here before it is shown: titles, bodies, logs, what git and agents print, paths.
func Clean(s string) string {
	if !strings.ContainsFunc(s, harmful) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case !harmful(r):
			b.WriteString(s[:n])
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		s = s[n:]
	}
	return b.String()
}

// Line is Clean for what must stay on one line.
func Line(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Clean(s))
}

// harmful reports whether a character can do more than show itself.
func harmful(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case unicode.IsControl(r): // C0, DEL, C1
		return true
	case r == '\u2028', r == '\u2029': // line and paragraph separator
		return true
	}
	// Format characters: bidirectional controls, zero-width ones, tags, the byte order mark.
	// The joiners are part of many scripts and of emoji; they hide nothing.
	return unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d'
}

// Writer escapes what is written to it and passes it on to To, also characters that are cut
// between two writes. Close it to get the last of it.
type Writer struct {
	To   io.Writer
	rest []byte // the beginning of a character
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	all := append(w.rest, p...)
	cut := len(all)
	for i := 1; i < utf8.UTFMax && i <= len(all); i++ {
		if b := all[len(all)-i]; utf8.RuneStart(b) {
			if !utf8.FullRune(all[len(all)-i:]) {
				cut = len(all) - i
			}
			break
		}
	}
	w.rest = append([]byte(nil), all[cut:]...)
	_, err := io.WriteString(w.To, Clean(string(all[:cut])))
	return len(p), err
}

// Close writes what is left.
func (w *Writer) Close() error {
	_, err := io.WriteString(w.To, Clean(string(w.rest)))
	w.rest = nil
	return err
}

// Size is a number of bytes for people, in powers of 1024.
func Size(n int64) string {
	for i, unit := range []string{"B", "KiB", "MiB", "GiB", "TiB"} {
		if whole := float64(n) / float64(int64(1)<<(10*i)); whole < 1024 || unit == "TiB" {
			if i == 0 {
				return fmt.Sprintf("%d B", n)
			}
			return fmt.Sprintf("%.1f %s", whole, unit)
		}
	}
	panic("unreachable: the last unit takes everything")
}

// Known says which words are known where another one was typed, and which of them was probably
// meant.
func Known(typed string, known ...string) string {
	list := strings.Join(known[:len(known)-1], ", ") + " and " + known[len(known)-1]
	if near := Nearest(typed, known...); near != "" {
		return "known are " + list + "; did you mean " + near + "?"
	}
	return "known are " + list
}

// Nearest returns the known word that was probably meant: one that is at most two changes away, and
// not most of the word; "" if there is none.
func Nearest(typed string, known ...string) string {
	best, least := "", 3
	if len(typed) > 64 {
		return ""
	}
	for _, k := range known {
		if d := Distance(strings.ToLower(typed), strings.ToLower(k)); d < least && d*2 < max(len(k), 3) {
			best, least = k, d
		}
	}
	return best
}

// Distance is how many letters have to be put in, taken out, changed or swapped with the next one
// to make b of a.
func Distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := [3][]int{}
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
	}
	before, last, now := rows[0], rows[1], rows[2]
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		now[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(y)]
}
