package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"interlock/internal/policy"
	"interlock/internal/settings"
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
	case policy.Lines, policy.Names, policy.Paths, policy.Secrets:
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
		f := &typedFlag{key: k}
		pf := c.Flags().VarPF(f, k.Flag, "", k.Help())
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

// ownFile is where the operator's configuration is.
func (a *app) ownFile() settings.Own {
	o := settings.Own{Home: a.getenv("HOME"), Typed: a.config != ""}
	if o.Path = policy.OperatorPath(a.getenv("XDG_CONFIG_HOME"), o.Home); o.Typed {
		o.Path = a.path(a.config)
	}
	return o
}

// configError puts it into words that a configuration cannot be worked with.
func configError(err error) *usageError {
	var problems policy.Problems
	if errors.As(err, &problems) {
		err = fmt.Errorf("the configuration has %s:\n%w", mistakes(problems), err)
	}
	return &usageError{err.Error(), "interlock config check"}
}

// mistakes says how many there are.
func mistakes(all policy.Problems) string {
	if n := all.Count(); n > 1 {
		return fmt.Sprintf("%d mistakes", n)
	}
	return "a mistake"
}

// repository is what settings are wanted for.
func (a *app) repository(ctx context.Context, repo string) (settings.Repository, error) {
	f, err := a.forge(ctx, repo)
	if err != nil {
		return settings.Repository{}, err
	}
	return settings.Repository{Git: a.git, Forge: f, At: f.Location()}, nil
}

// settle reads the configuration that holds for a repository and decides each setting.
func (a *app) settle(ctx context.Context, repo string, typed policy.Values) (*policy.Settings, error) {
	r, err := a.repository(ctx, repo)
	if err != nil {
		return nil, err
	}
	s, err := settings.Settle(ctx, a.ownFile(), r, typed)
	if err != nil {
		return nil, configError(err)
	}
	return s, nil
}
