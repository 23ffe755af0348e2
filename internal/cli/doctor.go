package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"interlock/internal/doctor"
	"interlock/internal/run"
	"interlock/internal/text"
)

func (a *app) doctorCommand() *cobra.Command {
	c := a.command(cobra.Command{
		Use:   "doctor",
		Short: "say whether this machine is fit, and what cannot be promised",
		Long: `doctor tries what Interlock stands on: platform, git, the state directory, bubblewrap, namespaces,
Landlock, seccomp, cgroups and their limits. It exits 0 when unattended work is possible here, else 7 with the remedies.`,
		Example: "  interlock doctor\n  interlock doctor --json",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, _ []string) error {
		r := doctor.Examine(ctx, a.examineState)
		if !r.Fit {
			a.exit = run.ExitUnfit
		}
		if a.json {
			return text.JSON(a.env.Stdout, r)
		}
		_, err := io.WriteString(a.env.Stdout, r.Text())
		return err
	})
	a.jsonFlag(c, "print the report as one JSON object")
	return c
}
