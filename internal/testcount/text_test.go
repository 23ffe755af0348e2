package testcount_test

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"interlock/internal/testcount"
)

// read gives the lines of a text to a reader.
func read(text string) []testcount.Tally {
	t := testcount.NewText()
	for line := range bytes.Lines([]byte(text)) {
		t.Line(line)
	}
	return t.Tallies()
}

type want struct {
	source                  string
	passed, failed, skipped int
	names                   []string // nil: not looked at
}

func compare(t *testing.T, got []testcount.Tally, want ...want) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d formats were seen, want %d: %+v", len(got), len(want), got)
	}
	for i, w := range want {
		g := got[i]
		if g.Source != w.source || g.Passed != w.passed || g.Failed != w.failed || g.Skipped != w.skipped || g.Ran() != w.passed+w.failed {
			t.Errorf("%s: %d passed, %d failed, %d skipped; want %s: %d, %d, %d", g.Source, g.Passed, g.Failed, g.Skipped, w.source, w.passed, w.failed, w.skipped)
		}
		if names := slices.Sorted(maps.Keys(g.Names)); w.names != nil && !slices.Equal(names, w.names) {
			t.Errorf("%s: names %q, want %q", g.Source, names, w.names)
		}
	}
}

// TestRealOutput reads what the runners themselves printed. In most of them a test prints a line
// that looks like a summary of 99 tests.
func TestRealOutput(t *testing.T) {
	t.Parallel()
	pytests := []string{"test_a.py::TestC::test_m", "test_a.py::test_bad", "test_a.py::test_err", "test_a.py::test_ok",
		"test_a.py::test_p[1]", "test_a.py::test_p[a b]", "test_a.py::test_xp"}
	for file, want := range map[string]want{
		"pytest":         {"pytest", 5, 2, 2, []string{}},
		"pytest-q":       {"pytest", 5, 2, 2, []string{}},
		"pytest-ra":      {"pytest", 5, 2, 2, []string{}},
		"pytest-v":       {"pytest", 5, 2, 2, pytests},
		"unittest":       {"unittest", 1, 0, 2, []string{"test_a (ut.T.test_a)"}},
		"node-spec":      {"node --test", 6, 1, 3, []string{"b1", "bad", "deep", "in", "ok", "parent", "sub", "suite", "x"}},
		"node-tap":       {"node --test", 6, 1, 3, []string{"b1", "bad", "in", "ok", "sub", "x"}},
		"cargo":          {"cargo test", 4, 1, 1, []string{"a", "bad", "src/lib.rs - f", "tests::ok", "tests::sp"}},
		"cargo-q":        {"cargo test", 4, 1, 1, []string{}},
		"jest":           {"jest", 2, 1, 2, []string{"adds", "deep", "fails"}},
		"jest-verbose":   {"jest", 2, 1, 2, []string{"adds", "deep", "fails"}},
		"vitest":         {"vitest", 2, 1, 2, nil},
		"vitest-verbose": {"vitest", 2, 1, 2, []string{"a.test.mjs > outer > adds", "a.test.mjs > outer > fails", "a.test.mjs > outer > inner > deep"}},
		"mocha":          {"mocha", 2, 1, 1, []string{"adds", "deep"}},
		"go-v":           {"go test -v", 2, 1, 1, []string{"m TestA", "m TestA/x_y", "m TestB"}},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile("testdata/" + file + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			compare(t, read(string(b)), want)
			compare(t, read(strings.ReplaceAll(string(b), "\n", "\r\n")), want)
		})
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	block := "# tests 2\n# suites 0\n# pass 2\n# fail 0\n# cancelled 0\n# skipped 0\n# todo 0\n"
	for name, c := range map[string]struct {
		text string
		want []want
	}{
		"nothing":          {"", nil},
		"prose":            {"12 passed the exam in 3 hours\nok computer\n5 passing cars\nTests: many\nRan 3 tests in a row\n1..\n", nil},
		"no tests":         {"==== no tests ran in 0.00s ====\n", []want{{"pytest", 0, 0, 0, nil}}},
		"deselected all":   {"collected 3 items / 3 deselected / 0 selected\n==== 3 deselected in 0.01s ====\n", []want{{"pytest", 0, 0, 0, nil}}},
		"warnings":         {"3 passed, 2 warnings in 61.02s (0:01:01)\n", []want{{"pytest", 3, 0, 0, nil}}},
		"not its words":    {"3 passed, 2 lost in 1.00s\n", nil},
		"printed earlier":  {"==== test session starts ====\ncollected 1 item\n99 passed in 0.01s\n==== 1 passed in 0.02s ====\n", []want{{"pytest", 1, 0, 0, nil}}},
		"printed later":    {"==== test session starts ====\ncollected 1 item\n==== 1 passed in 0.02s ====\n99 passed in 0.01s\n", []want{{"pytest", 1, 0, 0, nil}}},
		"two sessions":     {"=== test session starts ===\n=== 1 passed in 0.02s ===\n=== test session starts ===\n=== 2 passed in 0.02s ===\n", []want{{"pytest", 3, 0, 0, nil}}},
		"two quiet ones":   {".  [100%]\n1 passed in 0.02s\n..   [100%]\n2 passed in 0.02s\n", []want{{"pytest", 3, 0, 0, nil}}},
		"teardown too":     {"collected 1 item\n1 passed, 1 error in 0.02s\n", []want{{"pytest", 0, 1, 0, nil}}},
		"xdist":            {"[gw0] [ 50%] PASSED a.py::test_a \n[gw1] [100%] PASSED a.py::test_b \n=== 2 passed in 0.1s ===\n", []want{{"pytest", 2, 0, 0, []string{"a.py::test_a", "a.py::test_b"}}}},
		"coloured":         {"\x1b[32m==== \x1b[1m3 passed\x1b[0m\x1b[32m in 0.01s\x1b[0m\x1b[32m ====\x1b[0m\n", []want{{"pytest", 3, 0, 0, nil}}},
		"unittest failed":  {"Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=1, skipped=1)\n", []want{{"unittest", 2, 2, 1, nil}}},
		"unittest nothing": {"Ran 0 tests in 0.000s\n\nNO TESTS RAN\n", []want{{"unittest", 0, 0, 0, nil}}},
		"unittest no end":  {"Ran 99 tests in 0.1s\n\nand then\nOK\n", nil},
		"node twice":       {"ok 1 - a\nok 2 - b\n" + block + "ok 1 - c\nok 2 - d\n" + block, []want{{"node --test", 4, 0, 0, nil}}},
		"node invented":    {"TAP version 13\nok 1 - a\nok 2 - b\n" + strings.ReplaceAll(block, "2", "99") + "1..2\n" + block, []want{{"node --test", 2, 0, 0, nil}}},
		"node in parts":    {"# pass 99\n# tests 2\n# pass 99\n# fail 0\n", nil},
		"node, no test":    {"TAP version 13\n1..0\n" + strings.ReplaceAll(block, "2", "0"), []want{{"node --test", 0, 0, 0, nil}}},
		"cargo invented":   {"test result: ok. 99 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\nrunning 1 test\ntest result: ok. 99 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n", []want{{"cargo test", 1, 0, 0, nil}}},
		"cargo nothing":    {"running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.00s\n", []want{{"cargo test", 0, 0, 0, nil}}},
		"cargo killed":     {"running 5 tests\ntest a ... ok\n", nil},
		"jest no suites":   {"Tests:       99 passed, 99 total\n", nil},
		"jest none":        {"No tests found, exiting with code 0\n", []want{{"jest", 0, 0, 0, nil}}},
		"vitest none":      {"No test files found, exiting with code 0\n", []want{{"vitest", 0, 0, 0, nil}}},
		"mocha twice":      {"  2 passing (3ms)\n  1 pending\n\n  3 passing (1s)\n  1 failing\n", []want{{"mocha", 5, 1, 1, nil}}},
		"mocha apart":      {"  2 passing (3ms)\n\nx\n  7 failing\n", []want{{"mocha", 2, 0, 0, nil}}},
		"TAP": {"TAP version 14\n1..5\nok 1 - a\nnot ok 2 - b\n  ---\n  message: |\n    ok 9 - no test\n  ...\nok 3 - c # SKIP no\nnot ok 4 - d # TODO later\nok 5\n",
			[]want{{"TAP", 2, 1, 2, []string{"a", "b"}}}},
		"TAP plan last":    {"ok 1 - a\nok 2 - b\n1..2\n", []want{{"TAP", 2, 0, 0, nil}}},
		"TAP over plan":    {"1..2\nok 1 - a\nok 2 - b\nok 3 - c\nok 4 - d\n", []want{{"TAP", 2, 0, 0, nil}}},
		"TAP no plan":      {"ok 1 - a\nok 2 - b\n", nil},
		"TAP skip all":     {"1..0 # SKIP not here\n", []want{{"TAP", 0, 0, 0, nil}}},
		"TAP subtests":     {"TAP version 14\n1..2\n    ok 1 - a\n        ok 1 - deep\n        1..1\n    ok 2 - b\n    1..2\nok 1 - both\nok 2 - c\n", []want{{"TAP", 3, 0, 0, []string{"a", "c", "deep"}}}},
		"TAP hash in name": {"1..1\nok 1 - a \\# SKIP b\n", []want{{"TAP", 1, 0, 0, nil}}},
		"TAP open block":   {"1..2\nok 1 - a\n  ---\nok 2 - b\n", []want{{"TAP", 1, 0, 0, nil}}},
		"two runners":      {"=== 3 passed in 0.01s ===\n  2 passing (3ms)\n", []want{{"pytest", 3, 0, 0, nil}, {"mocha", 2, 0, 0, nil}}},
		"absurd":           {"999999999 passed, 999999999 failed in 0.01s\n", []want{{"pytest", 999999999, 999999999, 0, nil}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compare(t, read(c.text), c.want...)
		})
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	got := testcount.Missing(map[string]int{"a": 1, "b": 2, "c": 1, "d": 1}, map[string]int{"a": 1, "b": 1, "d": 2, "e": 5})
	if !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("missing %q", got)
	}
}

