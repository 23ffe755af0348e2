package engine

import (
	"context"

	"interlock/internal/forge"
)

// restore puts back what was wiped or moved back on the forge, where the forge can tell, and says so.
// A look that fails keeps nobody from working: what was seen before stays kept for the next one.
func (e *Engine) restore(ctx context.Context) {
	f, ok := e.Forge.(forge.Restorer)
	if !ok {
		return
	}
	said, err := f.Restore(ctx, e.repo)
	for _, text := range said {
		e.Notify(Notice{At: e.Clock.Wall(), Kind: "forge", Text: text})
	}
	if err != nil && ctx.Err() == nil {
		e.Notify(Notice{At: e.Clock.Wall(), Kind: "warning", Text: err.Error()})
	}
}
