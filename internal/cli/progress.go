package cli

import (
	"fmt"
	"time"

	"interlock/internal/engine"
	"interlock/internal/text"
)

// progress returns what prints the engine's notices: one plain line each on stderr with the time
// since the command began, or one JSON object each on stdout.
func (a *app) progress() func(engine.Notice) {
	began := a.env.Now()
	return func(n engine.Notice) {
		a.mu.Lock()
		defer a.mu.Unlock()
		since := max(0, n.At.Sub(began))
		if a.json {
			_ = text.JSON(a.env.Stdout, map[string]event{"event": {
				At: n.At.UTC(), Elapsed: since.Round(time.Millisecond).Seconds(),
				Run: n.Run, Issue: n.Issue, Attempt: n.Attempt, Kind: n.Kind, Text: n.Text,
			}})
			return
		}
		fmt.Fprintln(a.env.Stderr, progressLine(since, n))
	}
}

// event is a notice as --json prints it.
type event struct {
	At      time.Time `json:"at"`
	Elapsed float64   `json:"elapsed"` // seconds since the command began
	Run     string    `json:"run"`
	Issue   int64     `json:"issue"`
	Attempt int       `json:"attempt,omitempty"`
	Kind    string    `json:"kind"`
	Text    string    `json:"text"`
}

// progressLine is one notice for people.
func progressLine(since time.Duration, n engine.Notice) string {
	line := n.Kind
	if n.Text != "" {
		line += ": " + n.Text
	}
	if n.Issue != 0 {
		line = fmt.Sprintf("issue %d  %s", n.Issue, line)
	}
	return fmt.Sprintf("[%6.1fs] %s", since.Seconds(), text.Line(line))
}
