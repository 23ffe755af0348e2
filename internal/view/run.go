package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/text"
)

// Listed is a run as a list shows it.
type Listed struct {
	run.Run
	Stopped string `json:"stopped,omitempty"` // why nobody drives it although it does not rest: its process is gone
}

// Runs prints runs as a table.
func Runs(w io.Writer, found []Listed, now time.Time) error {
	t := text.NewTable(w, "RUN", "ISSUE", "STATE", "CHANGE", "UPDATED", "TITLE", "WHY")
	for _, r := range found {
		state := string(r.State)
		if r.Stopped != "" {
			state += " (dead)"
		}
		t.Row(r.ID, number(r.Issue), state, number(r.Change), age(now.Sub(r.Updated)),
			text.Short(r.Task.Title, 40), text.Short(whyStopped(r.Stopped, r.Reason), 60))
	}
	return t.Flush()
}

// whyStopped is the reason of a run, after what has stopped it.
func whyStopped(stopped, reason string) string {
	switch {
	case stopped == "":
		return reason
	case reason == "":
		return "stopped: " + stopped
	}
	return "stopped: " + stopped + " (" + reason + ")"
}

// Verdict says what the checks said, and of which commit.
func Verdict(v run.Verdict) string {
	var b strings.Builder
	word := "passed"
	if !v.Passed {
		word = "FAILED"
	}
	fmt.Fprintf(&b, "checks: %s at %s", word, text.Line(v.Head.Hash))
	if v.Tests != nil {
		fmt.Fprintf(&b, ", %d tests ran", *v.Tests)
	}
	fmt.Fprintf(&b, " (sandbox %s)\n", text.Line(v.Sandbox))
	if v.Why != "" {
		fmt.Fprintf(&b, "  %s\n", text.Line(v.Why))
	}
	for _, c := range v.Commands {
		fmt.Fprintf(&b, "  %s  exit %d", text.Line(c.Line), c.Exit)
		if c.Tests != nil {
			fmt.Fprintf(&b, ", %d tests", *c.Tests)
		}
		if c.BaseTests != nil {
			fmt.Fprintf(&b, " (%d at the base)", *c.BaseTests)
		}
		fmt.Fprintf(&b, ", %.1fs\n", c.Duration.Seconds())
		if c.Why != "" {
			fmt.Fprintf(&b, "    %s\n", text.Line(c.Why))
		}
		for _, n := range c.Counts {
			fmt.Fprintf(&b, "    %s: %d passed, %d failed, %d skipped\n", text.Line(n.Source), n.Passed, n.Failed, n.Skipped)
		}
	}
	for _, w := range v.Warnings {
		fmt.Fprintf(&b, "  look at: %s\n", text.Line(w))
	}
	return b.String()
}

// Recorded is a run with all that was recorded of it.
type Recorded struct {
	run.Run
	Stopped string        `json:"stopped,omitempty"` // as in Listed
	History store.History `json:"history"`
}

// Text is a run for people: where it stands, why, and what happened.
func (r Recorded) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s: issue %d, %s\n", text.Line(r.ID), r.Issue, text.Line(r.Task.Title))
	field(&b, "state", string(r.State))
	field(&b, "why", whyStopped(r.Stopped, r.Reason))
	field(&b, "next", r.Next)
	field(&b, "then", r.Then)
	field(&b, "repo", r.RepoPath)
	r.work(&b)
	field(&b, "attempts", fmt.Sprintf("%d of %d spent", r.Spent, r.Plan.Attempts))
	if r.Verdict != nil {
		b.WriteString("\n" + Verdict(*r.Verdict))
	}
	b.WriteString("\nevents:\n")
	for _, e := range r.History.Events {
		fmt.Fprintf(&b, "  %s  %s\n", day(e.At), text.Line(strings.TrimSpace(e.Kind+"  "+e.Detail())))
	}
	b.WriteString("effects:\n")
	for _, e := range r.History.Effects {
		fmt.Fprintf(&b, "  %-9s  %s\n", text.Line(e.Status), text.Line(e.Effect.Key))
	}
	b.WriteString("sessions:\n")
	for _, s := range r.History.Sessions {
		state := "running"
		if s.Ended {
			state = "ended"
		}
		fmt.Fprintf(&b, "  attempt %d  %s  %s  %s\n", s.Attempt, text.Line(s.Kind), state, text.Line(s.Log))
	}
	return b.String()
}

