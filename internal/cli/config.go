package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"interlock/internal/git"
	"interlock/internal/policy"
	"interlock/internal/run"
	"interlock/internal/settings"
	"interlock/internal/text"
)

func (a *app) configCommand() *cobra.Command {
	return a.group(cobra.Command{
		Use:   "config",
		Short: "check and show what Interlock is configured to do",
		Long: `Settings come from flags, your own configuration (its section for the repository, then the rest),
the file .interlock/config.yaml of the repository's base branch, and the defaults; the first that
says something counts. A repository's file never decides what protects you: what it may not set is
refused, its limits only lower yours, and its command lines run in the sandbox or not at all.`,
		Example: "  interlock config check\n  interlock config show",
	}, a.configCheckCommand(), a.configShowCommand(), a.configSchemaCommand())
}

func (a *app) configShowCommand() *cobra.Command {
	var repo string
	c := a.command(cobra.Command{
		Use:   "show",
		Short: "show each setting, where it comes from, and what does not count and why",
		Long: `show decides each setting as "interlock run" with the same flags would, and says where its value
comes from: a flag, a line of a file (BRANCH:FILE is the repository's, on that branch), or the default.`,
		Example: "  interlock config show\n  interlock config show --lane build --json",
		Args:    atMost(0),
	}, nil)
	repoFlag(c, &repo)
	typed := settingFlags(c)
	a.jsonFlag(c, "print one array of settings")
	c.RunE = func(c *cobra.Command, _ []string) error {
		given, err := values(typed)
		if err != nil || a.dry {
			return err
		}
		a.started = true
		s, err := a.settle(c.Context(), repo, given)
		if err != nil {
			return err
		}
		if a.json {
			return text.List(a.env.Stdout, s.Shown())
		}
		if err := policy.WriteTable(a.env.Stdout, s.Shown()); err != nil {
			return err
		}
		r, err := a.repository(c.Context(), repo)
		if err != nil {
			return err
		}
		if lacks := s.Missing(); lacks != nil {
			fmt.Fprintf(a.env.Stderr, "interlock: a run cannot start yet: %s\n", text.Line(lacks.Error()))
		}
		said, err := r.Uncommitted(c.Context(), s.Text("base"))
		if said != "" {
			fmt.Fprintf(a.env.Stderr, "interlock: warning: %s\n", text.Line(said))
		}
		return err
	}
	return c
}

func (a *app) configSchemaCommand() *cobra.Command {
	var operator bool
	c := a.command(cobra.Command{
		Use:     "schema",
		Short:   "print the JSON Schema of a configuration, for editors",
		Example: "  interlock config schema\n  interlock config schema --operator",
		Args:    atMost(0),
	}, func(context.Context, []string) error {
		data, err := policy.Schema(whoseFile(operator))
		if err != nil {
			return err
		}
		_, err = a.env.Stdout.Write(data)
		return err
	})
	c.Flags().BoolVar(&operator, "operator", false, "of your own file instead of a repository's")
	return c
}

func whoseFile(operator bool) policy.Whose {
	if operator {
		return policy.General
	}
	return policy.Repository
}

func (a *app) configCheckCommand() *cobra.Command {
	var repo string
	var operator bool
	c := a.command(cobra.Command{
		Use:   "check [FILE]",
		Short: "name every mistake of the configuration, with its line",
		Long: `check reads your configuration, the repository's file in the work tree, and the one on the base
branch where it is another; or just FILE, as a repository's. It names all mistakes at once, each with
its line and what was probably meant, and exits 2 if there are any. Programs of checks that are known
not to be there are mistakes; what only a shell in the sandbox can tell is said.`,
		Example: "  interlock config check\n  interlock config check .interlock/config.yaml --json",
		Args:    atMost(1),
	}, func(ctx context.Context, args []string) error {
		r, own := settings.NewReport(a.env.Environ), a.ownFile()
		if len(args) == 1 {
			path := a.path(args[0])
			if err := r.File(ctx, path, args[0], whoseFile(operator || path == own.Path)); err != nil {
				return configError(err)
			}
		} else if err := a.checkAll(ctx, r, own, repo); err != nil {
			return err
		}
		if len(r.Problems) > 0 {
			a.exit = run.ExitUsage
		}
		switch {
		case a.json:
			return text.JSON(a.env.Stdout, r)
		case len(r.Problems) > 0:
			wrong := configError(policy.Problems(r.Problems))
			wrong.next = "interlock " + text.QuoteAll(a.args) // when they are mended
			return wrong
		}
		_, err := io.WriteString(a.env.Stdout, r.Text())
		return err
	})
	repoFlag(c, &repo)
	c.Flags().BoolVar(&operator, "operator", false, "judge FILE as your own configuration")
	a.jsonFlag(c, "print one object with files, problems and warnings")
	return c
}

// checkAll looks at each file that counts, or will when it is committed.
func (a *app) checkAll(ctx context.Context, r *settings.Report, own settings.Own, repo string) error {
	op, err := r.Operator(ctx, own)
	if err != nil {
		return configError(err)
	}
	at, err := a.repository(ctx, repo)
	if errors.Is(err, git.ErrNotRepository) && repo == "." {
		return nil // your own configuration can be checked anywhere
	}
	if err != nil {
		return err
	}
	r.Sections(op, own.Home, func(path string) error {
		_, err := a.locate(ctx, path)
		return err
	})
	if err := r.Repository(ctx, at, op); err != nil {
		return configError(err)
	}
	return nil
}
