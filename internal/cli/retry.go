package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"interlock/internal/engine"
	"interlock/internal/policy"
	"interlock/internal/run"
	"interlock/internal/store/sqlite"
	"interlock/internal/text"
	"interlock/internal/view"
)

func (a *app) retryCommand() *cobra.Command {
	var repo, reason string
	var later bool
	c := a.command(cobra.Command{
		Use:   "retry RUN|ISSUE",
		Short: "work an issue again whose run was parked, failed or ended",
		Long: `retry says what has changed since a run ended, or that nothing has, and works its issue again: with
the settings of that run, which flags change, and from what its last session left. That it is to go
again is saved first and counts once, so --later leaves the work to the next "interlock run". What
was spent stays spent: where all sessions are used, a retry allows one more, and --attempts as many
as it says. An issue whose change waits for a reviewer, or was accepted, is not worked again.`,
		Example: "  interlock retry 1\n  interlock retry 1 --attempts 6 --reason 'the database was down'\n  interlock retry 1 --later --json",
		Args:    one("run or issue", "interlock retry 1"),
	}, nil)
	repoFlag(c, &repo)
	c.Flags().StringVar(&reason, "reason", "a person asked for it", "why, for the record")
	c.Flags().BoolVar(&later, "later", false, "only save that it is to go again; the next run of the issue does it")
	typed := settingFlags(c)
	a.jsonFlag(c, "print one JSON object for the retry, one per event, and the result last")
	c.RunE = func(c *cobra.Command, args []string) error {
		given, err := values(typed)
		if err != nil || a.dry {
			return err
		}
		if later && len(given) > 0 {
			return &usageError{"--later saves that the issue is to go again, and no settings: they are those of whoever runs it", "interlock retry --help"}
		}
		a.started = true
		return a.retry(c.Context(), repo, args[0], reason, later, given)
	}
	return c
}

// retry saves that a run is to go again, says so, and unless it is for later works its issue.
func (a *app) retry(ctx context.Context, repo, word, reason string, later bool, typed policy.Values) error {
	var r run.Run
	if err := a.withRun(ctx, repo, word, func(_ *sqlite.Store, found run.Run) error { r = found; return nil }); err != nil {
		return err
	}
	repo = a.whereIs(r, repo)
	e, done, err := a.engine(ctx, repo)
	if err != nil {
		return err
	}
	again, err := e.Retry(ctx, r.ID, reason)
	done()
	if err != nil {
		return err
	}
	if err := a.sayRetry(again, later); err != nil || later {
		return err
	}
	set, err := a.settle(ctx, repo, typed)
	if err != nil {
		return err
	}
	req, err := a.request(which{issue: r.Issue}, set)
	if err != nil {
		return err
	}
	req.Again = true
	return a.work(ctx, repo, req)
}

// sayRetry prints what a retry did: as the result when that was all, else beside the progress.
func (a *app) sayRetry(again engine.Retried, last bool) error {
	told := view.RetryOf(again)
	told.Next = carry("interlock retry "+again.Run.ID, a.args)
	switch {
	case a.json:
		return text.JSON(a.env.Stdout, map[string]view.Retry{"retry": told})
	case last:
		_, err := io.WriteString(a.env.Stdout, told.Text()+"next: "+text.Line(told.Next)+"\n")
		return err
	}
	_, err := io.WriteString(a.env.Stderr, told.Text())
	return err
}
