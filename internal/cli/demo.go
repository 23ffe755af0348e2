package cli

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"interlock/internal/engine"
	"interlock/internal/forge/local"
	"interlock/internal/git"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/store"
	"interlock/internal/text"
	"interlock/internal/view"
)

// The demo's repository and its agent. Go files end in .txt so that they are no part of this module.
//
//go:embed demo
var demoFiles embed.FS

// The issue that the demo's agent works.
const (
	demoTitle = "Median changes its argument, and is wrong for an even number of values"
	demoBody  = `Median sorts the slice that it is given, so the caller's values are in another order afterwards.
For an even number of values it returns the upper of the two in the middle; it should be their mean.

The tests TestMedianEven and TestMedianLeavesItsArgument show both.`
)

// demo is one throwaway repository with its agent.
type demo struct{ dir string }

func (d demo) repo() string  { return filepath.Join(d.dir, "stats") }
func (d demo) agent() string { return filepath.Join(d.dir, "agent.sh") }

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
	r, err := a.drive(ctx, d.repo(), engine.Request{Issue: 1, Plan: run.Plan{
		Lane: run.LanePropose, Command: text.Quote(d.agent()), Checks: []string{"go test ./..."},
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
func (a *app) findDemo(ctx context.Context, dir string) (demo, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return demo{}, err
	}
	last := 0
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			last = max(last, n)
		}
	}
	if last > 0 {
		d := demo{filepath.Join(dir, strconv.Itoa(last))}
		if done, err := a.demoDone(ctx, d); err == nil && !done {
			return d, nil
		}
	}
	return a.makeDemo(ctx, dir, last+1)
}

// demoDone reports whether the run of a demo rests.
func (a *app) demoDone(ctx context.Context, d demo) (bool, error) {
	at, err := a.locate(ctx, d.repo())
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

// makeDemo builds the repository under a passing name and gives it its own when it is whole, so
// that a demo that was killed while it was made is never gone on with.
func (a *app) makeDemo(ctx context.Context, dir string, n int) (demo, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return demo{}, err
	}
	tmp, err := os.MkdirTemp(dir, "new-")
	if err != nil {
		return demo{}, err
	}
	defer os.RemoveAll(tmp)
	if err := a.fillDemo(ctx, demo{tmp}); err != nil {
		return demo{}, fmt.Errorf("make the demo: %w", err)
	}
	d := demo{filepath.Join(dir, strconv.Itoa(n))}
	if err := os.Rename(tmp, d.dir); err != nil {
		return demo{}, fmt.Errorf("make the demo: %w", err)
	}
	return d, nil
}

func (a *app) fillDemo(ctx context.Context, d demo) error {
	if err := writeDemo(d); err != nil {
		return err
	}
	g, err := a.findGit(ctx)
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "--all"},
		{"-c", "user.name=Interlock demo", "-c", "user.email=demo@localhost", "commit", "--quiet", "--message=A median that is wrong"},
	} {
		if _, err := g.Run(ctx, git.Command{Dir: d.repo(), Args: args}); err != nil {
			return err
		}
	}
	f, err := local.Open(ctx, g, d.repo())
	if err != nil {
		return err
	}
	_, err = f.NewIssue(ctx, demoTitle, demoBody, nil, a.author())
	return err
}

// writeDemo writes the demo's files.
func writeDemo(d demo) error {
	return fs.WalkDir(demoFiles, "demo", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(d.dir, strings.TrimSuffix(strings.TrimPrefix(name, "demo"), ".txt"))
		if e.IsDir() {
			return os.MkdirAll(to, 0o700)
		}
		data, err := demoFiles.ReadFile(name)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o600)
		if strings.HasSuffix(to, ".sh") {
			mode = 0o700
		}
		return os.WriteFile(to, data, mode)
	})
}

// showDemo prints what came of it: the change, its diff, what the checks said, and what to type.
func (a *app) showDemo(ctx context.Context, d demo, r run.Run) error {
	f, err := a.forge(ctx, d.repo())
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
		a.own("show", r.ID), a.own("logs", r.ID), a.own("change", "accept", strconv.FormatInt(r.Change, 10), "--repo", d.repo()),
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
