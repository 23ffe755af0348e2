package cli

import (
	"slices"

	"interlock/internal/engine"
	"interlock/internal/progress"
	"interlock/internal/text"
	"interlock/internal/view"
)

// shown returns what shows progress on stderr: plain lines, with a live one under them on a
// terminal.
func (a *app) shown() *progress.Show {
	if a.show == nil {
		coloured := progress.Coloured(progress.When(a.color), progress.Terminal(a.env.Stderr) != nil, a.getenv)
		a.show = progress.New(a.env.Stderr, coloured, a.getenv)
	}
	return a.show
}

// hush takes the live line away, if there is one: what is printed now is the last word.
func (a *app) hush() {
	if a.show != nil {
		a.show.Close()
	}
}

// progress returns what prints the engine's notices: one plain line each on stderr with the time
// since the command began, or one JSON object each on stdout.
func (a *app) progress() func(engine.Notice) {
	began := a.env.Now()
	show := a.shown()
	return func(n engine.Notice) {
		a.mu.Lock()
		defer a.mu.Unlock()
		since := max(0, n.At.Sub(began))
		if a.json {
			_ = text.JSON(a.env.Stdout, map[string]view.Event{"event": view.EventOf(since, n)})
			return
		}
		show.Line(view.Progress(since, n))
		if phase := view.Phase(n); phase != "" {
			show.Phase(phase)
		}
	}
}

// colourFlag judges --color.
func (a *app) colourKnown() error {
	if slices.Contains(progress.Known(), a.color) {
		return nil
	}
	return &usageError{"--color " + text.Quote(a.color) + ": " + text.Known(a.color, progress.Known()...), "interlock --help"}
}
