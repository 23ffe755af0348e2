package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"interlock/internal/run"
	"interlock/internal/settings"
)

func (a *app) initCommand() *cobra.Command {
	var repo string
	var operator, force, show bool
	c := a.command(cobra.Command{
		Use:   "init",
		Short: "write a commented configuration with what is found here",
		Long: `init looks at the repository and at this machine (base branch, checks, coding agents in PATH) and
writes .interlock/config.yaml into the work tree. It counts when it is committed on the base branch.
With --operator it writes your own file instead: agent, variables, sandbox, limits. A file that is
there is left alone, unless --force is given.`,
		Example: "  interlock init\n  interlock init --print\n  interlock init --operator",
		Args:    atMost(0),
	}, func(ctx context.Context, _ []string) error {
		if show && a.json {
			return &usageError{"--print prints the file as it is, so --json does not go with it", "interlock init --print"}
		}
		p, err := a.propose(ctx, repo, operator)
		if err != nil {
			return err
		}
		if show {
			_, err := io.WriteString(a.env.Stdout, p.Text)
			return err
		}
		err = p.Write(force)
		if errors.Is(err, fs.ErrExist) {
			next := "interlock init --print"
			if operator {
				next = "interlock init --operator --print"
			}
			return &refusal{run.ExitRefused, err.Error() + " (--print shows what would be written, --force writes over it)", nothingChanged, next}
		}
		if err != nil {
			return err
		}
		for i := range p.Next {
			p.Next[i] = carry(p.Next[i], a.args)
		}
		return a.print(p, p.Summary())
	})
	repoFlag(c, &repo)
	c.Flags().BoolVar(&operator, "operator", false, "write your own configuration instead of the repository's")
	c.Flags().BoolVar(&force, "force", false, "write over a file that is there")
	c.Flags().BoolVar(&show, "print", false, "print the file instead of writing it")
	a.jsonFlag(c, "print one object with what was found and written")
	return c
}

// propose makes the file, with what is found.
func (a *app) propose(ctx context.Context, repo string, operator bool) (settings.Proposal, error) {
	own, path := a.ownFile(), a.getenv("PATH")
	if operator {
		p, err := settings.ForOperator(own, path)
		if err != nil {
			return p, &usageError{err.Error(), "interlock init --operator --config FILE"}
		}
		return p, nil
	}
	at, err := a.locate(ctx, repo)
	if err != nil {
		return settings.Proposal{}, err
	}
	p, err := settings.ForRepository(ctx, a.git, at, own, path)
	if errors.Is(err, settings.ErrNoPlace) {
		return p, &refusal{run.ExitRefused, err.Error(), nothingChanged, "interlock init --help"}
	}
	return p, err
}
