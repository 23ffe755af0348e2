package policy_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"interlock/internal/policy"
)

var update = flag.Bool("update", false, "write the golden files")

// TestFiveMistakes: all are told at once, each with its line and what was meant.
func TestFiveMistakes(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/five.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, err = policy.Parse("config.yaml", policy.Repository, data)
	var problems policy.Problems
	if !errors.As(err, &problems) || len(problems) != 5 {
		t.Fatalf("%d problems: %v", len(problems), err)
	}
	got := err.Error() + "\n"
	if *update {
		if err := os.WriteFile("testdata/five.golden", []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/five.golden")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestParse: each key of a sound file arrives with its value and its line.
func TestParse(t *testing.T) {
	t.Parallel()
	f, err := policy.Parse("o.yaml", policy.General, []byte(`---
base: main # a remark
lane: build
checks: ["true", 'go test ./...', make check]
allow-no-tests: true
agent:
  command: |
    ~/bin/agent --task -
  env: [MODEL_KEY]
allow-paths:
  - .github/workflows/
sandbox: {level: landlock}
wait: 0
limits:
  attempts: 5
  agent-timeout: 1h30m
  idle-timeout: "90s"
  max-tasks: 0
  max-memory: 8GiB
state-dir: ~/state
repositories:
  /srv/a:
    lane: propose
    limits: {attempts: 9}
  ~/b:
`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"base": "main", "lane": "build", "checks": []string{"true", "go test ./...", "make check"}, "allow-no-tests": true,
		"agent.command": "~/bin/agent --task -\n", "agent.env": []string{"MODEL_KEY"}, "allow-paths": []string{".github/workflows/"},
		"sandbox.level": "landlock", "wait": time.Duration(0), "limits.attempts": int64(5), "limits.agent-timeout": 90 * time.Minute,
		"limits.idle-timeout": 90 * time.Second, "limits.max-tasks": int64(0), "limits.max-memory": "8GiB", "state-dir": "~/state",
	}
	got := map[string]any{}
	for name, found := range f.Values {
		got[name] = found.Value
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if at := f.Values["limits.agent-timeout"].At; at != "o.yaml:16" {
		t.Errorf("limits.agent-timeout is said to be at %s", at)
	}
	if len(f.Sections) != 2 || f.Sections[0].Path != "/srv/a" || f.Sections[0].Values["limits.attempts"].Value != int64(9) || len(f.Sections[1].Values) != 0 {
		t.Errorf("sections %+v", f.Sections)
	}
}

// TestEmpty: a file without settings is no mistake.
func TestEmpty(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "{}\n", "~\n", "limits:\nagent: {}\n", "\r\n"} {
		if f, err := policy.Parse("f", policy.Repository, []byte(text)); err != nil || len(f.Values) != 0 {
			t.Errorf("%q: %v, %v", text, f, err)
		}
	}
}

// mistakes are files with one mistake each: the line it is told at, words of what is told, and the
// key that was meant.
var mistakes = []struct {
	text  string
	line  int
	says  string
	meant string
}{
	// Names.
	{"cheks: [a]", 1, `"cheks" is no key`, "checks"},
	{"limits:\n  atempts: 1", 2, "limits.atempts", "limits.attempts"},
	{"attempts: 1", 1, "attempts", "limits.attempts"},
	{"agent-timeout: 1m", 1, "agent-timeout", "limits.agent-timeout"},
	{"agent_timeout: 1m", 1, "agent_timeout", "limits.agent-timeout"},
	{"command: x", 1, "command", "agent.command"},
	{"limit:\n  attempts: 1", 1, "limit", "limits"},
	{"Base: x", 1, "Base", "base"},
	{"limits.attempts: 1", 1, "written as a group", ""},
	{"zzzzzzzz: 1", 1, "known here are base, lane, checks", ""},
	{"true: 1", 1, `"true" is no key`, ""},
	{"? [a]\n: b", 1, "a key has to be a word", ""},
	{strings.Repeat("k", 70000) + "\n : 1", 1, "", ""}, // longer than YAML lets a key be
	// Kinds.
	{"lane: [a]", 1, "lane holds a list; wanted is propose or build", ""},
	{"lane: merge", 1, "lane merge: known are build and propose", ""},
	{"lane:", 1, "set to nothing", ""},
	{"base: 1", 1, `in quotes, as in "1"`, ""},
	{"checks: [true]", 1, `in quotes, as in "true"`, ""},
	{"checks:\n  - a: b", 2, "checks holds keys", ""},
	{"checks: go test", 1, "checks is a list, not a text", ""},
	{"checks: []", 1, "empty list", ""},
	{"checks: [' ']", 1, "is a shell line, and empty", ""},
	{`checks: ["a\x1bb"]`, 1, "cannot be seen", ""},
	{`checks: ["a\u202eb"]`, 1, "cannot be seen", ""},
	{`base: "a\0b"`, 1, "cannot be seen", ""},
	{`base: "a\u202eb"`, 1, "cannot be seen", ""},
	{`base: "a\u200bb"`, 1, "cannot be seen", ""},
	{`base: "a\u2028b"`, 1, "cannot be seen", ""},
	{`base: "a\u3164b"`, 1, "cannot be seen", ""},
	{`base: "a\u00a0b"`, 1, "cannot be seen", ""},
	{`base: "a\ufe0fb"`, 1, "cannot be seen", ""},
	{`checks: ["a\u2028b"]`, 1, "cannot be seen", ""},
	{`checks: ["a\u3164b"]`, 1, "cannot be seen", ""},
	{"allow-no-tests: yes", 1, "wanted is true or false", ""},
	{"limits: 3", 1, "limits is a group and holds a number; it takes attempts", ""},
	{"limits:\n  attempts: 0", 2, "from 1 to 1000", ""},
	{"limits:\n  attempts: 1.5", 2, "a whole number", ""},
	{"limits:\n  attempts: 1001", 2, "from 1 to 1000", ""},
	{"limits:\n  attempts: 99999999999999999999", 2, "whole number", ""},
	{"limits:\n  attempts: 010", 2, "from 1 to 1000", ""},
	{"limits:\n  attempts: 0x10", 2, "from 1 to 1000", ""},
	{"limits:\n  attempts: '3'", 2, "limits.attempts holds a text", ""},
	{"limits:\n  max-tasks: 3", 2, "or 0 for no limit", ""},
	{"limits:\n  agent-timeout: 30", 2, "needs a unit", ""},
	{"limits:\n  agent-timeout: 0s", 2, "from 1s to 720h", ""},
	{"limits:\n  idle-timeout: 1ns", 2, "from 1s to 720h", ""},
	{"limits:\n  check-timeout: 999ms", 2, "from 1s to 720h", ""},
	{"limits:\n  agent-timeout: 9999h", 2, "from 1s to 720h", ""},
	{"limits:\n  agent-timeout: soon", 2, "as in 30m", ""},
	{"limits:\n  max-memory: 101%", 2, "has 100%", ""},
	{"limits:\n  max-memory: 1MiB", 2, "at least 64MiB", ""},
	{"limits:\n  max-memory: lots", 2, "as in 75%", ""},
	{"just text", 1, "it holds a text", ""},
	{"- a", 1, "it holds a list", ""},
	// YAML that is not taken.
	{"lane: build\nlane: propose", 2, `"lane" is set twice, first in line 1`, ""},
	{"limits:\n  attempts: 1\n  attempts: 2", 3, `"limits.attempts" is set twice, first in line 2`, ""},
	{"limits: {attempts: 1}\nlimits: {attempts: 2}", 2, `"limits" is set twice`, ""},
	{"base: &b main", 1, "anchors", ""},
	{"base: *b", 1, "anchors", ""},
	{"<<: {lane: build}", 1, "merge keys", ""},
	{"lane: !!str build", 1, "tags", ""},
	{"lane: !local build", 1, "tags", ""},
	{"%YAML 1.2\n---\nlane: build", 1, "directive", ""},
	{"lane: build\n---\nbase: x", 2, "a second document", ""},
	{"limits:\n\tattempts: 1", 2, "a tab in the indentation", ""},
	{"\ufefflane: build", 1, "byte-order mark", ""},
	{"base: a\xffb", 1, "not UTF-8", ""},
	{"base: a\x01b", 1, "U+0001", ""},
	{"base: a\u2028b", 1, "U+2028", ""},
	{"base: a\u202eb", 1, "U+202E", ""},
	{"base: a\rlane: build", 1, "U+000D", ""},
	{"base: \"main\nlane: build", 1, "not YAML", ""},
	{"base: [main\nlane: build", 1, "not YAML", ""},
	{"base: a: b", 1, "in quotes", ""},
	{"base: @x", 1, "in quotes", ""},
	{"base: " + strings.Repeat("[", 20), 1, "", ""},
	{"base: " + strings.Repeat("[", 20000), 1, "not YAML", ""},
	// What a repository may not.
	{"sandbox:\n  level: none", 2, "sandbox.level is the operator's to set", ""},
	{"agent:\n  env: [MODEL_KEY]", 2, "agent.env is the operator's to set", ""},
	{"allow-paths: [.github/]", 1, "allow-paths is the operator's to set", ""},
	{"wait: 1h", 1, "wait is the operator's to set", ""},
	{"state-dir: /tmp/x", 1, "state-dir is the operator's to set", ""},
	{"sandbox: none", 1, "what it holds is the operator's to set", ""},
	{"repositories:\n  /a: {lane: build}", 1, "is no key", ""},
	{"agent:\n  command: ./agent.sh", 2, "bare name", ""},
	{"agent:\n  command: /bin/agent", 2, "bare name", ""},
	{"agent:\n  command: ~/agent", 2, "bare name", ""},
	{"agent:\n  command: \"'/home/x/key' a\"", 2, "bare name", ""},
	{"agent:\n  command: $HOME/agent", 2, "bare name", ""},
	{"agent:\n  command: '(cat ~/x)'", 2, "bare name", ""},
}

// TestMistakes: each is told at its line, with the words that name it and the key that was meant,
// and nothing else is told.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range mistakes {
		_, err := policy.Parse("f", policy.Repository, []byte(c.text))
		var problems policy.Problems
		if !errors.As(err, &problems) {
			t.Errorf("%.60q is taken", c.text)
			continue
		}
		p := problems[0]
		if p.Line != c.line || !strings.Contains(p.What, c.says) || p.Meant != c.meant {
			t.Errorf("%.60q: %s (meant %q), wanted is line %d, %q, meant %q", c.text, p, p.Meant, c.line, c.says, c.meant)
		}
		if len(problems) > 1 && c.says != "" {
			t.Errorf("%.60q: more is told than there is: %v", c.text, err)
		}
	}
}

// TestOperatorMistakes: what only the operator's file can get wrong.
func TestOperatorMistakes(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"agent:\n  command: ./agent.sh":                 "is relative",
		"agent:\n  env: [GITHUB_TOKEN]":                 "no forge credential",
		"agent:\n  env: [LD_PRELOAD]":                   "loaded into the program",
		"agent:\n  env: ['A=s3cret']":                   "name of a variable alone",
		"allow-paths: [/etc]":                           "a path inside the repository",
		"allow-paths: ['*']":                            "patterns are not known",
		"sandbox:\n  level: most":                       "known are full, landlock and none",
		"state-dir: here":                               "an absolute path",
		"repositories: [a]":                             "not a list",
		"repositories:\n  here: {lane: build}":          "is not the path of a repository",
		"repositories:\n  /a: build":                    "takes settings",
		"repositories:\n  /a:\n    state-dir: /b":       "for all repositories",
		"repositories:\n  /a:\n    lnae: build":         `did you mean "lane"`,
		"repositories:\n  /a: {}\n  /a: {}":             "set twice",
		"repositories:\n  /a: {repositories: {/b: {}}}": "is no key",
	} {
		_, err := policy.Parse("f", policy.General, []byte(text+"\n"))
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v, wanted is %q", text, err, says)
		}
	}
}

