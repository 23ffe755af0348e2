package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"interlock/internal/engine"
	"interlock/internal/follow"
	"interlock/internal/git"
	"interlock/internal/lease"
	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/text"
	"interlock/internal/view"
)

func (a *app) watchCommand() *cobra.Command {
	var repo string
	c := a.command(cobra.Command{
		Use:   "watch [RUN|ISSUE]",
		Short: "follow a run until it rests, and end with its exit code",
		Long: `watch prints what was recorded of a run and what is recorded from now on, until it rests; then it
says how, and exits as "interlock run" did. Without an argument it follows the newest run that is
being driven. It changes nothing: Ctrl-C ends the watch, not the run. A run that nobody drives any
more ends the watch with exit 1, and the command that goes on.`,
		Example: "  interlock watch\n  interlock watch 1\n  interlock watch 1 --json",
		Args:    atMost(1),
	}, func(ctx context.Context, args []string) error {
		s, err := a.openStore(ctx)
		if err != nil {
			return err
		}
		defer s.Close()
		r, err := a.watched(ctx, s, repo, args)
		if err != nil {
			return err
		}
		self, err := lease.Self(ctx, s)
		if err != nil {
			return err
		}
		r, driven, err := a.watcher(s, self).Follow(ctx, r.ID)
		a.hush()
		if errors.Is(err, ErrInterrupted) {
			return &refusal{run.ExitInterrupted, "the watch is over because you asked for it; run " + r.ID + " goes on", nothingChanged, "interlock watch " + r.ID}
		}
		if err == nil && !driven {
			return &refusal{run.ExitRefused, fmt.Sprintf("run %s of issue %d is %s, and nobody drives it any more", r.ID, r.Issue, r.State), workKept,
				fmt.Sprintf("interlock run --repo %s --issue %d", text.Quote(r.RepoPath), r.Issue)}
		}
		if err != nil {
			return err
		}
		if r, err = a.reviewed(ctx, repo, r); err != nil {
			return err
		}
		return a.result(ctx, r, nil)
	})
	repoFlag(c, &repo)
	a.jsonFlag(c, "print one JSON object per event, and the result last")
	return c
}

// watched returns the run that is to be followed: the one that is meant, or the newest live one, of
// the repository where there is one.
func (a *app) watched(ctx context.Context, s store.Store, repo string, args []string) (run.Run, error) {
	if len(args) == 1 {
		return a.findRun(ctx, s, repo, args[0])
	}
	filter := store.Filter{Live: true, Limit: 1}
	at, err := a.locate(ctx, repo)
	switch _, typed := flagValue(a.args, "--repo"); {
	case err == nil:
		filter.Repo = at.Key
	case typed || !errors.Is(err, git.ErrNotRepository):
		return run.Run{}, err
	}
	found, err := s.List(ctx, filter)
	if err == nil && len(found) == 0 {
		err = &refusal{run.ExitRefused, "no run is under way here", nothingChanged, "interlock runs"}
	}
	if err != nil {
		return run.Run{}, err
	}
	return found[0], nil
}

// watcher tells what is recorded, as the engine tells what it does.
func (a *app) watcher(s store.Store, self run.Holder) *follow.Watcher {
	show := a.shown()
	return &follow.Watcher{Store: s, Self: self,
		Step: func(r run.Run, e store.Record) {
			n := engine.Notice{At: e.At, Run: r.ID, Issue: r.Issue, Kind: e.Kind, Text: e.Detail()}
			since := max(0, e.At.Sub(r.Created))
			if a.json {
				_ = text.JSON(a.env.Stdout, map[string]view.Event{"event": view.EventOf(since, n)})
				return
			}
			show.Line(view.Progress(since, n))
		},
		Stands: func(r run.Run) {
			if !a.json && r.State.Live() {
				show.Phase(fmt.Sprintf("issue %d  %s", r.Issue, r.Reason))
			}
		},
	}
}
