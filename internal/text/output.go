package text

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// JSON writes v as one line of JSON. Characters that could harm a terminal are written as
// escapes, which JSON reads back as what they were.
func JSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	var out strings.Builder
	for _, r := range b.String() {
		switch {
		case r == '\n' || !harmful(r):
			out.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&out, `\u%04x`, r)
		default: // JSON knows these only as a pair
			for _, u := range utf16Pair(r) {
				fmt.Fprintf(&out, `\u%04x`, u)
			}
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func utf16Pair(r rune) [2]rune {
	r -= 0x10000
	return [2]rune{0xd800 + (r>>10)&0x3ff, 0xdc00 + r&0x3ff}
}

// List writes items as one JSON array, [] when there are none.
func List[T any](w io.Writer, items []T) error {
	if items == nil {
		items = []T{}
	}
	return JSON(w, items)
}

// Table prints rows in columns. Cells are escaped here.
type Table struct {
	w *tabwriter.Writer
}

// NewTable begins a table with its head.
func NewTable(w io.Writer, head ...string) Table {
	t := Table{tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
	t.Row(head...)
	return t
}

// Row adds a row; it is one line, whatever is in it.
func (t Table) Row(cells ...string) {
	for i, c := range cells {
		cells[i] = Line(c)
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

// Flush prints the table.
func (t Table) Flush() error { return t.w.Flush() }

// Short cuts text for a column, never inside a character.
func Short(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-3]) + "..."
}

// Indent puts two spaces before each line of text that others wrote.
func Indent(s string) string {
	lines := strings.Split(strings.TrimRight(Clean(s), "\n"), "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = "  " + l
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// plain are the characters that a shell takes as they are.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,@%+"

// Quote quotes one word for a shell, so that a command that is shown can be typed.
func Quote(s string) string {
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// QuoteAll quotes words for a shell.
func QuoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}
