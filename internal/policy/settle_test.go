package policy_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"interlock/internal/policy"
	"interlock/internal/run"
	"interlock/internal/sandbox"
)

// values are those of a file that has to be sound.
func values(t *testing.T, name string, whose policy.Whose, text string) policy.Values {
	t.Helper()
	f, err := policy.Parse(name, whose, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f.Values
}

// flags are typed values by the names of their flags.
func flags(t *testing.T, typed map[string]string) policy.Values {
	t.Helper()
	all := policy.Values{}
	for _, k := range policy.Keys() {
		if s, ok := typed[k.Flag]; ok && k.Flag != "" {
			f, err := k.ReadTyped([]string{s})
			if err != nil {
				t.Fatal(err)
			}
			all[k.Name] = f
		}
	}
	return all
}

// TestOrder: a flag, the operator's section, the operator's word, the repository's, the default.
func TestOrder(t *testing.T) {
	t.Parallel()
	l := policy.Layers{
		Typed:      flags(t, map[string]string{"lane": "build"}),
		Here:       values(t, "here", policy.General, "lane: propose\nbase: a"),
		General:    values(t, "gen", policy.General, "lane: propose\nbase: b\nwait: 1m"),
		Repository: values(t, "rep", policy.Repository, "lane: propose\nbase: c\nallow-no-tests: true"),
	}
	want := []struct {
		name  string
		value any
		whose policy.Whose
		at    string
	}{
		{"lane", "build", policy.Typed, "--lane"}, {"base", "a", policy.Here, "here:2"}, {"wait", time.Minute, policy.General, "gen:3"},
		{"allow-no-tests", true, policy.Repository, "rep:3"}, {"limits.attempts", int64(run.Attempts), policy.Builtin, ""},
		{"agent.command", nil, policy.Builtin, ""},
	}
	s := policy.Settle(l)
	for _, w := range want {
		if got := s.Of(w.name); got.Value != w.value || got.Whose != w.whose || got.At != w.at {
			t.Errorf("%s is %v of %s at %q, wanted is %v of %s at %q", w.name, got.Value, got.Whose, got.At, w.value, w.whose, w.at)
		}
	}
	if notes := s.Of("base").Notes; len(notes) != 2 || !strings.Contains(notes[0], "gen:2 says b: comes after here:2") || !strings.Contains(notes[1], "rep:2 says c") {
		t.Errorf("of what does not count is said %q", notes)
	}
}

// TestLimits: a repository lowers the operator's limits and never raises them, in every unit.
func TestLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key                string
		here, general, rep string
		want               string
		whose              policy.Whose
	}{
		{"attempts", "", "", "2", "2", policy.Repository},
		{"attempts", "", "", "1000", "3", policy.Builtin},
		{"attempts", "", "5", "4", "4", policy.Repository},
		{"attempts", "", "5", "6", "5", policy.General},
		{"attempts", "9", "5", "2", "9", policy.Here},
		{"agent-timeout", "", "", "29m", "29m", policy.Repository},
		{"agent-timeout", "", "", "720h", "30m", policy.Builtin},
		{"idle-timeout", "", "1h", "2h", "1h", policy.General},
		{"check-timeout", "", "", "16m", "15m", policy.Builtin},
		{"max-tasks", "", "", "0", "4096", policy.Builtin}, // no limit is above all
		{"max-tasks", "", "0", "64", "64", policy.Repository},
		{"max-tasks", "", "64", "0", "64", policy.General},
		{"max-memory", "", "", "0", "75%", policy.Builtin},
		{"max-memory", "", "", "100%", "75%", policy.Builtin},
		{"max-memory", "", "", "999T", "75%", policy.Builtin},
		{"max-memory", "", "", "64MiB", "64MiB", policy.Repository},
		{"max-memory", "", "0", "50%", "50%", policy.Repository},
	} {
		in := func(s, name string, whose policy.Whose) policy.Values {
			if s == "" {
				return nil
			}
			return values(t, name, whose, "limits:\n  "+c.key+": "+s)
		}
		l := policy.Layers{Here: in(c.here, "here", policy.General), General: in(c.general, "gen", policy.General), Repository: in(c.rep, "rep", policy.Repository)}
		got := policy.Settle(l).Of("limits." + c.key)
		if policy.Show(got.Value) != c.want || got.Whose != c.whose {
			t.Errorf("%+v: %s of %s", c, policy.Show(got.Value), got.Whose)
		}
		if got.Whose != policy.Repository && (len(got.Notes) == 0 || !strings.Contains(strings.Join(got.Notes, "\n"), "rep:2 says "+c.rep)) {
			t.Errorf("%+v: why the repository's does not count is not said: %q", c, got.Notes)
		}
	}
}

// TestHostile: what a repository's values would weaken stays the operator's, even when they come
// by another way than a file that was parsed.
func TestHostile(t *testing.T) {
	t.Parallel()
	rep := policy.Values{
		"sandbox.level": {Value: "none", At: "rep:1"}, "agent.env": {Value: []string{"KEY"}, At: "rep:2"}, "allow-paths": {Value: []string{".github/"}, At: "rep:3"},
		"wait": {Value: time.Hour, At: "rep:4"}, "state-dir": {Value: "/tmp", At: "rep:5"}, "limits.max-tasks": {Value: int64(math.MaxInt64), At: "rep:6"},
	}
	for _, s := range policy.Settle(policy.Layers{Repository: rep}).List() {
		if s.Whose == policy.Repository {
			t.Errorf("%s is %v, by the repository", s.Key.Name, s.Value)
		}
	}
}

