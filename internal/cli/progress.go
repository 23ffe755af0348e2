package cli

import (
	"fmt"

	"interlock/internal/engine"
	"interlock/internal/text"
	"interlock/internal/view"
)

// progress returns what prints the engine's notices: one plain line each on stderr with the time
// since the command began, or one JSON object each on stdout.
func (a *app) progress() func(engine.Notice) {
	began := a.env.Now()
	return func(n engine.Notice) {
		a.mu.Lock()
		defer a.mu.Unlock()
		since := max(0, n.At.Sub(began))
		if a.json {
			_ = text.JSON(a.env.Stdout, map[string]view.Event{"event": view.EventOf(since, n)})
			return
		}
		fmt.Fprintln(a.env.Stderr, view.Progress(since, n))
	}
}
