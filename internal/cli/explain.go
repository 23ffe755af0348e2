package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"interlock/internal/git"
	"interlock/internal/lease"
	"interlock/internal/reason"
	"interlock/internal/run"
	"interlock/internal/text"
)

func (a *app) explainCommand() *cobra.Command {
	var repo string
	c := a.command(cobra.Command{
		Use:   "explain RUN|ISSUE",
		Short: "say why an issue or a run is where it is, and what to type next",
		Long: `explain says who holds an issue and whether that process lives, what a run waits for, why one was
parked and what has changed since; and of an issue that was never picked, what keeps it from being
picked, or that nothing does. It looks at the repository as it is now, and changes nothing.`,
		Example: "  interlock explain 1\n  interlock explain 7 --repo ../other --json",
		Args:    one("run or issue", "interlock explain 1"),
	}, func(ctx context.Context, args []string) error {
		answer, err := a.why(ctx, repo, args[0])
		if err != nil {
			return err
		}
		answer.Next = carry(answer.Next, a.args)
		return a.print(answer, answer.Text())
	})
	repoFlag(c, &repo)
	a.jsonFlag(c, "print one JSON object")
	return c
}

// why explains an issue of the repository, or a run wherever its repository is.
func (a *app) why(ctx context.Context, repo, word string) (reason.Answer, error) {
	if n, err := strconv.ParseInt(strings.TrimPrefix(word, "#"), 10, 64); err == nil {
		x, done, err := a.explainer(ctx, repo)
		if err != nil {
			return reason.Answer{}, err
		}
		defer done()
		return x.Issue(ctx, n)
	}
	s, err := a.openStore(ctx)
	if err != nil {
		return reason.Answer{}, err
	}
	defer s.Close()
	r, err := a.findRun(ctx, s, repo, word)
	if err != nil {
		return reason.Answer{}, err
	}
	x, done, err := a.explainer(ctx, a.whereIs(r, repo))
	switch {
	case errors.Is(err, git.ErrNotRepository): // the record is there all the same
		self, err := lease.Self(ctx, s)
		if err != nil {
			return reason.Answer{}, err
		}
		x, done = &reason.Explainer{Store: s, Self: self, Clock: s.Clock()}, func() {}
	case err != nil:
		return reason.Answer{}, err
	case x.Look.RepoKey != r.Repo:
		x.Look = nil // another repository is there now
	}
	defer done()
	return x.Run(ctx, r)
}

// reviewed is a run as it is shown when it rests: of one in review with what became of its change,
// where its repository is there.
func (a *app) reviewed(ctx context.Context, repo string, r run.Run) (run.Run, error) {
	if r.State != run.InReview {
		return r, nil
	}
	x, done, err := a.explainer(ctx, a.whereIs(r, repo))
	switch {
	case errors.Is(err, git.ErrNotRepository):
		return r, nil
	case err != nil:
		return r, err
	}
	defer done()
	if x.Look.RepoKey != r.Repo {
		return r, nil // another repository is there now
	}
	return x.Review(ctx, r)
}

// whereIs is the path of a run's repository: as it was, or where it is said to be now.
func (a *app) whereIs(r run.Run, repo string) string {
	if _, typed := flagValue(a.args, "--repo"); typed {
		return repo
	}
	return r.RepoPath
}

// explainer opens what explains the issues of a repository.
func (a *app) explainer(ctx context.Context, repo string) (x *reason.Explainer, done func(), err error) {
	e, done, err := a.engine(ctx, repo)
	if err != nil {
		return nil, nil, err
	}
	start := "interlock run --repo " + text.Quote(e.RepoPath) + " --issue %d"
	if s, err := a.settle(ctx, repo, nil); err != nil || s.Missing() != nil {
		start += " " + runFlags // what is not configured has to be typed
	}
	return &reason.Explainer{
		Store: e.Store, Look: e.Look(), Self: e.Holder, Clock: e.Clock,
		Start: func(n int64) string { return fmt.Sprintf(start, n) },
	}, done, nil
}
