package view

import (
	"encoding/json"
	"time"

	"interlock/internal/run"
	"interlock/internal/store"
)

// hidden keeps a field of an embedded type out of the JSON: it has its place under another name.
type hidden *struct{}

// Run is a run as --json prints it: what run.Run has, but with each duration in seconds, and so named.
type Run struct {
	run.Run
	Plan    Plan     `json:"plan"`
	Verdict *Checked `json:"verdict,omitempty"`
}

// Plan is a plan as --json prints it.
type Plan struct {
	run.Plan
	AgentTotal hidden  `json:"agent_total,omitempty"`
	AgentIdle  hidden  `json:"agent_idle,omitempty"`
	CheckTotal hidden  `json:"check_total,omitempty"`
	MaxMemory  hidden  `json:"max_memory,omitempty"`
	Total      float64 `json:"agent_total_seconds"`
	Idle       float64 `json:"agent_idle_seconds"`
	Check      float64 `json:"check_total_seconds"`
	Memory     int64   `json:"max_memory_bytes,omitempty"`
}

// Checked is a verdict as --json prints it.
type Checked struct {
	run.Verdict
	Commands []Command `json:"commands"`
}

// Command is a check as --json prints it.
type Command struct {
	run.Command
	Duration hidden  `json:"duration,omitempty"`
	Seconds  float64 `json:"duration_seconds"`
}

// RunOf is a run as --json prints it.
func RunOf(r run.Run) Run { return Run{Run: r, Plan: planOf(r.Plan), Verdict: CheckedOf(r.Verdict)} }

func planOf(p run.Plan) Plan {
	return Plan{Plan: p, Total: p.AgentTotal.Seconds(), Idle: p.AgentIdle.Seconds(), Check: p.CheckTotal.Seconds(), Memory: p.MaxMemory}
}

// CheckedOf is a verdict as --json prints it, nil for none.
func CheckedOf(v *run.Verdict) *Checked {
	if v == nil {
		return nil
	}
	c := &Checked{Verdict: *v, Commands: []Command{}}
	for _, is := range v.Commands {
		c.Commands = append(c.Commands, Command{Command: is, Seconds: float64(is.Duration.Milliseconds()) / 1000})
	}
	return c
}

// History is what was recorded of a run, as --json prints it.
type History struct {
	Events   []Happened      `json:"events"`
	Effects  []Effect        `json:"effects"`
	Sessions []store.Session `json:"sessions"`
}

// Happened is an event as --json prints it. Data is what its kind has, as the record of the run has it.
type Happened struct {
	Seq  int64     `json:"seq"`
	At   time.Time `json:"at"`
	Kind string    `json:"kind"`
	Data any       `json:"data"`
}

// Effect is an effect as --json prints it.
type Effect struct {
	Seq    int64          `json:"seq"`
	Kind   run.EffectKind `json:"kind"`
	Key    string         `json:"key"`
	Text   string         `json:"text,omitempty"`
	Status string         `json:"status"` // pending, settled or withdrawn
	At     time.Time      `json:"at"`
}

// historyOf is a history as --json prints it.
func historyOf(h store.History) History {
	out := History{Events: []Happened{}, Effects: []Effect{}, Sessions: h.Sessions}
	for _, e := range h.Events {
		out.Events = append(out.Events, Happened{e.Seq, e.At.UTC(), e.Kind, dataOf(e)})
	}
	for _, e := range h.Effects {
		out.Effects = append(out.Effects, Effect{e.Seq, e.Effect.Kind, e.Effect.Key, e.Effect.Text, e.Status, e.At.UTC()})
	}
	if out.Sessions == nil {
		out.Sessions = []store.Session{}
	}
	return out
}

// dataOf is what an event holds: the record's own JSON, but for what has durations. What is no JSON
// is shown as text.
func dataOf(e store.Record) any {
	known, err := run.DecodeEvent(e.Kind, e.Data)
	switch is := known.(type) {
	case run.Reconfigured:
		return map[string]Plan{"plan": planOf(is.Plan)}
	case run.Verified:
		return map[string]any{"verdict": CheckedOf(&is.Verdict), "precond": is.Precond, "next": is.Next}
	}
	if err != nil && !json.Valid(e.Data) {
		return string(e.Data)
	}
	return json.RawMessage(e.Data)
}

// MarshalJSON prints a run with all that was recorded of it.
func (r Recorded) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Run
		Stopped string  `json:"stopped,omitempty"`
		History History `json:"history"`
	}{RunOf(r.Run), r.Stopped, historyOf(r.History)})
}

// MarshalJSON prints a run of a list.
func (r Listed) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Run
		Stopped string `json:"stopped,omitempty"`
	}{RunOf(r.Run), r.Stopped})
}

// MarshalJSON prints a change with what is needed to judge it.
func (c Proposal) MarshalJSON() ([]byte, error) {
	type plain Proposal
	return json.Marshal(struct {
		plain
		Verdict *Checked `json:"verdict"`
	}{plain(c), CheckedOf(c.Verdict)})
}
