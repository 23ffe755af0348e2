package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"interlock/internal/engine"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	notice := engine.Notice{At: began.Add(12300 * time.Millisecond), Run: "1-a", Issue: 1, Kind: "verifying", Text: "go test ./...\x1b", Attempt: 2}
	var out, errs bytes.Buffer
	a := &app{env: Env{Stdout: &out, Stderr: &errs, Now: func() time.Time { return began }}}
	say := a.progress()
	say(notice)
	if diff := cmp.Diff("[  12.3s] issue 1  verifying: go test ./...\\x1b\n", errs.String()); diff != "" {
		t.Errorf("line (-want +got):\n%s", diff)
	}
	a.json = true
	say(notice)
	want := `{"event":{"at":"2026-01-02T03:04:17.3Z","elapsed_seconds":12.3,"run":"1-a","issue":1,"attempt":2,"kind":"verifying","text":"go test ./...\u001b"}}` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	if strings.Count(errs.String(), "\n") != 1 {
		t.Errorf("with --json nothing is said on stderr: %q", errs.String())
	}
}