// TestMistakesBehindMistakes: a line that breaks the syntax hides no mistake behind it.
func TestMistakesBehindMistakes(t *testing.T) {
	t.Parallel()
	_, err := policy.Parse("f", policy.Repository, []byte("base: a: b\nlane: merge\nchecks: @x\nlimits:\n  attempts: 0\n"))
	var problems policy.Problems
	errors.As(err, &problems)
	var lines []int
	for _, p := range problems {
		lines = append(lines, p.Line)
	}
	if !slices.Equal(lines, []int{1, 2, 3, 5}) {
		t.Errorf("told of lines %v: %v", lines, err)
	}
}

// TestBig: 10 MB are refused, whatever they hold, and so is what is just too long.
func TestBig(t *testing.T) {
	t.Parallel()
	for _, data := range [][]byte{bytes.Repeat([]byte("a: b\n"), 2<<20), bytes.Repeat([]byte{'['}, policy.MaxBytes+1), make([]byte, 10_000_000)} {
		_, err := policy.Parse("f", policy.General, data)
		if err == nil || !strings.Contains(err.Error(), "more than the 1048576 bytes") {
			t.Errorf("%d bytes: %.200v", len(data), err)
		}
	}
	// As long as is allowed, and nothing but mistakes: told in part.
	_, err := policy.Parse("f", policy.General, bytes.Repeat([]byte("a\xff: b\n"), policy.MaxBytes/6))
	if err == nil || !strings.Contains(err.Error(), "there may be more") || len(err.Error()) > 64<<10 {
		t.Errorf("many mistakes are told in %d bytes", len(err.Error()))
	}
}