// TestNamesAreBounded: more names than are kept, and longer ones, are said and do not end it.
func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	r := testcount.NewText()
	line := make([]byte, 0, 8<<10)
	for i := range 250_000 {
		line = append(line[:0], "a.py::test_"...)
		for n := i; n > 0; n /= 10 {
			line = append(line, '0'+byte(n%10))
		}
		r.Line(append(line, "x PASSED\n"...))
	}
	r.Line([]byte("a.py::test_" + strings.Repeat("n", 3<<10) + " PASSED"))
	r.Line([]byte("250001 passed in 1.00s"))
	got := r.Tallies()
	if len(got) != 1 || !got[0].Cut || len(got[0].Names) != 200_000 || got[0].Passed != 250_001 {
		t.Errorf("%d names, cut %v, %d passed", len(got[0].Names), got[0].Cut, got[0].Passed)
	}
}

// FuzzText: whatever is printed, numbers are sound and the same each time; a line without an end
// changes nothing of what was counted before it.
func FuzzText(f *testing.F) {
	for _, name := range []string{"pytest-v", "unittest", "node-spec", "node-tap", "cargo", "jest", "vitest", "mocha", "go-v"} {
		b, err := os.ReadFile("testdata/" + name + ".txt")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Add("TAP version 14\n1..2\n    ok 1\nok 1 # skip\n  ---\n  ...\nok 2\n")
	f.Fuzz(func(t *testing.T, text string) {
		got := read(text)
		for i, tally := range got {
			if tally.Passed < 0 || tally.Failed < 0 || tally.Skipped < 0 || tally.Source == "" {
				t.Fatalf("%+v", tally)
			}
			for name, n := range tally.Names {
				if n < 1 || name == "" || len(name) > 1<<10 {
					t.Fatalf("name %q: %d", name, n)
				}
			}
			if i > 0 && got[i-1].Source == tally.Source {
				t.Fatalf("%s twice", tally.Source)
			}
		}
		compareTwice(t, got, read(text))
	})
}

func compareTwice(t *testing.T, a, b []testcount.Tally) {
	for i := range a {
		if a[i].Passed != b[i].Passed || a[i].Failed != b[i].Failed || a[i].Skipped != b[i].Skipped || !maps.Equal(a[i].Names, b[i].Names) {
			t.Fatalf("%+v, then %+v", a[i], b[i])
		}
	}
}
