package view_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"interlock/internal/forge"
	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/view"
)

func ptr[T any](v T) *T { return &v }

// reviewed is a run that is in review.
func reviewed() run.Run {
	head := run.Commit{Hash: strings.Repeat("a", 40), Tree: strings.Repeat("b", 40)}
	return run.Run{
		ID: "1-abc", Issue: 1, Task: run.Task{Title: "Sum is wrong"}, State: run.InReview, Reason: "change 2 waits for a reviewer",
		RepoPath: "/tmp/my repo", Base: run.Base{Branch: "main", Commit: run.Commit{Hash: strings.Repeat("c", 40)}},
		Branch: "interlock/issue-1", Head: head, Change: 2, Attempt: 1, Spent: 1, Plan: run.Plan{Attempts: 3}, Sandbox: "full",
		Verdict: &run.Verdict{Passed: true, Head: head, Tests: ptr(3), Sandbox: "full",
			Commands: []run.Command{{Line: "go test ./...", Tests: ptr(3), Duration: 1200 * time.Millisecond}}},
	}
}

func TestResult(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(view.ResultOf(reviewed()))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"issue":1,"run":"1-abc","state":"in review","change":2,"head":"` + strings.Repeat("a", 40) + `","branch":"interlock/issue-1",` +
		`"base":"main","base_commit":"` + strings.Repeat("c", 40) + `","checks":{"passed":true,"tests":3},"repo":"/tmp/my repo","sandbox":"full",` +
		`"attempts":1,"exit":0,"reason":"change 2 waits for a reviewer","next":"interlock change show --repo '/tmp/my repo' 2"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

// TestResultExit: only what was asked for is a success.
func TestResultExit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state run.State
		exit  int
		want  int
	}{
		{run.InReview, 0, 0}, {run.Done, 0, 0},
		{run.Parked, 8, 8}, {run.Parked, 0, 1}, {run.Canceled, 0, 1}, {run.Implementing, 0, 1},
	} {
		if got := view.ResultOf(run.Run{State: c.state, Exit: c.exit}); got.Exit != c.want || got.Next == "" || got.Checks != nil {
			t.Errorf("%s with exit %d: %+v", c.state, c.exit, got)
		}
	}
}

func TestRest(t *testing.T) {
	t.Parallel()
	want := `issue 1: in review, change 2 waits for a reviewer
  run       1-abc
  base      main ` + strings.Repeat("c", 40) + `
  branch    interlock/issue-1
  head      ` + strings.Repeat("a", 40) + `
  change    2
  sandbox   full
checks: passed at ` + strings.Repeat("a", 40) + `, 3 tests ran (sandbox full)
  go test ./...  exit 0, 3 tests, 1.2s
next:
  interlock change show --repo '/tmp/my repo' 2
  interlock change accept --repo '/tmp/my repo' 2
`
	if diff := cmp.Diff(want, view.Rest(reviewed(), view.Next(reviewed())...)); diff != "" {
		t.Errorf("rest (-want +got):\n%s", diff)
	}
}

// TestNothingHarmsATerminal puts hostile text wherever others can write.
func TestNothingHarmsATerminal(t *testing.T) {
	t.Parallel()
	const bad = "x\x1b[2J\u202e\u200b\u009b\a"
	r := reviewed()
	r.ID, r.Reason, r.Next, r.RepoPath, r.Branch, r.Task.Title, r.Base.Branch, r.Sandbox, r.Warnings = bad, bad, bad, bad, bad, bad, bad, bad, []string{bad}
	r.Verdict.Why, r.Verdict.Sandbox, r.Verdict.Head.Hash = bad, bad, bad
	r.Verdict.Commands = []run.Command{{Line: bad, Why: bad}}
	h := store.History{
		Events: []store.Record{{Kind: bad, Data: []byte(`{"reason":"x\u001b[2J\u202e"}`)}}, Effects: []store.EffectRecord{{Status: bad, Effect: run.Effect{Key: bad}}},
		Sessions: []store.Session{{Kind: bad, Log: bad}},
	}
	is := forge.Issue{Number: 1, Title: bad, Body: bad + "\n" + bad, State: bad, Labels: []string{bad}, Assignees: []string{bad}, Author: bad,
		Comments: []forge.Comment{{Author: bad, Body: bad}}}
	c := forge.Change{Number: 1, Title: bad, Body: bad, State: bad, Head: bad, HeadAt: bad, Base: bad, BaseAt: bad, Author: bad, Marker: bad}
	var tables bytes.Buffer
	for _, err := range []error{
		view.Runs(&tables, []view.Listed{{Run: r}}, time.Now()), view.Issues(&tables, []forge.Issue{is}), view.Changes(&tables, []forge.Change{c}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, got := range map[string]string{
		"tables": tables.String(), "run": view.Recorded{Run: r, History: h}.Text(), "rest": view.Rest(r, view.Next(r)...), "issue": view.Issue(is),
		"change":            view.Proposal{Change: c, Verdict: r.Verdict, Patch: bad, Truncated: true}.Text(),
		"change of another": view.Proposal{Change: c}.Text(),
	} {
		if strings.ContainsAny(got, "\x1b\u202e\u200b\u009b\a") {
			t.Errorf("%s can harm a terminal: %q", name, got)
		}
	}
}

func TestAges(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var b bytes.Buffer
	var runs []view.Listed
	for _, ago := range []time.Duration{-time.Second, 59 * time.Second, time.Hour, 47 * time.Hour, 72 * time.Hour} {
		runs = append(runs, view.Listed{Run: run.Run{ID: "r", Updated: now.Add(-ago)}})
	}
	if err := view.Runs(&b, runs, now); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" 0s ago", " 59s ago", " 1h ago", " 47h ago", " 3d ago"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

// TestEventsTellWhy: an event is shown with the effect it settled, or with its reason.
func TestEventsTellWhy(t *testing.T) {
	t.Parallel()
	got := view.Recorded{Run: reviewed(), History: store.History{Events: []store.Record{
		{Kind: "settled", Data: []byte(`{"key":"push:b:1","found":true}`)},
		{Kind: "parked", Data: []byte(`{"reason":"no more attempts"}`)},
		{Kind: "broken", Data: []byte(`{`)},
	}}}.Text()
	for _, want := range []string{"settled  push:b:1 (found there already)\n", "parked  no more attempts\n", "broken\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}