// work prints what a run has made so far.
func (r Recorded) work(b *strings.Builder) {
	field(b, "base", strings.TrimSpace(r.Base.Branch+" "+r.Base.Commit.Hash))
	field(b, "branch", r.Branch)
	field(b, "head", r.Head.Hash)
	field(b, "change", number(r.Change))
	field(b, "sandbox", r.Sandbox)
	for _, w := range r.Warnings {
		field(b, "warning", w)
	}
}

// Result is how a run rests, for scripts.
type Result struct {
	Issue      int64     `json:"issue"`
	Run        string    `json:"run"`
	State      run.State `json:"state"`
	Change     int64     `json:"change"` // 0 when there is none
	Head       string    `json:"head"`
	Branch     string    `json:"branch"`
	Base       string    `json:"base"`
	BaseCommit string    `json:"base_commit"` // the commit that the head was verified on
	Checks     *Checks   `json:"checks"`      // null before they have spoken
	Repo       string    `json:"repo"`
	Sandbox    string    `json:"sandbox"`
	Attempts   int       `json:"attempts"` // sessions of the agent that were started
	Exit       int       `json:"exit"`
	Reason     string    `json:"reason,omitempty"`
	Next       string    `json:"next,omitempty"` // a command that goes on from here
	Then       string    `json:"then,omitempty"` // what to do after it, or instead; for people
	Warnings   []string  `json:"warnings,omitempty"`
}

// Checks is what the checks said, in short.
type Checks struct {
	Passed bool `json:"passed"`
	Tests  *int `json:"tests"` // null when no check counts its tests
	// Warnings name what the change does to tests, and what the counts do not say.
	Warnings []string `json:"warnings,omitempty"`
}

// ResultOf returns how a run rests.
func ResultOf(r run.Run) Result {
	res := Result{
		Issue: r.Issue, Run: r.ID, State: r.State, Change: r.Change, Head: r.Head.Hash, Branch: r.Branch,
		Base: r.Base.Branch, BaseCommit: r.Base.Commit.Hash, Repo: r.RepoPath, Sandbox: r.Sandbox,
		Attempts: r.Attempt, Reason: r.Reason, Next: Next(r)[0], Then: r.Then, Exit: restCode(r), Warnings: r.Warnings,
	}
	if r.Verdict != nil {
		res.Checks = &Checks{r.Verdict.Passed, r.Verdict.Tests, r.Verdict.Warnings}
	}
	return res
}

// restCode is the exit code of a command that drove a run to where it rests.
func restCode(r run.Run) int {
	switch {
	case r.State == run.InReview || r.State == run.Done:
		return run.ExitDone
	case r.Exit != 0:
		return r.Exit
	}
	return run.ExitRefused
}

// Next returns the commands to type when a run rests; the first is the one to begin with.
func Next(r run.Run) []string {
	switch {
	case r.Next != "":
		return []string{r.Next}
	case r.State == run.InReview:
		repo := text.Quote(r.RepoPath)
		return []string{
			fmt.Sprintf("interlock change show --repo %s %d", repo, r.Change),
			fmt.Sprintf("interlock change accept --repo %s %d", repo, r.Change),
		}
	}
	return []string{"interlock show " + text.Quote(r.ID)}
}

// Rest says for people how a run rests. next are the commands to type.
func Rest(r run.Run, next ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "issue %d: %s", r.Issue, r.State)
	if r.Reason != "" {
		b.WriteString(", " + text.Line(r.Reason))
	}
	b.WriteString("\n")
	field(&b, "run", r.ID)
	Recorded{Run: r}.work(&b)
	if r.Verdict != nil {
		b.WriteString(Verdict(*r.Verdict))
	}
	b.WriteString("next:\n")
	for _, n := range next {
		b.WriteString("  " + text.Line(n) + "\n")
	}
	if r.Then != "" {
		fmt.Fprintf(&b, "then: %s\n", text.Line(r.Then))
	}
	return b.String()
}
