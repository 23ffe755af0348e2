package view

import (
	"fmt"
	"time"

	"interlock/internal/engine"
	"interlock/internal/text"
)

// Event is a notice as --json prints it.
type Event struct {
	At      time.Time `json:"at"`
	Elapsed float64   `json:"elapsed_seconds"` // since the command began
	Run     string    `json:"run"`
	Issue   int64     `json:"issue"`
	Attempt int       `json:"attempt,omitempty"`
	Kind    string    `json:"kind"`
	Text    string    `json:"text"`
}

// EventOf is a notice that came so long after the command began.
func EventOf(since time.Duration, n engine.Notice) Event {
	return Event{
		At: n.At.UTC(), Elapsed: float64(since.Milliseconds()) / 1000,
		Run: n.Run, Issue: n.Issue, Attempt: n.Attempt, Kind: n.Kind, Text: n.Text,
	}
}

// Progress is the same for people, in one line.
func Progress(since time.Duration, n engine.Notice) string {
	line := n.Kind
	if n.Text != "" {
		line += ": " + n.Text
	}
	if n.Issue != 0 {
		line = fmt.Sprintf("issue %d  %s", n.Issue, line)
	}
	return fmt.Sprintf("[%6.1fs] %s", since.Seconds(), text.Line(line))
}

// phases are the notices that something has begun which takes its time, with its name for people.
var phases = map[string]string{
	"waiting": "waiting", "claimed": "claiming", "marked": "preparing the workspace", "resumed": "taking up", "agent": "the agent works",
	"session started": "the agent works", "delivered": "checking", "verifying": "checking", "verified": "publishing", "pushed": "publishing",
	"attempt failed": "preparing the next attempt", "base moved": "preparing the next attempt", "proposed": "handing over",
}

// Phase names what a notice has begun, "" when it has begun nothing.
func Phase(n engine.Notice) string {
	phase := phases[n.Kind]
	if phase != "" && n.Issue != 0 {
		phase = fmt.Sprintf("issue %d  %s", n.Issue, phase)
	}
	return phase
}
