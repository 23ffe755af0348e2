package cli

import (
	"context"
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"interlock/internal/run"
	"interlock/internal/sessionlog"
	"interlock/internal/store/sqlite"
	"interlock/internal/text"
)

func (a *app) logsCommand() *cobra.Command {
	var repo string
	var checks, raw bool
	var attempt int
	c := a.command(cobra.Command{
		Use:   "logs RUN|ISSUE",
		Short: "print what the agent, or the checks, of a run printed",
		Long: `logs prints the log of the newest session of a run. What an agent prints is not to be trusted:
characters that could do something to a terminal are shown as escapes. What go test reported as JSON
is shown as go test -v prints it. --raw prints the bytes that were kept, JSON and all.`,
		Example: "  interlock logs 1\n  interlock logs 1 --check\n  interlock logs 1 --attempt 2 --raw > agent.log",
		Args:    one("run or issue", "interlock logs 1"),
	}, func(ctx context.Context, args []string) error {
		if raw && a.env.Terminal {
			return &usageError{"--raw is not for terminals: the log could do something to yours", "interlock logs " + text.Quote(args[0])}
		}
		return a.withRun(ctx, repo, args[0], func(s *sqlite.Store, r run.Run) error {
			h, err := s.History(ctx, r.ID)
			if err != nil {
				return err
			}
			session, what, ok := sessionlog.Pick(h.Sessions, checks, attempt)
			if !ok {
				return &refusal{run.ExitRefused, "run " + r.ID + " has no " + what, nothingChanged, "interlock show " + text.Quote(r.ID)}
			}
			err = sessionlog.Copy(a.env.Stdout, session, raw)
			if errors.Is(err, fs.ErrNotExist) {
				return &refusal{run.ExitRefused, "the log " + session.Log + " is not there (any more)", nothingChanged, "interlock runs"}
			}
			return err
		})
	})
	repoFlag(c, &repo)
	c.Flags().BoolVar(&checks, "check", false, "what the checks printed, instead of the agent")
	c.Flags().IntVar(&attempt, "attempt", 0, "the session of this attempt (default the newest)")
	c.Flags().BoolVar(&raw, "raw", false, "print the bytes as they are (not to a terminal)")
	return c
}
