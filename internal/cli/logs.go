package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"interlock/internal/check"
	"interlock/internal/run"
	"interlock/internal/store"
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
		s, err := a.openStore(ctx)
		if err != nil {
			return err
		}
		defer s.Close()
		r, err := a.findRun(ctx, s, repo, args[0])
		if err != nil {
			return err
		}
		h, err := s.History(ctx, r.ID)
		if err != nil {
			return err
		}
		session, err := pickSession(r, h.Sessions, checks, attempt)
		if err != nil {
			return err
		}
		return a.copyLog(session, raw)
	})
	repoFlag(c, &repo)
	c.Flags().BoolVar(&checks, "check", false, "what the checks printed, instead of the agent")
	c.Flags().IntVar(&attempt, "attempt", 0, "the session of this attempt (default the newest)")
	c.Flags().BoolVar(&raw, "raw", false, "print the bytes as they are (not to a terminal)")
	return c
}

// pickSession returns the newest session that was asked for.
func pickSession(r run.Run, all []store.Session, checks bool, attempt int) (store.Session, error) {
	kind := "agent"
	if checks {
		kind = "check"
	}
	for _, s := range slices.Backward(all) {
		if s.Kind == kind && (attempt == 0 || s.Attempt == attempt) {
			return s, nil
		}
	}
	what := fmt.Sprintf("run %s has no %s session", r.ID, kind)
	if attempt != 0 {
		what += fmt.Sprintf(" in attempt %d", attempt)
	}
	return store.Session{}, &refusal{run.ExitRefused, what, nothingChanged, "interlock show " + text.Quote(r.ID)}
}

func (a *app) copyLog(s store.Session, raw bool) error {
	name := s.Log
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return &refusal{run.ExitRefused, "the log " + name + " is not there (any more)", nothingChanged, "interlock runs"}
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if raw {
		_, err = io.Copy(a.env.Stdout, f)
		return err
	}
	w := &text.Writer{To: a.env.Stdout}
	if s.Kind == "check" {
		r := &check.Readable{To: w}
		_, err = io.Copy(r, f)
		return errors.Join(err, r.Close(), w.Close())
	}
	if _, err := io.Copy(w, f); err != nil {
		return err
	}
	return w.Close()
}
