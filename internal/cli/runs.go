package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"interlock/internal/reason"
	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/store/sqlite"
	"interlock/internal/text"
	"interlock/internal/view"
)

func isNotFound(err error) bool { return errors.Is(err, store.ErrNotFound) }

func (a *app) runsCommand() *cobra.Command {
	var repo string
	var live bool
	var limit int
	c := a.command(cobra.Command{
		Use:     "runs",
		Short:   "list runs, newest first",
		Example: "  interlock runs\n  interlock runs --repo . --live --json",
		Args:    atMost(0),
	}, func(ctx context.Context, _ []string) error {
		if limit < 1 {
			return &usageError{"--limit has to be at least 1", "interlock runs --limit 20"}
		}
		filter := store.Filter{Live: live, Limit: limit}
		if repo != "" {
			at, err := a.locate(ctx, repo)
			if err != nil {
				return err
			}
			filter.Repo = at.Key
		}
		s, err := a.openStore(ctx)
		if err != nil {
			return err
		}
		defer s.Close()
		found, err := s.List(ctx, filter)
		if err != nil {
			return err
		}
		rows := make([]view.Listed, len(found))
		for i, r := range found {
			rows[i].Run = r
			if rows[i].Stopped, err = reason.Stopped(ctx, s, r); err != nil {
				return err
			}
		}
		if a.json {
			return text.List(a.env.Stdout, rows)
		}
		if len(found) == 0 {
			_, err = fmt.Fprintln(a.env.Stderr, "no runs; see interlock run --help")
			return err
		}
		return view.Runs(a.env.Stdout, rows, a.env.Now())
	})
	c.Flags().StringVar(&repo, "repo", "", "only runs of this repository (default all)")
	c.Flags().BoolVar(&live, "live", false, "only runs that are still to be driven")
	c.Flags().IntVar(&limit, "limit", 50, "at most so many")
	a.jsonFlag(c, "print one JSON array")
	return c
}

// withRun opens the store and finds the run that is meant.
func (a *app) withRun(ctx context.Context, repo, word string, do func(*sqlite.Store, run.Run) error) error {
	s, err := a.openStore(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	r, err := a.findRun(ctx, s, repo, word)
	if err != nil {
		return err
	}
	return do(s, r)
}

// findRun returns the run that is meant by its id, or by an issue's number: then the newest run
// of that issue of the repository.
func (a *app) findRun(ctx context.Context, s store.Store, repo, word string) (run.Run, error) {
	n, err := strconv.ParseInt(strings.TrimPrefix(word, "#"), 10, 64)
	if err != nil {
		r, err := s.Load(ctx, word)
		if isNotFound(err) {
			return run.Run{}, &refusal{run.ExitRefused, "there is no run " + text.Quote(word) + " in this state directory", nothingChanged, "interlock runs"}
		}
		return r, err
	}
	at, err := a.locate(ctx, repo)
	if err != nil {
		return run.Run{}, err
	}
	found, err := s.List(ctx, store.Filter{Repo: at.Key, Issue: n, Limit: 1})
	if err != nil {
		return run.Run{}, err
	}
	if len(found) == 0 {
		return run.Run{}, &refusal{run.ExitRefused, fmt.Sprintf("issue %d of this repository has no run in this state directory", n),
			nothingChanged, "interlock runs"}
	}
	return s.Load(ctx, found[0].ID)
}

func (a *app) showCommand() *cobra.Command {
	var repo string
	c := a.command(cobra.Command{
		Use:     "show RUN|ISSUE",
		Short:   "show a run: where it stands, why, and what happened",
		Example: "  interlock show 1\n  interlock show 1 --repo ../other --json",
		Args:    one("run or issue", "interlock show 1"),
	}, func(ctx context.Context, args []string) error {
		return a.withRun(ctx, repo, args[0], func(s *sqlite.Store, r run.Run) error {
			r, err := a.reviewed(ctx, repo, r)
			if err != nil {
				return err
			}
			return a.showRun(ctx, s, r)
		})
	})
	repoFlag(c, &repo)
	a.jsonFlag(c, "print the run and its history as one JSON object")
	return c
}

func (a *app) showRun(ctx context.Context, s store.Store, r run.Run) error {
	h, err := s.History(ctx, r.ID)
	if err != nil {
		return err
	}
	shown := view.Recorded{Run: r, History: h}
	if shown.Stopped, err = reason.Stopped(ctx, s, r); err != nil {
		return err
	}
	shown.Next = carry(shown.Next, a.args)
	if shown.Stopped != "" {
		shown.Next = carry(fmt.Sprintf("interlock run --repo %s --issue %d", text.Quote(r.RepoPath), r.Issue), a.args)
	}
	return a.print(shown, shown.Text())
}
