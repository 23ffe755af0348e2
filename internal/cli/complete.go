package cli

import (
	"context"

	"interlock/internal/completion"
	"interlock/internal/forge"
	"interlock/internal/run"
	"interlock/internal/store"
)

// offers is what a shell is offered: no state is made for it.
func (a *app) offers() completion.Source {
	return completion.Source{
		Issues: func(ctx context.Context, repo string) ([]forge.Issue, error) {
			f, err := a.forge(ctx, repo)
			if err != nil {
				return nil, err
			}
			return f.Issues(ctx, forge.Filter{State: "all"})
		},
		Changes: func(ctx context.Context, repo string) ([]forge.Change, error) {
			f, err := a.forge(ctx, repo)
			if err != nil {
				return nil, err
			}
			return f.Changes(ctx, "")
		},
		Runs: func(ctx context.Context) ([]run.Run, error) {
			s, err := a.openWhatIsThere(ctx)
			if err != nil {
				return nil, err
			}
			defer s.Close()
			return s.List(ctx, store.Filter{Limit: 50})
		},
	}
}
