package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"interlock/internal/failpoint/writes"
	"interlock/internal/lease"
	"interlock/internal/retention"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/settings"
	"interlock/internal/store/sqlite"
	"interlock/internal/text"
	"interlock/internal/view"
)

func (a *app) workspaceCommand() *cobra.Command {
	return a.group(cobra.Command{
		Use:   "workspace",
		Short: "list, export, keep and remove the workspaces of runs",
		Long: `workspace is about the private clones that agents worked in. Those of a finished run are kept for
retention.workspaces (168h) and then removed by the next run or sweep, but only when their work was
read back from its repository, or when they hold none. All else stays until it is dropped.`,
		Example: "  interlock workspace list\n  interlock workspace export 1 ./work-of-1\n  interlock workspace sweep",
	}, a.workspaceList(), a.workspaceExport(), a.workspaceKeep(), a.workspaceDrop(), a.workspaceSweep())
}

// retention wires what keeps workspaces and logs.
func (a *app) retention(ctx context.Context, s *sqlite.Store, self run.Holder) (*retention.Keeper, error) {
	dir, err := a.stateDir()
	if err != nil {
		return nil, err
	}
	limits, err := settings.Retention(a.ownFile())
	if err != nil {
		return nil, configError(err)
	}
	g, err := a.findGit(ctx)
	if err != nil {
		return nil, err
	}
	return &retention.Keeper{
		State: dir, Store: writes.Store(s), Clock: s.Clock(), Git: g, Facts: sandbox.Inspect, Env: a.env.Environ, Self: self, Limits: limits, Branches: a.branches,
		Say: func(line string) {
			a.mu.Lock()
			defer a.mu.Unlock()
			fmt.Fprintf(a.env.Stderr, "interlock: %s\n", text.Line(line))
		},
	}, nil
}

// branches reads where a run's branch and its base are now.
func (a *app) branches(ctx context.Context, r run.Run) ([]string, error) {
	f, err := a.forge(ctx, r.RepoPath)
	if err != nil {
		return nil, err
	}
	if f.Location().Key != r.Repo {
		return nil, fmt.Errorf("%s is another repository now", text.Quote(r.RepoPath))
	}
	refs, err := a.git.LsRemote(ctx, f.Remote(), "refs/heads/"+r.Branch, "refs/heads/"+r.Base.Branch)
	return slices.Collect(maps.Values(refs)), err
}