// FuzzParse: whatever is in a file, reading it ends, and it is either sound, so that every value
// is one of a key that its owner may set, or each mistake has a place in it.
func FuzzParse(f *testing.F) {
	five, err := os.ReadFile("testdata/five.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{string(five), "a: &x [*x]", "{", "a: |\n  b", "? - a\n: - b", "\xff", "<<: *a", policy.Commented(policy.General, nil)} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, operator bool) {
		whose := policy.Repository
		if operator {
			whose = policy.General
		}
		file, err := policy.Parse("f", whose, data)
		var problems policy.Problems
		if err != nil && (!errors.As(err, &problems) || len(problems) == 0) {
			t.Fatalf("an error without a mistake: %v", err)
		}
		for _, p := range problems {
			if p.Line < 1 || p.Line > bytes.Count(data, []byte("\n"))+2 || p.Column < 1 || p.What == "" {
				t.Fatalf("a mistake without a place: %+v", p)
			}
		}
		if err != nil {
			return
		}
		for name := range file.Values {
			if k := policy.Named(name); k == nil || !operator && (k.Right == policy.Operator || k.Right == policy.Machine) {
				t.Fatalf("%s is taken from the file", name)
			}
		}
		if _, err := policy.Settle(policy.Layers{Repository: file.Values}).Plan(); err != nil && !operator {
			t.Fatalf("a sound file gives no plan: %v", err)
		}
	})
}
