package check_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"interlock/internal/check"
	"interlock/internal/run"
	"interlock/internal/sandbox"
)

// change makes a repository whose base and head hold these files, and a request that compares them.
func change(t *testing.T, base, head map[string]string, lines ...string) (fixture, check.Request) {
	t.Helper()
	f := newFixture(t, base)
	src := filepath.Join(f.base, "src")
	runGit(t, src, "rm", "-q", "-r", "--cached", "--ignore-unmatch", ".")
	for name := range base {
		if err := os.Remove(filepath.Join(src, strings.TrimSuffix(name, "*"))); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range head {
		name, executable := strings.CutSuffix(name, "*")
		mode := os.FileMode(0o644)
		if executable {
			mode = 0o755
		}
		if err := os.WriteFile(filepath.Join(src, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		runGit(t, src, "add", name)
	}
	runGit(t, src, "commit", "-q", "--allow-empty", "-m", "second")
	was := f.head
	c, err := f.repo.FetchBranch(t.Context(), src, "main", "refs/interlock/test/changed")
	if err != nil {
		t.Fatal(err)
	}
	f.head = run.Commit{Hash: c.Hash, Tree: c.Tree}
	req := f.request(sandbox.None, lines...)
	req.Base, req.Compare = was.Hash, &check.Compare{Dir: filepath.Join(f.base, "counts"), Run: "r1"}
	return f, req
}

func has(all []string, part string) bool { return strings.Contains(strings.Join(all, "\n"), part) }

// prints is a script that prints what a runner does, and leaves a trace in the log of each run.
func prints(lines ...string) string {
	return "#!/bin/sh\necho it-ran-here\ncat <<'E'\n" + strings.Join(lines, "\n") + "\nE\n"
}

var (
	pytestThree = prints("a.py::test_a PASSED [ 33%]", "a.py::test_b PASSED [ 66%]", "a.py::test_c PASSED [100%]", "=== 3 passed in 0.10s ===")
	pytestTwo   = prints("a.py::test_a PASSED [ 50%]", "a.py::test_c PASSED [100%]", "=== 2 passed in 0.10s ===")
)

// TestFewerThanAtBase: fewer tests are refused with the names of the missing ones; allowed, they are
// named; the base is run once.
func TestFewerThanAtBase(t *testing.T) {
	t.Parallel()
	f, req := change(t, map[string]string{"t.sh*": pytestThree}, map[string]string{"t.sh*": pytestTwo}, "./t.sh")
	v := f.verify(t, req)
	want := "fewer tests ran than at the base: 2, and 3 there (pytest); missing: `a.py::test_b`"
	if v.Passed || v.Commands[0].Why != want || *v.Tests != 2 || v.Commands[0].BaseTests == nil || *v.Commands[0].BaseTests != 3 {
		t.Fatalf("verdict %+v", v)
	}
	if !strings.Contains(v.Findings(), want) || !has(v.Warnings, "the check `./t.sh` runs `t.sh`, which the change touches") {
		t.Errorf("findings:\n%s", v.Findings())
	}
	req.Compare.AllowFewer = true
	v = f.verify(t, req)
	if !v.Passed || !has(v.Warnings, want[len("fewer tests "):]+" (allowed by --allow-fewer-tests)") {
		t.Errorf("allowed: verdict %+v", v)
	}
	if got := strings.Count(f.log(t), "it-ran-here"); got != 3 { // twice the head, once the base
		t.Errorf("it ran %d times:\n%s", got, f.log(t))
	}
}

// TestWhatCountsAgainstTheBase: each case is a change of what a check prints.
func TestWhatCountsAgainstTheBase(t *testing.T) {
	t.Parallel()
	other := prints("a.py::test_a PASSED", "a.py::test_c PASSED", "a.py::test_d PASSED", "=== 3 passed in 0.10s ===")
	for name, c := range map[string]struct {
		base, head string
		line       string
		why, warns string // what has to be said; "" for nothing
	}{
		"as many":              {pytestThree, pytestThree, "./t.sh", "", ""},
		"more":                 {pytestTwo, pytestThree, "./t.sh", "", "t.sh"},
		"others":               {pytestThree, other, "./t.sh", "", "no fewer tests ran than at the base, but not the same; missing: `a.py::test_b`"},
		"another runner":       {pytestThree, pytestTwo + "echo '  50 passing (1ms)'\n", "./t.sh", "2, and 3 there (pytest)", ""},
		"no count any more":    {pytestThree, prints("fine"), "./t.sh; : pytest", "0, and 3 there (pytest)", ""},
		"the base fails":       {pytestThree + "exit 1\n", pytestTwo, "./t.sh", "", "it does not pass at the base (exit code 1), so the tests are only named: 3 ran there, 2 here; missing: `a.py::test_b`"},
		"the base has no test": {prints("fine"), pytestTwo, "./t.sh", "", "no test was counted at the base"},
		"none at either":       {prints("fine"), prints("good"), "./t.sh", "", "t.sh"},
		"skipped":              {pytestThree, prints("=== 2 passed, 1 skipped in 0.10s ==="), "./t.sh", "2, and 3 there", ""},
		"hostile name":         {prints("a.py::test_\x1b[2Jx` PASSED", "=== 1 passed in 0.10s ==="), prints("=== 0 passed in 0.10s ===", "a.py::b PASSED"), "./t.sh", "no test ran", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, req := change(t, map[string]string{"t.sh*": c.base}, map[string]string{"t.sh*": c.head}, c.line)
			v := f.verify(t, req)
			got := v.Commands[0]
			if v.Passed != (c.why == "") || !strings.Contains(got.Why, c.why) || !has(v.Warnings, c.warns) || c.warns == "" && c.why == "" && len(v.Warnings) > 0 {
				t.Errorf("verdict %+v\n%s", v, f.log(t))
			}
			if text := v.Findings() + strings.Join(v.Warnings, ""); strings.ContainsAny(text, "\x1b") {
				t.Errorf("not escaped: %q", text)
			}
		})
	}
}

// TestBaseIsTriedAgain: a base that did not pass is asked once by a run, and again by another; what is
// kept and cannot be read is found out again.
func TestBaseIsTriedAgain(t *testing.T) {
	t.Parallel()
	f, req := change(t, map[string]string{"t.sh*": pytestThree + "exit 1\n"}, map[string]string{"t.sh*": pytestThree}, "./t.sh")
	runs := 0
	demand := func(what string, more int) {
		t.Helper()
		if v := f.verify(t, req); !v.Passed {
			t.Fatalf("%s: verdict %+v", what, v)
		}
		if runs += more; strings.Count(f.log(t), "it-ran-here") != runs {
			t.Errorf("%s: it ran %d times in all, want %d", what, strings.Count(f.log(t), "it-ran-here"), runs)
		}
	}
	demand("first", 2)
	demand("the same run", 1)
	req.Compare.Run = "r2"
	demand("another run", 2)
	files, err := filepath.Glob(filepath.Join(req.Compare.Dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("kept %q, %v", files, err)
	}
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	demand("damaged", 2)
}

// TestGigabyte: a check that prints a gigabyte ends, and its verdict says what was not kept.
func TestGigabyte(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	v := f.verify(t, f.request(sandbox.None, "yes | head -c 1073741824; echo '=== 3 passed in 0.10s ==='"))
	c := v.Commands[0]
	if !v.Passed || c.Tests != nil || len(c.Output) > check.OutputBytes+300 || !strings.Contains(c.Output, "bytes of output came after the limit of the log and were not kept") {
		t.Errorf("verdict %+v", v)
	}
	if info, err := os.Stat(filepath.Join(f.base, "log")); err != nil || info.Size() > run.LogBytes+1<<10 {
		t.Errorf("log: %v, %v", info, err)
	}
}

const oneCase = `<testsuite><testcase name="NAME"/></testsuite>`

// TestReportsAreRead: only what the check itself wrote counts, wherever it lies, and nothing that is no
// file of the tree.
func TestReportsAreRead(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "junit.xml")
	if err := os.WriteFile(outside, []byte(strings.ReplaceAll(oneCase, "NAME", "outside")), 0o644); err != nil {
		t.Fatal(err)
	}
	f, req := change(t, nil, map[string]string{"junit.xml": strings.ReplaceAll(oneCase, "NAME", "old")},
		`mkdir -p target/surefire-reports node_modules/x`+"\n"+
			`echo '<testsuite><testcase name="a"/><testcase name="b"><skipped/></testcase></testsuite>' > target/surefire-reports/TEST-x.xml`+"\n"+
			`echo '<testsuite><testcase name="z"/></testsuite>' | tee junit.xml > node_modules/x/junit.xml`+"\n"+
			`ln -s '`+outside+`' junit-link.xml; mkfifo junit-fifo.xml; mkdir junit-dir.xml`+"\n"+
			`echo '<broken' > TEST-broken.xml`+"\n"+
			`echo '=== 40 passed in 0.1s ==='`)
	req.Compare = nil
	v := f.verify(t, req)
	if !v.Passed || *v.Tests != 1 || !has(v.Warnings, "a report is not counted: `TEST-broken.xml`") ||
		!has(v.Warnings, "the output speaks of 40 tests (pytest), the JUnit files of 1") {
		t.Errorf("verdict %+v", v)
	}
	want := []run.Count{{Source: "JUnit files", Passed: 1, Skipped: 1}, {Source: "pytest", Passed: 40}}
	if got := v.Commands[0].Counts; len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("counts %+v", got)
	}
}

// TestPrintedTextNeverRaisesGo: what is printed beside go's events adds nothing to what they say.
func TestPrintedTextNeverRaisesGo(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	v := f.verify(t, f.request(sandbox.None, goPrints(0, ev("pass", "p", "TestA", ""), "=== 40 passed in 0.1s ===\n", "--- PASS: TestZ (0.00s)\n")))
	if !v.Passed || *v.Tests != 1 {
		t.Errorf("verdict %+v", v)
	}
}

// TestNoTestOfAnyRunner: a runner that says that it ran none is refused as go is.
func TestNoTestOfAnyRunner(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"echo '=== no tests ran in 0.01s ==='", "echo '1..0 # SKIP none'", `echo '<testsuite/>' > junit.xml`} {
		f := newFixture(t, nil)
		if v := f.verify(t, f.request(sandbox.None, line)); v.Passed || !strings.HasPrefix(v.Commands[0].Why, "no test ran") {
			t.Errorf("%s: verdict %+v", line, v)
		}
	}
}

// TestWeakenedTestsAreNamed: in the verdict, with the change still passing.
func TestWeakenedTestsAreNamed(t *testing.T) {
	t.Parallel()
	test := "def test_a():\n    assert f() == 1\n"
	f, req := change(t, map[string]string{"test_a.py": test, "test_b.py": test, "b.txt": "x"},
		map[string]string{"test_a.py": "import pytest\n@pytest.mark.skip\n" + test, "b.txt": "y"}, "true")
	v := f.verify(t, req)
	want := []string{"test is skipped now: `test_a` in `test_a.py`", "test file deleted: `test_b.py`, with `test_a`"}
	if !v.Passed || len(v.Warnings) != 2 || v.Warnings[0] != want[0] || v.Warnings[1] != want[1] {
		t.Errorf("verdict %+v", v)
	}
}
