package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"interlock/internal/engine"
	"interlock/internal/run"
)

// work drives one run and prints how it rests.
func (a *app) work(ctx context.Context, repo string, req engine.Request) error {
	e, done, err := a.engine(ctx, repo)
	if err != nil {
		return err
	}
	defer done()
	req.Cwd = a.env.Dir
	r, err := e.Work(ctx, req)
	if err != nil && (r.ID == "" || !a.json) {
		return err
	}
	res := resultOf(r)
	if err != nil { // scripts get the run as it stands, with what stopped it
		p := explain(ctx, err, a.args)
		res.Reason, res.Next, res.Exit = p.What, p.Next, p.Exit
	}
	return a.rest(r, res)
}

// rest prints a run that rests and sets the exit code that belongs to it.
func (a *app) rest(r run.Run, res result) error {
	a.exit = res.Exit
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.json {
		return writeJSON(a.env.Stdout, map[string]result{"result": res})
	}
	_, err := io.WriteString(a.env.Stdout, restText(r))
	return err
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

// result is how a run rests, for scripts.
type result struct {
	Issue      int64      `json:"issue"`
	Run        string     `json:"run"`
	State      run.State  `json:"state"`
	Change     int64      `json:"change"` // 0 when there is none
	Head       string     `json:"head"`
	Branch     string     `json:"branch"`
	Base       string     `json:"base"`
	BaseCommit string     `json:"base_commit"` // the commit that the head was verified on
	Checks     *checkWord `json:"checks"`      // null before they have spoken
	Repo       string     `json:"repo"`
	Sandbox    string     `json:"sandbox"`
	Attempts   int        `json:"attempts"`
	Reason     string     `json:"reason,omitempty"`
	Next       string     `json:"next,omitempty"`
	Exit       int        `json:"exit"`
	Warnings   []string   `json:"warnings,omitempty"`
}

type checkWord struct {
	Passed bool `json:"passed"`
	Tests  *int `json:"tests"` // null when no check counts its tests
}

func resultOf(r run.Run) result {
	res := result{
		Issue: r.Issue, Run: r.ID, State: r.State, Change: r.Change, Head: r.Head.Hash, Branch: r.Branch,
		Base: r.Base.Branch, BaseCommit: r.Base.Commit.Hash, Repo: r.RepoPath, Sandbox: r.Sandbox,
		Attempts: r.Attempt, Reason: r.Reason, Next: nextCommand(r), Exit: restCode(r), Warnings: r.Warnings,
	}
	if r.Verdict != nil {
		res.Checks = &checkWord{r.Verdict.Passed, r.Verdict.Tests}
	}
	return res
}

// nextCommand is what to type when a run rests.
func nextCommand(r run.Run) string {
	repo := ""
	if r.RepoPath != "" {
		repo = " --repo " + quoteWord(r.RepoPath)
	}
	switch {
	case r.Next != "":
		return r.Next
	case r.State == run.InReview:
		return fmt.Sprintf("interlock change show%s %d", repo, r.Change)
	}
	return "interlock show " + quoteWord(r.ID)
}

// restText says for people how a run rests.
func restText(r run.Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "issue %d: %s", r.Issue, r.State)
	if r.Reason != "" {
		b.WriteString(", " + cleanLine(r.Reason))
	}
	b.WriteString("\n")
	field(&b, "run", r.ID)
	if r.Change != 0 {
		field(&b, "change", fmt.Sprint(r.Change))
	}
	field(&b, "branch", r.Branch)
	field(&b, "head", r.Head.Hash)
	field(&b, "base", strings.TrimSpace(r.Base.Branch+" "+r.Base.Commit.Hash))
	field(&b, "sandbox", r.Sandbox)
	for _, w := range r.Warnings {
		field(&b, "warning", w)
	}
	if r.Verdict != nil {
		b.WriteString(verdictText(*r.Verdict))
	}
	b.WriteString("next:\n  " + cleanLine(nextCommand(r)) + "\n")
	if r.State == run.InReview {
		fmt.Fprintf(&b, "  interlock change accept --repo %s %d\n", cleanLine(quoteWord(r.RepoPath)), r.Change)
	}
	return b.String()
}
