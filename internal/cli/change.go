package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"interlock/internal/forge"
	"interlock/internal/forge/local"
	"interlock/internal/git"
	"interlock/internal/run"
	"interlock/internal/text"
	"interlock/internal/view"
)

func (a *app) changeCommand() *cobra.Command {
	return a.group(cobra.Command{
		Use:     "change",
		Short:   "read and accept proposed changes",
		Example: "  interlock change show 1\n  interlock change accept 1",
	}, a.changeList(), a.changeShow(), a.changeDiff(), a.changeAccept(), a.changeClose())
}

func (a *app) changeList() *cobra.Command {
	var repo, state string
	c := a.command(cobra.Command{
		Use:     "list",
		Short:   "list changes",
		Example: "  interlock change list\n  interlock change list --repo ../other --state all --json",
		Args:    atMost(0),
	}, func(ctx context.Context, _ []string) error {
		if !slices.Contains([]string{"open", "merged", "closed", "all"}, state) {
			return &usageError{"--state " + text.Quote(state) + ": " + text.Known(state, "open", "merged", "closed", "all"), "interlock change list --state all"}
		}
		f, err := a.restored(ctx, repo)
		if err != nil {
			return err
		}
		found, err := f.Changes(ctx, "")
		if err != nil {
			return err
		}
		found = slices.DeleteFunc(found, func(c forge.Change) bool { return state != "all" && c.State != state })
		if a.json {
			return text.List(a.env.Stdout, found)
		}
		if len(found) == 0 {
			_, err = fmt.Fprintln(a.env.Stderr, "no such changes; a run makes one: interlock run --help")
			return err
		}
		return view.Changes(a.env.Stdout, found)
	})
	repoFlag(c, &repo)
	c.Flags().StringVar(&state, "state", "open", "open, merged, closed or all")
	a.jsonFlag(c, "print one JSON array")
	return c
}

// patchMost bounds the diff that change show prints, in bytes.
const patchMost = 4 << 20

func (a *app) changeShow() *cobra.Command {
	var repo string
	c := a.command(cobra.Command{
		Use:     "show CHANGE",
		Short:   "show a change, what the checks said, and its diff",
		Example: "  interlock change show 1\n  interlock change show 1 --json",
		Args:    one("CHANGE", "interlock change show 1"),
	}, func(ctx context.Context, args []string) error {
		n, f, err := a.changeOf(ctx, repo, args[0])
		if err != nil {
			return err
		}
		change, err := f.Change(ctx, n)
		if err != nil {
			return err
		}
		shown := view.Proposal{Change: change}
		at := a.git.At(f.Location().CommonDir)
		if shown.Patch, shown.Truncated, err = patch(ctx, at, change); err != nil {
			return err
		}
		if shown.Verdict, err = a.verdict(ctx, change.Marker); err != nil {
			return err
		}
		return a.print(shown, shown.Text())
	})
	repoFlag(c, &repo)
	a.jsonFlag(c, "print the change as one JSON object")
	return c
}

// changeOf opens the forge of a repository, for a change of it.
func (a *app) changeOf(ctx context.Context, repo, word string) (int64, *local.Forge, error) {
	return a.numbered(ctx, repo, "change", word)
}

func (a *app) changeDiff() *cobra.Command {
	var repo string
	c := a.command(cobra.Command{
		Use:   "diff CHANGE",
		Short: "print what a change changes, and nothing else",
		Long: `diff prints the difference between the base that a change was verified on and its branch, for
reading: what could do something to a terminal is shown as escapes. To apply it use git, with the
two commits that --json names.`,
		Example: "  interlock change diff 1\n  interlock change diff 1 --json",
		Args:    one("CHANGE", "interlock change diff 1"),
	}, func(ctx context.Context, args []string) error {
		n, f, err := a.changeOf(ctx, repo, args[0])
		if err != nil {
			return err
		}
		change, err := f.Change(ctx, n)
		if err != nil {
			return err
		}
		shown := view.Difference{Change: n, Base: change.BaseAt, Head: change.HeadAt}
		if shown.Patch, shown.Truncated, err = patch(ctx, a.git.At(f.Location().CommonDir), change); err != nil {
			return err
		}
		if shown.Patch == "" {
			return &refusal{run.ExitRefused, fmt.Sprintf("change %d has no diff: its branch is gone, or changes nothing", n), nothingChanged,
				fmt.Sprintf("interlock change show %d", n)}
		}
		return a.print(shown, shown.Text())
	})
	repoFlag(c, &repo)
	a.jsonFlag(c, "print the two commits and the diff as one JSON object")
	return c
}

