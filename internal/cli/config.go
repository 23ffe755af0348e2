package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"interlock/internal/git"
	"interlock/internal/policy"
	"interlock/internal/run"
	"interlock/internal/sandbox"
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
		Args:    cobra.NoArgs,
	}, nil)
	repoFlag(c, &repo)
	typed := settingFlags(c)
	a.jsonFlag(c, "print one array of settings")
	c.RunE = func(c *cobra.Command, _ []string) error {
		values, err := typed.values()
		if err != nil || a.dry {
			return err
		}
		a.started = true
		s, err := a.settle(c.Context(), repo, values)
		if err != nil {
			return err
		}
		if a.json {
			return text.List(a.env.Stdout, s.Shown())
		}
		return policy.WriteTable(a.env.Stdout, s.Shown())
	}
	return c
}

func (a *app) configSchemaCommand() *cobra.Command {
	var operator bool
	c := a.command(cobra.Command{
		Use:     "schema",
		Short:   "print the JSON Schema of a configuration, for editors",
		Example: "  interlock config schema\n  interlock config schema --operator",
		Args:    cobra.NoArgs,
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

// checked is the result of `config check`.
type checked struct {
	Files    []checkedFile    `json:"files"`
	Problems []policy.Problem `json:"problems"`
	Warnings []string         `json:"warnings"`
}

type checkedFile struct {
	File  string       `json:"file"`
	Whose policy.Whose `json:"whose"`
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
		Args:    cobra.MaximumNArgs(1),
	}, func(ctx context.Context, args []string) error {
		var r checked
		if len(args) == 1 {
			path := a.path(args[0])
			own, _ := a.operatorPath()
			if err := a.checkFile(&r, path, args[0], whoseFile(operator || path == own)); err != nil {
				return err
			}
		} else if err := a.checkAll(ctx, &r, repo); err != nil {
			return err
		}
		return a.reportCheck(r)
	})
	repoFlag(c, &repo)
	c.Flags().BoolVar(&operator, "operator", false, "judge FILE as your own configuration")
	a.jsonFlag(c, "print one object with files, problems and warnings")
	return c
}

// checkAll looks at each file that counts, or will when it is committed.
func (a *app) checkAll(ctx context.Context, r *checked, repo string) error {
	op, err := a.checkOperator(r)
	if err != nil {
		return err
	}
	at, err := a.locate(ctx, repo)
	if errors.Is(err, git.ErrNotRepository) && repo == "." {
		return nil // your own configuration can be checked anywhere
	}
	if err != nil {
		return err
	}
	inTree := filepath.Join(at.Worktree, policy.Path)
	if at.Worktree != "" {
		if err := a.checkFile(r, inTree, inTree, policy.Repository); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, s := range op.Sections {
		if _, err := a.locate(ctx, policy.Expand(s.Path, a.getenv("HOME"))); err != nil {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s:%d: %s is no repository", op.Name, s.Line, text.Quote(s.Path)))
		}
	}
	return a.checkBase(ctx, r, repo, op.Values)
}

func (a *app) checkOperator(r *checked) (*policy.File, error) {
	path, typed := a.operatorPath()
	if path == "" {
		return &policy.File{}, nil
	}
	f, err := policy.ReadOperator(path)
	if errors.Is(err, fs.ErrNotExist) && !typed {
		return &policy.File{}, nil
	}
	return f, a.judge(r, f, path, policy.General, err)
}

func (a *app) checkFile(r *checked, path, name string, whose policy.Whose) error {
	f, err := policy.ReadFile(path, name, whose)
	return a.judge(r, f, name, whose, err)
}

// checkBase looks at the repository's file as it counts today.
func (a *app) checkBase(ctx context.Context, r *checked, repo string, op policy.Values) error {
	f, err := a.forge(ctx, repo)
	if err != nil {
		return err
	}
	branch := policy.Settle(policy.Layers{General: op}).Text("base")
	file, err := a.baseFile(ctx, f, branch)
	var problems policy.Problems
	switch {
	case errors.As(err, &problems):
		r.Files = append(r.Files, checkedFile{problems[0].File, policy.Repository})
		for _, p := range problems {
			told := func(q policy.Problem) bool { return q.Line == p.Line && q.Column == p.Column && q.What == p.What }
			if !slices.ContainsFunc(r.Problems, told) { // in the work tree as well
				r.Problems = append(r.Problems, p)
			}
		}
		return nil
	case err != nil || file == nil || file.Name == "":
		if err == nil && len(r.Files) > 0 && r.Files[len(r.Files)-1].Whose == policy.Repository {
			r.Warnings = append(r.Warnings, "the repository's file is not on its base branch yet: it counts when it is committed there")
		}
		return err
	}
	return a.judge(r, file, file.Name, policy.Repository, nil)
}

// judge takes in what was found in a file.
func (a *app) judge(r *checked, f *policy.File, name string, whose policy.Whose, err error) error {
	var problems policy.Problems
	if err != nil && !errors.As(err, &problems) {
		if errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return configError(err)
	}
	r.Files = append(r.Files, checkedFile{name, whose})
	r.Problems = append(r.Problems, problems...)
	path := a.getenv("PATH")
	if f.Values["checks"].Value != nil {
		_, path = sandbox.Toolchains(context.Background(), a.env.Environ)
	}
	missing, warnings := f.Programs(path, a.getenv("PATH"))
	r.Problems, r.Warnings = append(r.Problems, missing...), append(r.Warnings, warnings...)
	return nil
}

func (a *app) reportCheck(r checked) error {
	if len(r.Problems) > 0 {
		a.exit = run.ExitUsage
	}
	if a.json {
		r.Files, r.Problems, r.Warnings = append([]checkedFile{}, r.Files...), append([]policy.Problem{}, r.Problems...), append([]string{}, r.Warnings...)
		return text.JSON(a.env.Stdout, r)
	}
	if len(r.Problems) > 0 {
		return configError(policy.Problems(r.Problems))
	}
	var b bytes.Buffer
	for _, f := range r.Files {
		fmt.Fprintf(&b, "ok  %s (%s)\n", text.Line(f.File), f.Whose)
	}
	if len(r.Files) == 0 {
		b.WriteString("there is no configuration; interlock init writes one\n")
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", text.Line(w))
	}
	_, err := io.Copy(a.env.Stdout, &b)
	return err
}
