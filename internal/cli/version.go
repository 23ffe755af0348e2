package cli

import (
	"context"

	"github.com/spf13/cobra"

	"interlock/internal/view"
)

func (a *app) versionCommand() *cobra.Command {
	c := a.command(cobra.Command{
		Use:     "version",
		Short:   "say what this binary was built from",
		Example: "  interlock version\n  interlock version --json",
		Args:    atMost(0),
	}, func(context.Context, []string) error {
		v := view.Built()
		return a.print(v, v.Text())
	})
	a.jsonFlag(c, "print one JSON object")
	return c
}
