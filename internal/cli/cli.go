// Package cli is the command line: one file for each command, the wiring of drivers, and all that
// a person or a script reads. It decides nothing about issues and never touches git, the store or
// a forge but through their packages.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"interlock/internal/git"
	"interlock/internal/input"
	"interlock/internal/policy"
	"interlock/internal/progress"
	"interlock/internal/retention"
	"interlock/internal/text"
	"interlock/internal/view"
)

// Env is everything that a command takes from outside.
type Env struct {
	Dir      string   // working directory, absolute
	Environ  []string // NAME=value
	Stdin    io.Reader
	Stdout   io.Writer        // results
	Stderr   io.Writer        // progress and errors
	Now      func() time.Time // wall clock, for what people read
	Terminal bool             // Stdout is a terminal
}

// ErrInterrupted is the cause that a context ends with when a person asked the program to stop.
var ErrInterrupted = errors.New("interrupted")

// Main runs one command line (without the program's name) and returns its exit code, which is one
// of run.ExitCodes. When ctx ends the command stops cleanly and everything is kept.
func Main(ctx context.Context, env Env, args []string) int {
	a := &app{env: env, args: input.Printable(env.Dir, args)}
	root := a.root()
	root.SetArgs(append([]string{}, args...)) // nil would mean the arguments of this process
	return a.finish(ctx, root.ExecuteContext(ctx))
}

// Check reports whether a command line (without the program's name) would be understood. It runs
// nothing. Documents are tested with it.
func Check(args []string) error {
	a := &app{env: Env{Dir: "/", Stdout: io.Discard, Stderr: io.Discard, Now: time.Now}, args: args, dry: true}
	root := a.root()
	root.SetArgs(append([]string{}, args...))
	return root.Execute()
}

// app is one command line while it runs.
type app struct {
	env     Env
	args    []string
	state   string   // --state-dir as typed
	config  string   // --config as typed
	json    bool     // --json of the command
	lenient bool     // the command only reads or stops: a mistake in the operator's file is said, and stops it not
	warned  bool     // that was said
	dry     bool     // understand the command line, do nothing
	started bool     // the command line was understood; what fails now is not its fault
	color   string   // --color as typed
	exit    int      // the code of a command that did what it was asked, and has more to say than 0
	filed   int64    // the issue that the command filed before it worked it
	git     *git.Git // found at the first need
	show    *progress.Show

	// keep wires what keeps workspaces, for the engine that was wired.
	keep func() (*retention.Keeper, error)

	mu sync.Mutex // guards Stdout and Stderr against progress from other goroutines
}

// finish prints an error, if there is one, and returns the exit code.
func (a *app) finish(ctx context.Context, err error) int {
	a.hush()
	if err == nil {
		return a.exit
	}
	if !a.started {
		err = a.misuse(err)
	}
	p := explain(ctx, err, a.args)
	p.Next = carry(p.Next, a.args)
	if a.filed > 0 && (p.Safe == nothingChanged || p.Safe == "nothing was started") {
		p.Safe = fmt.Sprintf("issue %d is filed; nothing was started", a.filed)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.json || slices.Contains(a.args, "--json") {
		_ = text.JSON(a.env.Stdout, map[string]told{"error": p})
		return p.Exit
	}
	_, _ = io.WriteString(a.env.Stderr, p.text())
	return p.Exit
}

// misuse makes a usage error of what cobra says of a command line that it does not understand.
func (a *app) misuse(err error) error {
	var u *usageError
	if errors.As(err, &u) {
		return err
	}
	what, more, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	if _, meant, ok := strings.Cut(more, "Did you mean this?"); ok {
		what += "; did you mean " + strings.Join(strings.Fields(meant), ", ") + "?"
	}
	return &usageError{what: what, next: "interlock --help"}
}

// path makes a path that was typed absolute.
func (a *app) path(p string) string {
	if !filepath.IsAbs(p) {
		p = filepath.Join(a.env.Dir, p)
	}
	return filepath.Clean(p)
}

// getenv returns a variable of the operator's environment, "" if it is not set.
func (a *app) getenv(name string) string {
	for _, kv := range slices.Backward(a.env.Environ) {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			return v
		}
	}
	return ""
}

