package view_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"interlock/internal/retention"
	"interlock/internal/view"
)

// TestWorkspaces: each row says whether the work is safe and when it goes; what is to be typed is said
// once, and only where nothing goes by itself.
func TestWorkspaces(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(d time.Duration) *time.Time { x := now.Add(d); return &x }
	found := []retention.Workspace{
		{Run: "1-a", Name: "1", Issue: 1, State: "in review", Bytes: 3 << 20, Made: now.Add(-time.Hour), Work: retention.Pushed, Why: "seen", Goes: at(time.Hour), Next: "interlock workspace drop 1-a"},
		{Run: "1-a", Name: "2", Work: retention.None, Goes: at(-time.Hour), Next: "interlock workspace drop 1-a"},
		{Run: "2-b", Name: "1", Work: retention.Open, Why: "no", Stays: "it may hold work", Next: "interlock workspace export 2-b 2-b-work"},
		{Run: "2-b", Name: "2", Work: retention.Imported, Kept: true, Stays: "kept", Next: "interlock workspace export 2-b 2-b-work"},
	}
	var b bytes.Buffer
	if err := view.Workspaces(&b, found, now); err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]string{{"RUN", "WORK", "GOES"}, {"3.0 MiB", "1h ago", "pushed", "2026-01-02", "seen"}, {"at the next sweep"},
		{"not imported", "not by time", "it may hold work; no"}, {"kept"}} {
		for _, w := range want {
			if line := strings.Split(b.String(), "\n")[i]; !strings.Contains(line, w) {
				t.Errorf("%q is not in %q", w, line)
			}
		}
	}
	if got, want := view.WorkspacesNext(found, func(s string) string { return s + " --state-dir x" }), "next:\n  interlock workspace export 2-b 2-b-work --state-dir x\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := view.WorkspacesNext(found[:2], nil); got != "" {
		t.Errorf("%q", got)
	}
}

// TestWorkspacesHarmNoTerminal puts hostile text wherever others can write.
func TestWorkspacesHarmNoTerminal(t *testing.T) {
	t.Parallel()
	const bad = "x\x1b[2J\u202e\u200b\u009b\a"
	w := retention.Workspace{Run: bad, Name: bad, Repo: bad, State: bad, Why: bad, Stays: bad, Next: bad, Dir: bad}
	var table bytes.Buffer
	if err := view.Workspaces(&table, []retention.Workspace{w}, time.Now()); err != nil {
		t.Fatal(err)
	}
	all := []retention.Workspace{w}
	for name, got := range map[string]string{
		"table": table.String(), "next": view.WorkspacesNext(all, func(s string) string { return s }), "dropped": view.Dropped(retention.Dropped{Workspaces: all}),
		"swept": view.Swept(retention.Swept{Workspaces: all, Left: []string{bad}}),
		"exported": view.Exported(retention.Exported{Run: bad, Dir: bad, Checked: bad, Left: []string{bad},
			Branches: []retention.Branch{{Name: bad, Commit: bad, What: bad}}}),
	} {
		if strings.ContainsAny(got, "\x1b\u202e\u200b\u009b\a") || got == "" {
			t.Errorf("%s can harm a terminal: %q", name, got)
		}
	}
}