// TestConfined: a repository's lines run in the sandbox or not at all, and its agent is handed
// nothing of the operator's.
func TestConfined(t *testing.T) {
	t.Parallel()
	rep := values(t, "rep", policy.Repository, "checks: [make check]\nagent:\n  command: agent")
	for _, c := range []struct {
		typed           map[string]string
		command, checks bool
	}{
		{nil, true, true},
		{map[string]string{"sandbox": "landlock"}, true, true},
		{map[string]string{"sandbox": "none"}, false, false},
		{map[string]string{"env": "KEY"}, false, true},
	} {
		s := policy.Settle(policy.Layers{Typed: flags(t, c.typed), Repository: rep})
		if got := s.Of("agent.command").Value != nil; got != c.command {
			t.Errorf("%v: the repository's agent is used %t", c.typed, got)
		}
		if got := s.Of("checks").Value != nil; got != c.checks {
			t.Errorf("%v: the repository's checks are used %t", c.typed, got)
		}
		p, err := s.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(p.Theirs, "agent.command") != c.command || slices.Contains(p.Theirs, "checks") != c.checks {
			t.Errorf("%v: recorded as the repository's: %q", c.typed, p.Theirs)
		}
		if missing := s.Missing(); (missing == nil) != (c.command && c.checks) || missing != nil && !strings.Contains(missing.Error(), "rep:") {
			t.Errorf("%v: missing: %v", c.typed, missing)
		}
	}
}

// TestOnto: a run goes on with what it was started with, whatever the files say by now; only flags
// change it, and none of them lets a repository's line out of the sandbox.
func TestOnto(t *testing.T) {
	t.Parallel()
	start, err := policy.Settle(policy.Layers{
		General:    values(t, "gen", policy.General, "limits: {attempts: 7}"),
		Repository: values(t, "rep", policy.Repository, "checks: [make check]\nagent: {command: agent}"),
	}).Plan()
	if err != nil {
		t.Fatal(err)
	}
	later := policy.Layers{
		General:    values(t, "gen", policy.General, "limits: {attempts: 1}\nagent: {command: other, env: [KEY]}"),
		Repository: values(t, "rep", policy.Repository, "checks: ['true']\nlane: build"),
	}
	got, err := policy.Settle(later).Onto(start)
	if diff := cmp.Diff(start, got); err != nil || diff != "" {
		t.Errorf("%v (-start +goes on):\n%s", err, diff)
	}
	later.Typed = flags(t, map[string]string{"checks": "go test ./...", "attempts": "9"})
	want := start
	want.Checks, want.Attempts, want.Theirs = []string{"go test ./..."}, 9, []string{"agent.command"}
	got, err = policy.Settle(later).Onto(start)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("with flags: %v (-want +got):\n%s", err, diff)
	}
	for _, typed := range []map[string]string{{"sandbox": "none"}, {"env": "KEY"}} {
		later.Typed = flags(t, typed)
		if p, err := policy.Settle(later).Onto(start); err == nil {
			t.Errorf("%v goes on with %+v", typed, p)
		}
	}
	later.Typed = flags(t, map[string]string{"sandbox": "none", "command": "mine", "checks": "true"})
	if p, err := policy.Settle(later).Onto(start); err != nil || p.Sandbox != "none" || p.Theirs != nil {
		t.Errorf("with the operator's own lines: %+v, %v", p, err)
	}
}

// TestTable: the table holds together, and its words are those of the packages that obey them.
func TestTable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range policy.Keys() {
		if seen[k.Name] || seen["--"+k.Flag] && k.Flag != "" || k.Short == "" || strings.HasSuffix(k.Short, ".") {
			t.Errorf("%s: twice, or without a description", k.Name)
		}
		seen[k.Name], seen["--"+k.Flag] = true, true
		if (k.Right != policy.Both) != (k.Why != "") && k.Right != policy.Lower {
			t.Errorf("%s: its right and the reason for it do not go together", k.Name)
		}
		if k.Default == "" && k.Else == "" {
			t.Errorf("%s: what holds when it is not set is not said", k.Name)
		}
	}
	levels := []string{string(sandbox.Full), string(sandbox.Landlock), string(sandbox.None)}
	if diff := cmp.Diff(levels, policy.Named("sandbox.level").Words); diff != "" {
		t.Errorf("levels (-sandbox +policy):\n%s", diff)
	}
	p, err := policy.Settle(policy.Layers{}).Plan()
	if err != nil || p.Attempts != run.Attempts || p.AgentTotal != run.AgentTotal || p.AgentIdle != run.AgentIdle || p.CheckTotal != run.CheckTotal ||
		p.MaxTasks != run.MaxTasks || p.MaxMemory <= 0 || p.Lane != run.LanePropose || p.Sandbox != string(sandbox.Full) {
		t.Errorf("the defaults are not those of package run: %+v, %v", p, err)
	}
}
