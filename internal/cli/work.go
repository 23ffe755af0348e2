package cli

import (
	"context"
	"io"

	"interlock/internal/engine"
	"interlock/internal/run"
	"interlock/internal/text"
	"interlock/internal/view"
)

// work drives one run and prints how it rests.
func (a *app) work(ctx context.Context, repo string, req engine.Request) error {
	r, err := a.drive(ctx, repo, req)
	return a.result(ctx, r, err)
}

// drive drives one run until it rests.
func (a *app) drive(ctx context.Context, repo string, req engine.Request) (run.Run, error) {
	e, done, err := a.engine(ctx, repo)
	if err != nil {
		return run.Run{}, err
	}
	defer done()
	req.Cwd = a.env.Dir
	defer a.sweepBeside(ctx)()
	return e.Work(ctx, req)
}

// result prints how a run rests, or returns the error that people are told instead.
func (a *app) result(ctx context.Context, r run.Run, err error) error {
	if err != nil && (r.ID == "" || !a.json) {
		return err
	}
	res := view.ResultOf(r)
	res.Next = carry(res.Next, a.args)
	if err != nil { // scripts get the run as it stands, with what stopped it
		p := explain(ctx, err, a.args)
		res.Reason, res.Next, res.Then, res.Exit = p.What, carry(p.Next, a.args), p.Then, p.Exit
	}
	return a.rest(r, res)
}

// rest prints a run that rests and sets the exit code that belongs to it.
func (a *app) rest(r run.Run, res view.Result) error {
	a.exit = res.Exit
	a.hush()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.json {
		return text.JSON(a.env.Stdout, map[string]view.Result{"result": res})
	}
	next := view.Next(r)
	for i := range next {
		next[i] = carry(next[i], a.args)
	}
	_, err := io.WriteString(a.env.Stdout, view.Rest(r, next...))
	return err
}
