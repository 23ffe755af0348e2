package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"interlock/internal/engine"
	"interlock/internal/git"
	"interlock/internal/input"
	"interlock/internal/policy"
	"interlock/internal/text"
)

// which says which issue is to be worked.
type which struct {
	issue int64
	next  bool
}

const runExample = "interlock run --repo . --issue 1 " + runFlags

// runFlags are an agent and a check, as an example.
const runFlags = "--command ./agent.sh --checks 'go test ./...'"

// lacks is a usage error of a run for which something was not said: what was typed is kept, and
// only what is missing is added.
func (a *app) lacks(err error, s *policy.Settings) error {
	next := "interlock " + text.QuoteAll(a.args)
	if s.Of("agent.command").Value == nil {
		next += " --command ./agent.sh"
	}
	if s.Of("checks").Value == nil {
		next += " --checks 'go test ./...'"
	}
	return &usageError{err.Error(), next}
}

func (a *app) runCommand() *cobra.Command {
	var repo, task, taskFile string
	var issue int64
	var next bool
	c := a.command(cobra.Command{
		Use:   "run [ISSUE | --next | --text TEXT]",
		Short: "work one issue from claim to change",
		Long: `run claims an issue, lets an agent work it in a private workspace, checks the exact commit that
the agent delivers, pushes it to a branch of its own and opens one change for review.

The agent is a shell line. It is started in the workspace with the task on stdin; when its first
word is a file of yours, that file is shown to it read-only. It commits, or just leaves its work.
When the checks fail it is started again with the findings, up to --attempts times.

What is not given by a flag comes from the configuration: your own, then the repository's on its
base branch ("interlock init" writes one, "interlock config show" says what holds and why). Where
it names agent and checks, "interlock run" alone works the next issue.

With --text, or --text-file with - for stdin, the issue is filed first: the first line is its title.
An open issue with the very same text is taken instead, so the same command can be typed again.

A run that was killed or stopped goes on where it was when the same command is typed again, with
the settings that it was started with: only flags change them.`,
		Example: "  interlock run 1\n  interlock run --next\n  " + runExample + "\n" +
			"  interlock run --next --command 'my-agent --task -' --checks 'go vet ./...' --checks 'go test ./...' --wait 60s\n" +
			"  interlock run --issue 7 --lane build --command ./agent.sh --checks 'make test' --allow-no-tests --json",
		Args: atMost(1),
	}, nil)
	repoFlag(c, &repo)
	c.Flags().Int64Var(&issue, "issue", 0, "the issue to work")
	c.Flags().BoolVar(&next, "next", false, "work the open issue with the lowest number that may be worked")
	c.Flags().StringVar(&task, "text", "", "file an issue with this text, and work it")
	c.Flags().StringVar(&taskFile, "text-file", "", "read that text from a file, - for stdin")
	typed := settingFlags(c)
	a.jsonFlag(c, "print one JSON object per event, and the result last")
	c.RunE = func(c *cobra.Command, args []string) error {
		w, err := whichIssue(args, issue, c.Flags().Changed("issue"), next)
		if err != nil {
			return err
		}
		given, err := values(typed)
		if err != nil {
			return err
		}
		if a.dry {
			return nil
		}
		a.started = true
		if task+taskFile != "" {
			if w != (which{}) {
				return bad("--text takes the place of an issue's number, and of --next")
			}
			if w, err = a.fileTask(c.Context(), repo, task, taskFile, given); err != nil {
				return err
			}
		}
		return a.run(c.Context(), repo, w, given)
	}
	return c
}

// fileTask files an issue with a text, unless it is there already. What could not be worked then is
// not filed.
func (a *app) fileTask(ctx context.Context, repo, task, file string, typed policy.Values) (which, error) {
	title, body, err := input.Issue("", input.Source{}, a.text("text", task, file))
	if err != nil {
		return which{}, bad("%w", err)
	}
	s, err := a.settle(ctx, repo, typed)
	if err != nil {
		return which{}, err
	}
	if err := s.Missing(); err != nil {
		return which{}, a.lacks(err, s)
	}
	f, err := a.restored(ctx, repo)
	if err != nil {
		return which{}, err
	}
	is, made, err := f.IssueOnce(ctx, title, body, nil, a.author())
	if err == nil {
		err = a.restore(ctx, f)
	}
	if err == nil {
		kind := "found"
		if made {
			kind, a.filed = "filed", is.Number
		}
		a.progress()(engine.Notice{At: a.env.Now(), Issue: is.Number, Kind: kind, Text: text.Quote(is.Title)})
	}
	return which{issue: is.Number}, err
}

// run settles what holds and works.
func (a *app) run(ctx context.Context, repo string, w which, typed policy.Values) error {
	s, err := a.settle(ctx, repo, typed)
	if w == (which{}) {
		_, command := typed["agent.command"]
		_, checks := typed["checks"]
		switch {
		case errors.Is(err, git.ErrNotRepository), err == nil && (command || checks || s.Missing() != nil):
			return bad("which issue? give its number, or --next for the next one that may be worked")
		}
		w.next = true // all comes from the configuration
	}
	if err != nil {
		return err
	}
	req, err := a.request(w, s)
	if err != nil {
		return err
	}
	if req.Missing != nil { // a run that is there could go on; where no state is, there is none
		dir, err := a.stateDir()
		if err != nil {
			return err
		}
		if _, err := os.Lstat(dir); err != nil {
			return req.Missing
		}
	}
	return a.work(ctx, repo, req)
}

// request says the settings in the engine's words.
func (a *app) request(w which, s *policy.Settings) (engine.Request, error) {
	plan, err := s.Plan()
	if err != nil {
		return engine.Request{}, err
	}
	req := engine.Request{
		Issue: w.issue, Next: w.next, Base: s.Text("base"), Wait: s.Span("wait"), Plan: plan, Onto: s.Onto,
	}
	if err := s.Missing(); err != nil {
		req.Missing = a.lacks(err, s)
	}
	return req, nil
}

// whichIssue reads which issue is meant; neither is left to be decided.
func whichIssue(args []string, issue int64, typed, next bool) (which, error) {
	switch {
	case len(args) == 1 && (typed || next):
		return which{}, bad("an issue as an argument, --issue and --next exclude each other")
	case len(args) == 1:
		n, err := number("issue", args[0])
		return which{issue: n}, err
	case next && typed:
		return which{}, bad("--issue and --next exclude each other")
	case typed && issue < 1:
		return which{}, bad("--issue %d: issues are numbered from 1", issue)
	}
	return which{issue, next}, nil
}

// bad is a usage error of `interlock run`.
func bad(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...).Error(), "interlock run --help"}
}
