// Package view says for people what runs, issues and changes are, and for scripts how a run rests.
// It is given what to show; it never opens, reads or changes anything.
package view

import (
	"fmt"
	"strings"
	"time"

	"interlock/internal/text"
)

// field prints one line of a description; an empty one is left out.
func field(b *strings.Builder, name, value string) {
	if value != "" {
		fmt.Fprintf(b, "  %-9s %s\n", name, text.Line(value))
	}
}

// day prints a time for people.
func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05") + " UTC"
}

// age says for people how long ago something was.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}
	return fmt.Sprintf("%dd ago", int(d.Hours()/24))
}

// number prints the number of an issue or a change, nothing for none.
func number(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
