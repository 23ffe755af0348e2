package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"interlock/internal/demo"
	"interlock/internal/engine"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/store"
	"interlock/internal/text"
	"interlock/internal/view"
)

// runDemo works the demo's issue through the same engine as everything else. A demo that was
// interrupted or killed is gone on with; a finished one makes room for a new one.
func runDemo(ctx context.Context, a *app) error {
	state, err := a.stateDir()
	if err != nil {
		return err
	}
	d, err := a.findDemo(ctx, filepath.Join(state, "demo"))
	if err != nil {
		return err
	}
	r, err := a.drive(ctx, d.Repo(), engine.Request{Issue: 1, Plan: run.Plan{
		Lane: run.LanePropose, Command: text.Quote(d.Agent()), Checks: []string{"go test ./..."},
		Attempts: run.Attempts, Sandbox: string(a.demoLevel(ctx)),
		AgentTotal: run.AgentTotal, AgentIdle: run.AgentIdle, CheckTotal: run.CheckTotal,
	}})
	if err != nil || a.json {
		return a.result(ctx, r, err)
	}
	return a.showDemo(ctx, d, r)
}

// demoLevel is full wherever it can be had. Elsewhere the demo runs unconfined, and says so: its
// agent is our own.
func (a *app) demoLevel(ctx context.Context) sandbox.Level {
	err := sandbox.Inspect(ctx).Check(sandbox.Full)
	if err == nil {
		return sandbox.Full
	}
	notice := engine.Notice{At: a.env.Now(), Kind: "sandbox", Text: fmt.Sprintf(
		"none: the demo's agent is our own, so it runs unconfined here; other agents need the sandbox, and %s", text.Line(err.Error()))}
	a.progress()(notice)
	return sandbox.None
}

// findDemo returns the newest demo if it is not finished, else a new one.
func (a *app) findDemo(ctx context.Context, dir string) (demo.Demo, error) {
	d, last, err := demo.Last(dir)
	if err != nil {
		return d, err
	}
	if last > 0 {
		if done, err := a.demoDone(ctx, d); err == nil && !done {
			return d, nil
		}
	}
	g, err := a.findGit(ctx)
	if err != nil {
		return d, err
	}
	return demo.Make(ctx, g, dir, last+1, func(repo string) error {
		f, err := a.forge(ctx, repo)
		if err != nil {
			return err
		}
		_, err = f.NewIssue(ctx, demo.Title, demo.Body, nil, a.author())
		return err
	})
}

// demoDone reports whether the run of a demo rests.
func (a *app) demoDone(ctx context.Context, d demo.Demo) (bool, error) {
	at, err := a.locate(ctx, d.Repo())
	if err != nil {
		return false, err
	}
	s, err := a.openStore(ctx)
	if err != nil {
		return false, err
	}
	defer s.Close()
	runs, err := s.List(ctx, store.Filter{Repo: at.Key, Limit: 1})
	if err != nil {
		return false, err
	}
	return len(runs) > 0 && !runs[0].State.Live() && len(runs[0].Effects) == 0, nil
}

// showDemo prints what came of it: the change, its diff, what the checks said, and what to type.
func (a *app) showDemo(ctx context.Context, d demo.Demo, r run.Run) error {
	f, err := a.forge(ctx, d.Repo())
	if err != nil {
		return err
	}
	change, err := f.Change(ctx, r.Change)
	if err != nil {
		return err
	}
	shown := view.Proposal{Change: change, Verdict: r.Verdict}
	if shown.Patch, shown.Truncated, err = patch(ctx, a.git.At(f.Location().CommonDir), change); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := io.WriteString(a.env.Stdout, shown.Text()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.env.Stdout, `
Issue 1 of a throwaway repository went from claim to change; its base branch was not touched.
What you can type next (until `+"`make build`"+` and a copy in your PATH, "go run ./cmd/interlock" stands for "interlock"):
  %[1]s
  %[2]s
  %[3]s
With your own repository:
  %[4]s
  %[5]s
`,
		a.own("show", r.ID), a.own("logs", r.ID), a.own("change", "accept", strconv.FormatInt(r.Change, 10), "--repo", d.Repo()),
		"interlock issue new --repo . --title 'what is wrong'",
		runExample)
	return err
}

// own is a command line of ours that uses the same state directory.
func (a *app) own(words ...string) string {
	if a.state != "" {
		words = append(words, "--state-dir", a.path(a.state))
	}
	return "interlock " + text.QuoteAll(words)
}