// stateDir returns the state directory: --state-dir, the operator's configuration,
// $XDG_STATE_HOME/interlock, or its default.
func (a *app) stateDir() (string, error) {
	if a.state != "" {
		return a.path(a.state), nil
	}
	op, err := a.ownFile().Read()
	if err != nil && !(a.lenient && errors.As(err, new(policy.Problems))) { // a file that is not safe, or not there, is no mistake in it
		return "", configError(err)
	}
	dir, derr := a.stateDirOf(op)
	if err != nil && derr == nil {
		a.warnOwn(err, dir)
	}
	return dir, derr
}

// stateDirOf is stateDir for the operator's file as far as it can be read; nil where it cannot.
func (a *app) stateDirOf(op *policy.File) (string, error) {
	if op != nil {
		if set, ok := op.Values["state-dir"]; ok {
			return policy.Expand(set.Value.(string), a.getenv("HOME")), nil
		}
	}
	// The XDG rules say that a relative path there is to be ignored.
	if x := a.getenv("XDG_STATE_HOME"); filepath.IsAbs(x) {
		return filepath.Join(x, "interlock"), nil
	}
	if h := a.getenv("HOME"); filepath.IsAbs(h) {
		return filepath.Join(h, ".local", "state", "interlock"), nil
	}
	return "", &usageError{
		what: "neither XDG_STATE_HOME nor HOME is set, so there is no place for the state",
		next: "interlock --state-dir DIR " + text.QuoteAll(a.args),
	}
}

// root builds the tree of commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "interlock",
		Short:         "let coding agents work the issues of a repository, unattended and safely",
		Long:          view.RootHelp(),
		Example:       "  interlock demo\n  interlock issue new --repo . --title 'Sum is wrong for negative numbers'\n  interlock run --repo . --issue 1 --command ./agent.sh --checks 'go test ./...'",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.Version = view.Built().Version
	root.SetVersionTemplate(view.Built().Text())
	root.SetIn(a.env.Stdin)
	root.SetOut(a.env.Stdout)
	root.SetErr(a.env.Stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if i := slices.Index(a.args, c.Name()); c.HasParent() && c.HasSubCommands() && i >= 0 && i+1 < len(a.args) && !strings.HasPrefix(a.args[i+1], "-") {
			return c.RunE(c, a.args[i+1:]) // a command of the group that there is not, with flags that the group has not
		}
		return &usageError{what: err.Error() + meantFlag(c, err), next: c.CommandPath() + " --help"}
	})
	root.PersistentFlags().StringVar(&a.state, "state-dir", "",
		"where runs, leases and logs are kept (default $XDG_STATE_HOME/interlock or ~/.local/state/interlock)")
	root.PersistentFlags().StringVar(&a.config, "config", "",
		"your configuration (default $XDG_CONFIG_HOME/interlock/config.yaml or ~/.config/interlock/config.yaml)")
	root.PersistentFlags().StringVar(&a.color, "color", string(progress.Auto), "colours: auto (on a terminal, unless NO_COLOR is set), always or never")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		a.lenient = slices.Contains(lenient, c.CommandPath())
		return a.colourKnown()
	}
	root.AddCommand(a.commands()...)
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = topics       // its own answer to a command that there is not is no error
		root.RemoveCommand(help) // it has no manual page; cobra adds it again
	}
	a.offers().Attach(root)
	return root
}

// command makes a command of what it does. Every command goes through here, so that a failure of
// the command is told from a command line that was not understood.
func (a *app) command(c cobra.Command, do func(ctx context.Context, args []string) error) *cobra.Command {
	c.RunE = func(c *cobra.Command, args []string) error {
		a.started = true
		if a.dry {
			return nil
		}
		return do(c.Context(), args)
	}
	return &c
}

// group makes a command that only holds others.
func (a *app) group(c cobra.Command, below ...*cobra.Command) *cobra.Command {
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		return &usageError{
			what: "unknown command " + text.Quote(args[0]) + " for " + text.Quote(c.CommandPath()) + meantCommand(c, args[0]),
			next: c.CommandPath() + " --help",
		}
	}
	c.AddCommand(below...)
	return &c
}

// jsonFlag adds --json to a command.
func (a *app) jsonFlag(c *cobra.Command, what string) {
	c.Flags().BoolVar(&a.json, "json", false, what)
}

// print prints what a command was asked for: v as JSON where that is wanted, else shown.
func (a *app) print(v any, shown string) error {
	if a.json {
		return text.JSON(a.env.Stdout, v)
	}
	_, err := io.WriteString(a.env.Stdout, shown)
	return err
}
