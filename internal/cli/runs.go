package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"interlock/internal/run"
	"interlock/internal/store"
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
		Args:    cobra.NoArgs,
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
		if a.json {
			return writeList(a.env.Stdout, found)
		}
		return a.printRuns(found)
	})
	c.Flags().StringVar(&repo, "repo", "", "only runs of this repository (default all)")
	c.Flags().BoolVar(&live, "live", false, "only runs that are still to be driven")
	c.Flags().IntVar(&limit, "limit", 50, "at most so many")
	a.jsonFlag(c, "print one JSON array")
	return c
}

func (a *app) printRuns(found []run.Run) error {
	if len(found) == 0 {
		_, err := fmt.Fprintln(a.env.Stderr, "no runs; see interlock run --help")
		return err
	}
	t := newTable(a.env.Stdout, "RUN", "ISSUE", "STATE", "CHANGE", "UPDATED", "TITLE", "WHY")
	for _, r := range found {
		change := ""
		if r.Change != 0 {
			change = strconv.FormatInt(r.Change, 10)
		}
		t.row(r.ID, strconv.FormatInt(r.Issue, 10), string(r.State), change,
			age(a.env.Now().Sub(r.Updated)), short(r.Task.Title, 40), short(r.Reason, 60))
	}
	return t.flush()
}

// age says for people how long ago something was.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}
	return fmt.Sprintf("%dd ago", int(d.Hours()/24))
}

// findRun returns the run that is meant by its id, or by an issue's number: then the newest run
// of that issue of the repository.
func (a *app) findRun(ctx context.Context, s store.Store, repo, word string) (run.Run, error) {
	n, err := strconv.ParseInt(strings.TrimPrefix(word, "#"), 10, 64)
	if err != nil {
		r, err := s.Load(ctx, word)
		if isNotFound(err) {
			return run.Run{}, &refusal{run.ExitRefused, "there is no run " + quoteWord(word) + " in this state directory", nothingChanged, "interlock runs"}
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

// shownRun is a run with all that was recorded of it.
type shownRun struct {
	run.Run
	History store.History `json:"history"`
}

func (a *app) showCommand() *cobra.Command {
	var repo string
	c := a.command(cobra.Command{
		Use:     "show RUN|ISSUE",
		Short:   "show a run: where it stands, why, and what happened",
		Example: "  interlock show 1\n  interlock show 1 --repo ../other --json",
		Args:    one("run or issue", "interlock show 1"),
	}, func(ctx context.Context, args []string) error {
		s, err := a.openStore(ctx)
		if err != nil {
			return err
		}
		defer s.Close()
		r, err := a.findRun(ctx, s, repo, args[0])
		if err != nil {
			return err
		}
		h, err := s.History(ctx, r.ID)
		if err != nil {
			return err
		}
		if a.json {
			return writeJSON(a.env.Stdout, shownRun{r, h})
		}
		_, err = io.WriteString(a.env.Stdout, runText(r, h))
		return err
	})
	repoFlag(c, &repo)
	a.jsonFlag(c, "print the run and its history as one JSON object")
	return c
}

// runText is a run for people.
func runText(r run.Run, h store.History) string {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s: issue %d, %s\n", cleanLine(r.ID), r.Issue, cleanLine(r.Task.Title))
	field(&b, "state", string(r.State))
	field(&b, "why", r.Reason)
	field(&b, "next", r.Next)
	field(&b, "repo", r.RepoPath)
	field(&b, "base", strings.TrimSpace(r.Base.Branch+" "+r.Base.Commit.Hash))
	field(&b, "branch", r.Branch)
	field(&b, "head", r.Head.Hash)
	if r.Change != 0 {
		field(&b, "change", strconv.FormatInt(r.Change, 10))
	}
	field(&b, "attempts", fmt.Sprintf("%d of %d spent", r.Spent, r.Plan.Attempts))
	field(&b, "sandbox", r.Sandbox)
	for _, w := range r.Warnings {
		field(&b, "warning", w)
	}
	if r.Verdict != nil {
		b.WriteString("\n" + verdictText(*r.Verdict))
	}
	b.WriteString("\nevents:\n")
	for _, e := range h.Events {
		fmt.Fprintf(&b, "  %s  %s\n", day(e.At), cleanLine(e.Kind))
	}
	b.WriteString("effects:\n")
	for _, e := range h.Effects {
		fmt.Fprintf(&b, "  %-9s  %s\n", cleanLine(e.Status), cleanLine(e.Effect.Key))
	}
	b.WriteString("sessions:\n")
	for _, s := range h.Sessions {
		state := "running"
		if s.Ended {
			state = "ended"
		}
		fmt.Fprintf(&b, "  attempt %d  %s  %s  %s\n", s.Attempt, cleanLine(s.Kind), state, cleanLine(s.Log))
	}
	return b.String()
}
