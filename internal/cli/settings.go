package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"interlock/internal/forge"
	"interlock/internal/forge/local"
	"interlock/internal/git"
	"interlock/internal/policy"
	"interlock/internal/text"
)

// typedFlag is one setting as a flag. It takes what is typed as it is; values are judged together,
// in words that never repeat a secret.
type typedFlag struct {
	key   *policy.Key
	typed []string
}

// String implements the flag's Value: the default.
func (f *typedFlag) String() string {
	if f.key == nil {
		return ""
	}
	return f.key.Default
}

// Set implements the flag's Value.
func (f *typedFlag) Set(s string) error {
	f.typed = append(f.typed, s)
	return nil
}

// Type implements the flag's Value: what help calls it.
func (f *typedFlag) Type() string {
	switch f.key.Kind {
	case policy.Count:
		return "int"
	case policy.Span:
		return "duration"
	case policy.Switch:
		return "bool"
	case policy.Lines, policy.Names, policy.Paths:
		return "stringArray"
	}
	return "string"
}

type typedFlags []*typedFlag

// settingFlags gives a command a flag for each setting.
func settingFlags(c *cobra.Command) typedFlags {
	var all typedFlags
	for _, k := range policy.Keys() {
		if k.Flag == "" {
			continue
		}
		f, what := &typedFlag{key: k}, k.Short
		if f.Type() == "stringArray" {
			what += " (can be given more than once)"
		}
		if k.Default == "" && k.Flag == "base" {
			what += " (default " + k.Else + ")"
		}
		pf := c.Flags().VarPF(f, k.Flag, "", what)
		if k.Kind == policy.Switch {
			pf.NoOptDefVal = "true"
		}
		all = append(all, f)
	}
	return all
}

// values judges what was typed.
func (all typedFlags) values() (policy.Values, error) {
	values := policy.Values{}
	for _, f := range all {
		if f.typed == nil {
			continue
		}
		found, err := f.key.ReadTyped(f.typed)
		if err != nil {
			return nil, bad("%w", err)
		}
		values[f.key.Name] = found
	}
	return values, nil
}

// operatorPath is where the operator's configuration is; typed says that it was named.
func (a *app) operatorPath() (path string, typed bool) {
	if a.config != "" {
		return a.path(a.config), true
	}
	return policy.OperatorPath(a.getenv("XDG_CONFIG_HOME"), a.getenv("HOME")), false
}

// operator returns the operator's configuration, an empty one where there is none.
func (a *app) operator() (*policy.File, error) {
	path, typed := a.operatorPath()
	if path == "" {
		return &policy.File{}, nil
	}
	f, err := policy.ReadOperator(path)
	if errors.Is(err, fs.ErrNotExist) && !typed {
		return &policy.File{}, nil
	}
	if err != nil {
		return nil, configError(err)
	}
	return f, nil
}

// configError puts it into words that a configuration cannot be worked with.
func configError(err error) error {
	next := "interlock config check"
	var problems policy.Problems
	if errors.As(err, &problems) {
		err = fmt.Errorf("the configuration has %s:\n%w", mistakes(len(problems)), err)
	}
	return &usageError{err.Error(), next}
}

func mistakes(n int) string {
	if n == 1 {
		return "a mistake"
	}
	return fmt.Sprintf("%d mistakes", n)
}

// settle reads the configuration that holds for a repository and decides each setting.
func (a *app) settle(ctx context.Context, repo string, typed policy.Values) (*policy.Settings, error) {
	op, err := a.operator()
	if err != nil {
		return nil, err
	}
	f, err := a.forge(ctx, repo)
	if err != nil {
		return nil, err
	}
	l := policy.Layers{Typed: typed, General: op.Values, Here: op.Section(a.getenv("HOME"), func(path string) bool { return leads(path, f.Location()) })}
	branch := policy.Settle(l).Text("base") // a repository's own word on it is read below
	file, err := a.baseFile(ctx, f, branch)
	if err != nil {
		return nil, configError(err)
	}
	if file != nil {
		l.Repository = file.Values
	}
	return policy.Settle(l), nil
}

// leads reports whether a path is that of the repository: its work tree or its git directory.
func leads(path string, at git.Location) bool {
	for _, pair := range [][2]string{{path, at.Worktree}, {path, at.CommonDir}, {filepath.Join(path, ".git"), at.CommonDir}} {
		x, err1 := os.Stat(pair[0])
		y, err2 := os.Stat(pair[1])
		if err1 == nil && err2 == nil && os.SameFile(x, y) {
			return true
		}
	}
	return false
}

// baseFile reads the repository's file from a commit of its base branch, nil where there is none.
// The file of the branch that is checked out may name another branch; then that one's counts, and
// its word on the base does not.
func (a *app) baseFile(ctx context.Context, f *local.Forge, branch string) (*policy.File, error) {
	file, name, err := a.fileOf(ctx, f, branch)
	if err != nil || file == nil || branch != "" {
		return file, err
	}
	base, ok := file.Values["base"]
	if !ok || base.Value == name {
		return file, nil
	}
	there, found, err := a.fileOf(ctx, f, base.Value.(string))
	if err != nil {
		return nil, err
	}
	switch {
	case there == nil && found == "": // no such branch: the engine says so
		return file, nil
	case there == nil:
		return &policy.File{Values: policy.Values{"base": base}}, nil
	}
	there.Values["base"] = base
	return there, nil
}

// fileOf reads the repository's file of one branch, "" being the one that is checked out, and says
// which branch that is: "" where it cannot be found.
func (a *app) fileOf(ctx context.Context, f *local.Forge, branch string) (*policy.File, string, error) {
	name, hash, err := f.Base(ctx, branch)
	for _, unknown := range []error{forge.ErrEmpty, forge.ErrDetached, forge.ErrNotFound, forge.ErrInvalid} {
		if errors.Is(err, unknown) {
			return nil, "", nil
		}
	}
	if err != nil {
		return nil, "", err
	}
	shown := name + ":" + policy.Path
	data, err := a.git.At(f.Location().CommonDir).Blob(ctx, hash+":"+policy.Path, policy.MaxBytes)
	switch {
	case errors.Is(err, git.ErrNoRef):
		return nil, name, nil
	case errors.Is(err, git.ErrTooBig):
		_, err = policy.Parse(shown, policy.Repository, make([]byte, policy.MaxBytes+1))
		return nil, name, err
	case err != nil:
		return nil, name, fmt.Errorf("read %s: %w", text.Quote(shown), err)
	}
	file, err := policy.Parse(shown, policy.Repository, data)
	return file, name, err
}