// withKeeper does something with the workspaces of the state that is there.
func (a *app) withKeeper(ctx context.Context, do func(k *retention.Keeper, s *sqlite.Store) error) error {
	s, err := a.openWhatIsThere(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	self, err := lease.Self(ctx, s)
	if err != nil {
		return err
	}
	k, err := a.retention(ctx, s, self)
	if err != nil {
		return err
	}
	return do(k, s)
}

// ofRun does something with the workspaces of the run that is named by the first argument, and prints it.
func (a *app) ofRun(c cobra.Command, do func(ctx context.Context, k *retention.Keeper, id string, rest []string) (result any, shown string, err error)) *cobra.Command {
	var repo string
	cmd := a.command(c, func(ctx context.Context, args []string) error {
		return a.withKeeper(ctx, func(k *retention.Keeper, s *sqlite.Store) error {
			r, err := a.findRun(ctx, s, repo, args[0])
			if err != nil {
				return err
			}
			result, shown, err := do(ctx, k, r.ID, args[1:])
			if err != nil {
				return err
			}
			return a.print(result, shown)
		})
	})
	repoFlag(cmd, &repo)
	a.jsonFlag(cmd, "print what was done as one JSON object")
	return cmd
}

func (a *app) workspaceList() *cobra.Command {
	var repo string
	c := a.command(cobra.Command{
		Use:   "list [RUN|ISSUE]",
		Short: "list workspaces: whose, how large, whether their work is safe, when they go",
		Long: `list looks through each workspace. WORK is none, pushed (it was seen on the branch of the run),
imported (it is in Interlock's own repository, which is never pruned), or "not imported": then it
may be nowhere else, and the workspace is removed by nobody but you, by name.`,
		Example: "  interlock workspace list\n  interlock workspace list 1 --json",
		Args:    atMost(1),
	}, func(ctx context.Context, args []string) error {
		return a.withKeeper(ctx, func(k *retention.Keeper, s *sqlite.Store) error {
			only := ""
			if len(args) == 1 {
				r, err := a.findRun(ctx, s, repo, args[0])
				if err != nil {
					return err
				}
				only = r.ID
			}
			found, err := k.List(ctx, only)
			if err != nil {
				return err
			}
			if a.json {
				return text.List(a.env.Stdout, found)
			}
			if len(found) == 0 {
				_, err = fmt.Fprintln(a.env.Stderr, "no workspaces")
				return err
			}
			if err := view.Workspaces(a.env.Stdout, found, a.env.Now()); err != nil {
				return err
			}
			_, err = io.WriteString(a.env.Stdout, view.WorkspacesNext(found, func(next string) string { return carry(next, a.args) }))
			return err
		})
	})
	repoFlag(c, &repo)
	a.jsonFlag(c, "print one JSON array")
	return c
}

func (a *app) workspaceExport() *cobra.Command {
	return a.ofRun(cobra.Command{
		Use:   "export RUN|ISSUE DIR",
		Short: "write the work of a finished run into a new repository",
		Long: `export makes a repository in DIR, which borrows nothing and holds no configuration of an agent's: a
branch for what each attempt left, with what was uncommitted as its last commit. What was not
imported yet is imported first, by a git in the sandbox; after that its workspace can be dropped.
It exits 1 when something cannot be taken in, and says where that lies. Files that the repository
ignores are no work.`,
		Example: "  interlock workspace export 1 ./work-of-1",
		Args:    cobra.ExactArgs(2),
	}, func(ctx context.Context, k *retention.Keeper, id string, rest []string) (any, string, error) {
		x, err := k.Export(ctx, id, a.path(rest[0]))
		if len(x.Left) > 0 {
			a.exit = run.ExitRefused
		}
		return x, view.Exported(x), err
	})
}

func (a *app) workspaceKeep() *cobra.Command {
	var off bool
	c := a.ofRun(cobra.Command{
		Use:     "keep RUN|ISSUE",
		Short:   "exempt the workspaces and logs of a run from every removal",
		Example: "  interlock workspace keep 1\n  interlock workspace keep 1 --off",
		Args:    one("run or issue", "interlock workspace keep 1"),
	}, func(ctx context.Context, k *retention.Keeper, id string, _ []string) (any, string, error) {
		changed, err := k.Keep(ctx, id, !off)
		said := map[bool]string{true: "is not kept any more", false: "is kept until: interlock workspace keep " + id + " --off"}[off]
		return map[string]any{"run": id, "kept": !off, "changed": changed}, fmt.Sprintf("what run %s has left %s\n", text.Line(id), said), err
	})
	c.Flags().BoolVar(&off, "off", false, "take that back")
	return c
}

func (a *app) workspaceDrop() *cobra.Command {
	var lose []string
	c := a.ofRun(cobra.Command{
		Use:   "drop RUN|ISSUE",
		Short: "remove the workspaces of a finished run now",
		Long: `drop removes all workspaces of a run. It refuses while a session or a command may use them, while
they are kept, and while one may hold work that is nowhere else: export that, or name with --lose
the workspace of which the work is to be lost. A removal that is killed is finished by the next
run or sweep.`,
		Example: "  interlock workspace drop 1\n  interlock workspace drop 1 --lose 2",
		Args:    one("run or issue", "interlock workspace drop 1"),
	}, func(ctx context.Context, k *retention.Keeper, id string, _ []string) (any, string, error) {
		d, err := k.Drop(ctx, id, lose)
		return d, view.Dropped(d), err
	})
	c.Flags().StringArrayVar(&lose, "lose", nil, "a workspace of it, as list names it, whose work is to be lost (can be given more than once)")
	return c
}

func (a *app) workspaceSweep() *cobra.Command {
	var imported, anyAge bool
	c := a.command(cobra.Command{
		Use:   "sweep",
		Short: "remove what is due: old workspaces whose work is safe, and old logs",
		Long: `sweep removes the workspaces of finished runs that were kept for retention.workspaces, and whose
work is read back from their repository at this moment, or is none; logs after retention.logs; and
what a removal that was killed has left. A run does the same beside its work. What is kept, or may
be nowhere else, is never removed.`,
		Example: "  interlock workspace sweep\n  interlock workspace sweep --now --imported --json",
		Args:    atMost(0),
	}, func(ctx context.Context, _ []string) error {
		return a.withKeeper(ctx, func(k *retention.Keeper, _ *sqlite.Store) error {
			swept, err := k.Sweep(ctx, retention.Hint{AnyAge: anyAge, Imported: imported})
			if err != nil {
				return err
			}
			return a.print(swept, view.Swept(swept))
		})
	})
	c.Flags().BoolVar(&anyAge, "now", false, "whatever their age")
	c.Flags().BoolVar(&imported, "imported", false, "also work that is only in Interlock's own repository, which keeps it")
	a.jsonFlag(c, "print what was removed as one JSON object")
	return c
}

// sweepBeside sweeps beside a run; what it returns ends that and says what was removed.
func (a *app) sweepBeside(ctx context.Context) (stop func()) {
	k, err := a.keep()
	if err != nil {
		return func() {} // the first session is refused for it
	}
	end := k.Begin(ctx)
	return func() {
		if s := end(); len(s.Workspaces)+s.Logs > 0 {
			k.Say(strings.TrimSpace(view.Swept(s)))
		}
	}
}
