package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"interlock/internal/doctor"
	"interlock/internal/policy"
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
		Args:    atMost(0),
	}, func(ctx context.Context, _ []string) error {
		state, own := a.examineState, a.examineOwn()
		if len(own) > 0 && a.state == "" {
			state = func(context.Context) (string, string, error) { return "", "", doctor.ErrNotTried }
		}
		r := doctor.Examine(ctx, state, own...)
		if !r.Fit {
			a.exit = run.ExitUnfit
		}
		return a.print(r, r.Text())
	})
	a.jsonFlag(c, "print the report as one JSON object")
	return c
}

// examineOwn says that the operator's configuration has mistakes; nothing when it has none.
func (a *app) examineOwn() []doctor.Finding {
	own := a.ownFile()
	_, err := own.Read()
	if err == nil {
		return nil
	}
	found := err.Error()
	var problems policy.Problems
	if errors.As(err, &problems) {
		found = mistakes(problems) + " in " + text.Quote(own.Path)
	}
	return []doctor.Finding{{
		What: "configuration", Mark: doctor.Wrong, Found: found, Remedy: carry("interlock config check", a.args),
	}}
}
