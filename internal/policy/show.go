package policy

import (
	"fmt"
	"io"

	"interlock/internal/text"
)

// Shown is a setting as people and scripts read it.
type Shown struct {
	Key   string   `json:"key"`
	Value any      `json:"value"` // null where it is not set; durations and sizes as they are written
	Whose Whose    `json:"whose"`
	From  string   `json:"from"`            // the flag, FILE:LINE, or "default"
	Notes []string `json:"notes,omitempty"` // what was set elsewhere and does not count, with the reason
}

// Shown is what holds, in the order of the table.
func (s *Settings) Shown() []Shown {
	var all []Shown
	for _, set := range s.List() {
		one := Shown{Key: set.Key.Name, Value: set.Value, Whose: set.Whose, From: set.At, Notes: set.Notes}
		if set.Key.Kind == Span {
			one.Value = Show(set.Value)
		}
		if set.Whose == Builtin {
			one.From = string(Builtin)
		}
		all = append(all, one)
	}
	return all
}

// WriteTable prints settings for people: each with where it comes from, and below it why something
// else does not count.
func WriteTable(w io.Writer, all []Shown) error {
	t := text.NewTable(w, "SETTING", "VALUE", "FROM")
	for _, s := range all {
		value := Show(s.Value)
		if s.Value == nil {
			value = Named(s.Key).Else
			if value == needed {
				value = "not set"
			}
		}
		t.Row(s.Key, text.Short(value, 60), s.From)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, s := range all {
		for _, n := range s.Notes {
			if _, err := fmt.Fprintf(w, "%s: %s\n", s.Key, text.Line(n)); err != nil {
				return err
			}
		}
	}
	return nil
}
