package sandbox_test

import (
	"strings"
	"testing"

	"interlock/internal/sandbox"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, level := range []sandbox.Level{sandbox.None, sandbox.Full} {
		for _, c := range []struct {
			script, signal string
			exit           int
		}{
			{"echo hello; exit 0", "", 0}, {"echo hello >&2; exit 7", "", 7},
			{"echo hello; kill -9 $$", "SIGKILL", -1}, {"echo hello; kill -TERM $$", "SIGTERM", -1},
		} {
			t.Run(string(level)+"/"+c.script, func(t *testing.T) {
				t.Parallel()
				f := inspect()
				if level == sandbox.Full {
					f = needFull(t)
				}
				r, out := newPlace(t, f, level, c.script).run()
				if r.Exit != c.exit || r.Signal != c.signal || r.Why != "exit" {
					t.Errorf("got %+v\n%s", r, out)
				}
				if strings.TrimSpace(out) != "hello" {
					t.Errorf("log: %q", out)
				}
			})
		}
	}
}
