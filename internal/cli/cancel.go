package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"interlock/internal/run"
	"interlock/internal/store/sqlite"
	"interlock/internal/text"
	"interlock/internal/view"
)

func (a *app) cancelCommand() *cobra.Command {
	var repo, reason string
	c := a.command(cobra.Command{
		Use:   "cancel RUN|ISSUE",
		Short: "end a run, give its issue back, keep its work",
		Long: `cancel ends a run, also one that another process is driving: that process ends the agent and
gives the issue back. Commits of the agent are kept in the state directory.`,
		Example: "  interlock cancel 1 --reason 'done by hand'",
		Args:    one("run or issue", "interlock cancel 1"),
	}, func(ctx context.Context, args []string) error {
		var r run.Run
		if err := a.withRun(ctx, repo, args[0], func(_ *sqlite.Store, found run.Run) error { r = found; return nil }); err != nil {
			return err
		}
		e, done, err := a.engine(ctx, a.whereIs(r, repo))
		if err != nil {
			return err
		}
		defer done()
		if r, err = e.Cancel(ctx, r.ID, reason); err != nil {
			return err
		}
		said := fmt.Sprintf("run %s is asked to end; it is %s\n", text.Line(r.ID), r.State)
		if r.State == run.Canceled {
			said = fmt.Sprintf("run %s is canceled\n", text.Line(r.ID))
		}
		return a.print(view.RunOf(r), said)
	})
	repoFlag(c, &repo)
	c.Flags().StringVar(&reason, "reason", "canceled by the operator", "why, for the issue and the record")
	a.jsonFlag(c, "print the run as one JSON object")
	return c
}
