package sandbox_test

import (
	"io"
	"strings"
	"testing"

	"interlock/internal/sandbox"
	"interlock/internal/secret"
)

// redact is how the program of these tests keeps secrets out of a log.
func redact(to io.Writer, secrets []string) io.WriteCloser {
	var values []secret.Value
	for _, s := range secrets {
		values = append(values, secret.Value{Text: s})
	}
	return secret.New(nil, values...).Redactor(to)
}

// TestSecretsAreKeptOutOfTheLog: also one that comes in two writes, and no half of one where the log is cut.
func TestSecretsAreKeptOutOfTheLog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit int64
		want  string
	}{
		"whole":               {0, "first [redacted] second [redacted]\nlast own-val"},
		"cut within the mark": {12, "first [redac\n"},
		"cut behind it":       {18, "first [redacted] s\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, inspect(), sandbox.None, `printf 'first own-va'; sleep 0.3; printf 'lue-4711 second own-value-4711\nlast own-val'`)
			p.spec.Secrets, p.spec.Limits.Log = []string{"own-value-4711", "short"}, c.limit
			_, out := p.run()
			if !strings.HasPrefix(out, c.want) || strings.Contains(out, "own-value") {
				t.Errorf("log %q, want %q", out, c.want)
			}
		})
	}
}