// patch returns the diff of a change. When its branch is gone there is nothing to show.
func patch(ctx context.Context, at *git.Plumb, c forge.Change) (string, bool, error) {
	if c.HeadAt == "" || c.BaseAt == "" {
		return "", false, nil
	}
	return at.Patch(ctx, c.BaseAt, c.HeadAt, patchMost)
}

// verdict returns what the checks said in the run that made a change; nil when this state
// directory knows no such run, for example because another installation made it.
func (a *app) verdict(ctx context.Context, id string) (*run.Verdict, error) {
	if id == "" {
		return nil, nil
	}
	s, err := a.openStore(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	r, err := s.Load(ctx, id)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return r.Verdict, nil
}

func (a *app) changeAccept() *cobra.Command {
	var repo string
	c := a.command(cobra.Command{
		Use:   "accept CHANGE",
		Short: "merge a change into its base branch",
		Long: `accept merges a change into its base. A checked-out base is moved only when the work tree is
clean; otherwise accept refuses with the command to type. Typed again after a crash it finishes what was left.`,
		Example: "  interlock change accept 1",
		Args:    one("CHANGE", "interlock change accept 1"),
	}, func(ctx context.Context, args []string) error {
		n, f, err := a.changeOf(ctx, repo, args[0])
		if err != nil {
			return err
		}
		change, err := f.Accept(ctx, n)
		before := change.State == "merged" && errors.As(err, new(*local.AcceptError)) // and its run may be open still
		if err != nil && !before {
			return err
		}
		if err := a.restore(ctx, f); err != nil {
			return err
		}
		closed, cerr := a.accepted(ctx, repo, change)
		switch {
		case cerr != nil:
			return fmt.Errorf("change %d is merged, but its run could not be closed: %w", n, cerr)
		case before && !closed:
			return err
		case a.json:
			return text.JSON(a.env.Stdout, change)
		case before:
			_, err = fmt.Fprintf(a.env.Stdout, "change %d was merged into %s before; its run %s is closed now\n", n, text.Line(change.Base), text.Line(change.Marker))
		default:
			_, err = fmt.Fprintf(a.env.Stdout, "change %d is merged into %s\n", n, text.Line(change.Base))
		}
		return err
	})
	repoFlag(c, &repo)
	a.jsonFlag(c, "print the change as one JSON object")
	return c
}

func (a *app) changeClose() *cobra.Command {
	var repo string
	c := a.command(cobra.Command{
		Use:   "close CHANGE",
		Short: "close a change without merging it",
		Long: `close turns a change down. Its branch stays, and its issue can be worked again. There is no way to
delete a change: a ref of one that is deleted by hand is taken for wiped, and put back.`,
		Example: "  interlock change close 1",
		Args:    one("CHANGE", "interlock change close 1"),
	}, func(ctx context.Context, args []string) error {
		n, f, err := a.changeOf(ctx, repo, args[0])
		if err != nil {
			return err
		}
		change, err := f.CloseChange(ctx, n)
		if is, lerr := f.Change(ctx, n); errors.Is(err, forge.ErrInvalid) && lerr == nil && is.State == "merged" {
			return &refusal{run.ExitRefused, fmt.Sprintf("change %d is not closed: it is merged already", n), nothingChanged,
				fmt.Sprintf("interlock change show %d", n)}
		}
		if err != nil {
			return err
		}
		if err := a.restore(ctx, f); err != nil {
			return err
		}
		return a.print(change, fmt.Sprintf("change %d is closed, not merged\n", n))
	})
	repoFlag(c, &repo)
	a.jsonFlag(c, "print the change as one JSON object")
	return c
}

// accepted closes the run that made a change. A change of a person, or of another installation,
// has no run here.
func (a *app) accepted(ctx context.Context, repo string, c forge.Change) (closed bool, err error) {
	if c.Marker == "" {
		return false, nil
	}
	e, done, err := a.engine(ctx, repo)
	if err != nil {
		return false, err
	}
	defer done()
	closed, err = e.Accepted(ctx, c.Marker)
	if isNotFound(err) {
		return false, nil
	}
	return closed, err
}
