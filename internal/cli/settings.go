package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"interlock/internal/policy"
	"interlock/internal/settings"
	"interlock/internal/text"
)

// settingFlags gives a command a flag for each setting.
func settingFlags(c *cobra.Command) settings.Flags { return settings.AddFlags(c.Flags()) }

// values judges what was typed.
func values(f settings.Flags) (policy.Values, error) {
	v, err := f.Values()
	if err != nil {
		return nil, bad("%w", err)
	}
	return v, nil
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

// lenient are the commands that only read or stop. They go on without the part of the operator's
// configuration that cannot be read: nothing is started by it.
var lenient = []string{
	"interlock runs", "interlock show", "interlock explain", "interlock watch", "interlock logs", "interlock cancel",
	"interlock issue list", "interlock issue show", "interlock change list", "interlock change show", "interlock change diff",
	"interlock claim show", "interlock state check",
}

// warnOwn says once that the operator's configuration has mistakes, and where the state is taken to be.
func (a *app) warnOwn(err error, dir string) {
	if a.warned || a.json {
		return
	}
	a.warned = true
	var problems policy.Problems
	errors.As(err, &problems)
	a.mu.Lock()
	defer a.mu.Unlock()
	fmt.Fprintf(a.env.Stderr, "interlock: warning: your configuration %s cannot be worked with: %s in it; the state is taken to be in %s; look at it with: interlock config check\n",
		text.Line(a.ownFile().Path), mistakes(problems), text.Line(dir))
}
