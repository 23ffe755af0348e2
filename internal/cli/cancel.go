package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"interlock/internal/run"
	"interlock/internal/text"
)

func (a *app) cancelCommand() *cobra.Command {
	var repo, reason string
	var typed bool // --repo was
	c := a.command(cobra.Command{
		Use:   "cancel RUN|ISSUE",
		Short: "end a run, give its issue back, keep its work",
		Long: `cancel ends a run, also one that another process is driving: that process ends the agent and
gives the issue back. Commits of the agent are kept in the state directory.`,
		Example: "  interlock cancel 1 --reason 'done by hand'",
		Args:    one("run or issue", "interlock cancel 1"),
	}, func(ctx context.Context, args []string) error {
		s, err := a.openStore(ctx)
		if err != nil {
			return err
		}
		r, err := a.findRun(ctx, s, repo, args[0])
		if cerr := s.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
		where := r.RepoPath
		if typed {
			where = repo // it may have moved since
		}
		e, done, err := a.engine(ctx, where)
		if err != nil {
			return err
		}
		defer done()
		if r, err = e.Cancel(ctx, r.ID, reason); err != nil {
			return err
		}
		if a.json {
			return text.JSON(a.env.Stdout, r)
		}
		if r.State == run.Canceled {
			_, err = fmt.Fprintf(a.env.Stdout, "run %s is canceled\n", text.Line(r.ID))
		} else {
			_, err = fmt.Fprintf(a.env.Stdout, "run %s is asked to end; it is %s\n", text.Line(r.ID), r.State)
		}
		return err
	})
	repoFlag(c, &repo)
	c.PreRun = func(c *cobra.Command, _ []string) { typed = c.Flags().Changed("repo") }
	c.Flags().StringVar(&reason, "reason", "canceled by the operator", "why, for the issue and the record")
	a.jsonFlag(c, "print the run as one JSON object")
	return c
}
