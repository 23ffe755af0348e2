package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func (a *app) demoCommand() *cobra.Command {
	c := a.command(cobra.Command{
		Use:   "demo",
		Short: "work one issue of a throwaway repository from claim to change",
		Long: `demo makes a small repository with a failing test and an issue, and works the issue with a
scripted agent through the same engine as everything else. Nothing of yours is touched.`,
		Example: "  interlock demo\n  interlock demo --json",
		Args:    atMost(0),
	}, func(ctx context.Context, _ []string) error {
		return runDemo(ctx, a)
	})
	a.jsonFlag(c, "print one JSON object per event, and the result last")
	return c
}
