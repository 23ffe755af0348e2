package outgoing

import (
	"context"

	"interlock/internal/forge"
	"interlock/internal/git"
)

// Redacting returns a forge to which no known secret is written in a comment or in the text of a
// change: what has to be said is said without it.
func (g *Guard) Redacting(f forge.Forge) forge.Forge { return redacting{f, g} }

type redacting struct {
	forge.Forge
	guard *Guard
}

// SetMark implements forge.Forge.
func (f redacting) SetMark(ctx context.Context, issue int64, m forge.Mark) error {
	m.Text = f.guard.Redact(m.Text)
	return f.Forge.SetMark(ctx, issue, m)
}

// Comment implements forge.Forge.
func (f redacting) Comment(ctx context.Context, issue int64, key, body string) (forge.Comment, error) {
	return f.Forge.Comment(ctx, issue, key, f.guard.Redact(body))
}

// Restore implements forge.Restorer, where the forge does.
func (f redacting) Restore(ctx context.Context, repo *git.Repo) ([]string, error) {
	if r, ok := f.Forge.(forge.Restorer); ok {
		return r.Restore(ctx, repo)
	}
	return nil, nil
}
