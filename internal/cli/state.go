package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/store/sqlite"
	"interlock/internal/text"
	"interlock/internal/view"
)

func (a *app) stateCommand() *cobra.Command {
	return a.group(cobra.Command{
		Use:   "state",
		Short: "check, back up and restore the state directory",
		Long: `state is about the database in the state directory: runs, leases, what is to be done outside.
Branches, issues, changes and claims are in their repositories, not here.`,
		Example: "  interlock state check\n  interlock state backup /var/backups/interlock.db\n  interlock state restore /var/backups/interlock.db",
	}, a.stateCheckCommand(), a.stateBackupCommand(), a.stateRestoreCommand())
}

// openWhatIsThere opens the state, and refuses to make a new one.
func (a *app) openWhatIsThere(ctx context.Context) (*sqlite.Store, error) {
	dir, err := a.stateDir()
	if err != nil {
		return nil, err
	}
	if there, err := sqlite.There(dir); err != nil {
		return nil, err
	} else if !there {
		return nil, &refusal{run.ExitRefused, "there is no state in " + text.Quote(dir), nothingChanged, "interlock state check --state-dir DIR"}
	}
	return a.openStore(ctx)
}

func (a *app) stateCheckCommand() *cobra.Command {
	c := a.command(cobra.Command{
		Use:   "check",
		Short: "read the whole database and say what it is",
		Long: `check reads every page of the database. It exits 0 when it is whole, 7 when it is damaged: then
nothing is changed, and interlock state restore puts a copy back. It also says whether an older
copy was put in its place, from which number on fences are handed out, and which copies are kept.`,
		Example: "  interlock state check\n  interlock state check --json",
		Args:    atMost(0),
	}, func(ctx context.Context, _ []string) error {
		s, err := a.openWhatIsThere(ctx)
		if err != nil {
			return restorable(err)
		}
		r, err := s.Examine(ctx)
		if cerr := s.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return restorable(err)
		}
		return a.print(r, view.State(r))
	})
	a.jsonFlag(c, "print the report as one JSON object")
	return c
}

// restorable names the way out of damage.
func restorable(err error) error {
	if !errors.Is(err, store.ErrDamaged) {
		return err
	}
	return &refusal{run.ExitUnfit, err.Error(), "the files were left as they are; branches and issues are in their repositories",
		"interlock state restore FILE"}
}

func (a *app) stateBackupCommand() *cobra.Command {
	c := a.command(cobra.Command{
		Use:   "backup FILE",
		Short: "write a whole copy of the database to a new file",
		Long: `backup copies the database as it is at one instant, also while others work with it, to a new file
that only you can read. It is read back and on disk when the command exits 0. A file that is
there already is not touched.`,
		Example: "  interlock state backup /var/backups/interlock.db\n  interlock state backup --json ../interlock.db",
		Args:    one("FILE", "interlock state backup ../interlock.db"),
	}, func(ctx context.Context, args []string) error {
		file := a.path(args[0])
		s, err := a.openWhatIsThere(ctx)
		if err != nil {
			return restorable(err)
		}
		err = s.Backup(ctx, file)
		if cerr := s.Close(); err == nil {
			err = cerr
		}
		if errors.Is(err, fs.ErrExist) {
			return &refusal{run.ExitRefused, text.Quote(file) + " is there already; a backup is always a new file", nothingChanged,
				"interlock state backup OTHER-FILE"}
		}
		if err != nil {
			return err
		}
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		return a.print(map[string]any{"file": file, "bytes": info.Size()}, fmt.Sprintf("%s: %d bytes, read back whole\n", text.Line(file), info.Size()))
	})
	a.jsonFlag(c, "print the file and its size as one JSON object")
	return c
}

func (a *app) stateRestoreCommand() *cobra.Command {
	c := a.command(cobra.Command{
		Use:   "restore FILE",
		Short: "put a copy of the database back",
		Long: `restore reads FILE as a whole, keeps the database that is there beside it (state.db.replaced-1 and
so on), and puts a copy of FILE in its place. It refuses while any process has the state open (exit
code 6), and a copy that is damaged or newer. FILE is not changed.

Leases of the copy are void, and fences go on above all that were ever handed out in this state
directory, so nobody can act on what the copy says of the past. What was done outside since the
copy was made is looked for before it is done again.`,
		Example: "  interlock state restore /var/backups/interlock.db\n  interlock state restore --json ../interlock.db",
		Args:    one("FILE", "interlock state restore ../interlock.db"),
	}, func(ctx context.Context, args []string) error {
		dir, err := a.stateDir()
		if err != nil {
			return err
		}
		file := a.path(args[0])
		if _, err := os.Stat(file); err != nil {
			return &usageError{what: err.Error(), next: "interlock state restore FILE"}
		}
		done, err := sqlite.Restore(ctx, dir, file, sqlite.Options{})
		if errors.Is(err, store.ErrDamaged) {
			return &refusal{run.ExitUnfit, err.Error(), nothingChanged, "interlock state restore OTHER-FILE"}
		}
		if err != nil {
			return err
		}
		return a.print(done, view.Restored(done))
	})
	a.jsonFlag(c, "print what was done as one JSON object")
	return c
}
