package policy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"interlock/internal/policy"
)

// full repeats a piece, numbered where it has a verb, until a file is as long as may be.
func full(head, piece, tail string) []byte {
	var b strings.Builder
	b.WriteString(head)
	for i := 0; b.Len() < policy.MaxBytes-len(tail)-64; i++ {
		if strings.Contains(piece, "%d") {
			fmt.Fprintf(&b, piece, i)
		} else {
			b.WriteString(piece)
		}
	}
	b.WriteString(tail)
	return []byte(b.String())
}

// TestManyMistakes: of a file that is as long as may be and nothing but mistakes the first hundred
// are told, then that there may be more; it is not looked at any further, and the words are few.
func TestManyMistakes(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"unknown keys": full("", "k%d: 1\n", ""), "one line": full("{", "a%d: 1,", "}"), "anchors": full("", "k%d: &a%d 1\n", ""),
		"aliases": full("base: &a x\n", "k%d: *a\n", ""), "tags": full("", "k%d: !x b\n", ""), "one key": full("", "base: b\n", ""),
		"bytes": full("", "\xff\n", ""), "directives": full("", "%X\n", ""), "tabs": full("", "\ta: b\n", ""),
		"sections": full("repositories:\n  /a:\n", "    k%d: 1\n", ""), "empty lines": []byte("checks: [" + strings.Repeat("'',", 250) + "]"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := policy.Parse("f", policy.General, data)
			var problems policy.Problems
			if !errors.As(err, &problems) || len(problems) != 101 || problems.Count() != 100 {
				t.Fatalf("%d are told, %d of them mistakes", len(problems), problems.Count())
			}
			last := problems[100]
			if !strings.HasPrefix(last.What, "there may be more mistakes") || last.Line < problems[99].Line || !strings.HasSuffix(err.Error(), last.String()) {
				t.Errorf("ends with %v", last)
			}
			if n := len(err.Error()); n > 64<<10 {
				t.Errorf("told in %d bytes", n)
			}
		})
	}
	_, err := policy.Parse("f", policy.General, []byte("checks: ["+strings.Repeat("'',", 100)+"]"))
	var problems policy.Problems
	if !errors.As(err, &problems) || len(problems) != 100 || strings.Contains(err.Error(), "there may be more") {
		t.Errorf("of a hundred %d are told: %.200v", len(problems), err)
	}
}

// TestTooLong: what is too long to be meant is one mistake, which repeats little of it.
func TestTooLong(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 500_000)
	for text, says := range map[string]string{
		string(full("checks: [", `"x%d",`, "]")):                   "checks holds ",
		"checks: [" + strings.Repeat("a,", 257) + "]":              "checks holds 257 entries: at most 256 are taken",
		"agent: {env: [" + strings.Repeat("A,", 1001) + "]}":       "agent.env holds 1001 entries: at most 1000 are taken",
		"allow-paths: [" + strings.Repeat("a,", 1001) + "]":        "allow-paths holds 1001 entries",
		string(full("repositories:\n", "  /a%d:\n", "")):           "repositories: at most 1000 are taken",
		"checks: [" + strings.Repeat("a", 16<<10+1) + "]":          "a shell line of 16385 bytes: at most 16384 are taken",
		"agent: {command: " + strings.Repeat("a", 16<<10+1) + "}":  "a shell line of 16385 bytes: at most 16384 are taken",
		"base: " + strings.Repeat("a", 4<<10+1):                    "has 4097 bytes: at most 4096 are taken",
		"state-dir: /" + strings.Repeat("a", 4<<10):                "has 4097 bytes",
		"lane: " + strings.Repeat("a", 4<<10):                      "known are build and propose",
		"limits: {attempts: " + strings.Repeat("1", 100_000) + "}": "wanted is a whole number",
		"limits: {agent-timeout: " + long + "}":                    "wanted is a duration",
		"limits: {max-memory: " + long + "}":                       "as in 75%",
		"agent: {env: [GIT_" + long + "]}":                         "no forge credential",
		"allow-paths: ['/" + long + "']":                           "",
		"? " + long + "\n: 1":                                      "is no key",
		"? " + long + "\n: {a: 1}\n":                               "is no key",
	} {
		_, err := policy.Parse("f", policy.General, []byte(text))
		var problems policy.Problems
		if !errors.As(err, &problems) || len(problems) != 1 || !strings.Contains(err.Error(), says) || len(err.Error())+len(problems[0].Key) > 1500 {
			t.Errorf("%.60q: %d bytes, %d mistakes: %.300v; wanted is %q", text, len(fmt.Sprint(err)), len(problems), err, says)
		}
	}
	for _, text := range []string{
		"checks: [" + strings.Repeat("a,", 256) + "]", "checks: [" + strings.Repeat("a", 16<<10) + "]",
		"agent: {command: " + strings.Repeat("a", 16<<10) + "}", "allow-paths: [" + strings.Repeat("a,", 1000) + "]",
	} {
		if _, err := policy.Parse("f", policy.General, []byte(text)); err != nil {
			t.Errorf("%.60q: %v", text, err)
		}
		if err := accepts(t, policy.General, text); err != nil {
			t.Errorf("%.60q: the schema: %.200v", text, err)
		}
	}
	for _, text := range []string{
		"checks: [" + strings.Repeat("a,", 257) + "]", "checks: [" + strings.Repeat("a", 16<<10+1) + "]",
		"agent: {command: " + strings.Repeat("a", 16<<10+1) + "}", "base: " + strings.Repeat("a", 4<<10+1),
	} {
		if accepts(t, policy.General, text) == nil {
			t.Errorf("%.60q: the schema accepts it", text)
		}
	}
	if _, err := policy.Named("checks").ReadTyped(make([]string, 257)); err == nil || !strings.Contains(err.Error(), "--checks holds 257 entries") {
		t.Errorf("257 checks that were typed: %v", err)
	}
	if _, err := policy.Named("agent.command").ReadTyped([]string{strings.Repeat("a", 16<<10+1)}); err == nil || !strings.Contains(err.Error(), "put it into a script") {
		t.Errorf("a long line that was typed: %v", err)
	}
}

// TestPrograms: however many lines have no program, few are told, a long one only by its beginning,
// and a command that is stopped looks for no more.
func TestPrograms(t *testing.T) {
	t.Parallel()
	none := t.TempDir()
	long := strings.Repeat("word ", 3000)
	parse := func(text string) *policy.File {
		f, err := policy.Parse("f", policy.General, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := parse("checks: ['" + long + "']\nagent: {command: '" + long + "'}")
	missing, warnings, err := f.Programs(t.Context(), none, none)
	if err != nil || len(missing) != 2 || len(warnings) != 0 || len(missing.Error()) > 1200+4*len(none) || !strings.Contains(missing.Error(), "no program word for 'word word") {
		t.Errorf("told in %d bytes: %.300v, %q, %v", len(missing.Error()), missing, warnings, err)
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	if _, _, err := f.Programs(ended, none, none); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	for what, line := range map[string]string{"missing": "nosuch", "unproved": "$X", "there": "true"} {
		var b strings.Builder
		for i := range 10 {
			fmt.Fprintf(&b, "  /r%d: {checks: [%s]}\n", i, strings.TrimSuffix(strings.Repeat("'"+line+"', ", 256), ", "))
		}
		missing, warnings, err := parse("repositories:\n"+b.String()).Programs(t.Context(), none, none)
		if n := len(missing) + len(warnings); err != nil || n > 101 || n == 0 || !strings.Contains(warnings[len(warnings)-1], "were not looked for") {
			t.Errorf("%s: %d are told, %v", what, n, err)
		}
	}
}
