package check_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"

	"interlock/internal/check"
	"interlock/internal/sandbox"
)

func TestWithJSON(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"go test ./...":                              "go test -json ./...",
		"go test":                                    "go test -json",
		"  go  test\t./...":                          "  go  test -json\t./...",
		"go vet ./... && go test ./...":              "go vet ./... && go test -json ./...",
		"go test ./a && go test ./b":                 "go test -json ./a && go test -json ./b",
		"go test;go test":                            "go test -json;go test -json",
		"CGO_ENABLED=0 GOFLAGS=-mod=mod go test ./a": "CGO_ENABLED=0 GOFLAGS=-mod=mod go test -json ./a",
		"env A=1 go test ./a":                        "env A=1 go test -json ./a",
		"timeout 60 nice go test":                    "timeout 60 nice go test -json",
		"if ! go test; then exit 1; fi":              "if ! go test -json; then exit 1; fi",
		"(go test)":                                  "(go test -json)",
		"{ go test; }":                               "{ go test -json; }",
		"go -C sub test ./...":                       "go -C sub test -json ./...",
		"go -C=sub test":                             "go -C=sub test -json",
		"/usr/local/go/bin/go test":                  "/usr/local/go/bin/go test -json",
		"$(go env GOROOT)/bin/go test x":             "$(go env GOROOT)/bin/go test -json x",
		"go1.26.1 test x":                            "go1.26.1 test -json x",
		"gotip test x":                               "gotip test -json x",
		"go \\\n test \\\n ./...":                    "go \\\n test -json \\\n ./...",
		"cd x\ngo test":                              "cd x\ngo test -json",
		"sh -c 'go test ./...'":                      "sh -c 'go test -json ./...'",
		`bash -ec "go vet && go test"`:               `bash -ec "go vet && go test -json"`,
		`test -n "$(go test ./...)"`:                 `test -n "$(go test -json ./...)"`,
		`eval 'go test'`:                             `eval 'go test -json'`,
		`echo it\'s; go test`:                        `echo it\'s; go test -json`,
		`echo "a # b"; go test`:                      `echo "a # b"; go test -json`,
		"go test -json ./...":                        "go test -json -json ./...",
		"go test>log":                                "go test -json>log",
		// Not a test run.
		"grep -q 'go test' Makefile": "",
		`echo "run go test"`:         "",
		"true # go test":             "",
		"go testx":                   "",
		"cargo test":                 "",
		"go vet ./... ; test -f x":   "",
		"go build ./test":            "",
		"mygo test":                  "",
		"go run test":                "",
		"make test":                  "",
		"":                           "",
	} {
		got, counts := check.WithJSON(line)
		if want == "" {
			if counts || got != line {
				t.Errorf("%q: became %q, counts %v", line, got, counts)
			}
		} else if !counts || got != want {
			t.Errorf("%q: became %q, counts %v; want %q", line, got, counts, want)
		}
	}
}

// ev is one event as `go test -json` prints it.
func ev(action, pkg, test, output string) string {
	b, err := json.Marshal(struct {
		Time, Action, Package string
		Test, Output          string `json:",omitempty"`
	}{"2030-01-02T03:04:05.678Z", action, pkg, test, output})
	if err != nil {
		panic(err)
	}
	return string(b) + "\n"
}

func TestCountsTests(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		log          string
		ran, skipped int
	}{
		"nothing":        {"", 0, 0},
		"text only":      {"PASS\nok  \tx\t0.1s\n", 0, 0},
		"pass and fail":  {ev("pass", "p", "TestA", "") + ev("fail", "p", "TestB", "") + ev("fail", "p", "", ""), 2, 0},
		"skip":           {ev("pass", "p", "TestA", "") + ev("skip", "p", "TestB", "") + ev("pass", "p", "", ""), 1, 1},
		"package only":   {ev("skip", "p", "", "") + ev("pass", "q", "", ""), 0, 0},
		"begun only":     {ev("run", "p", "TestA", "") + ev("output", "p", "TestA", "x\n"), 0, 0},
		"subtests":       {ev("pass", "p", "TestA/x", "") + ev("pass", "p", "TestA/y", "") + ev("pass", "p", "TestA", ""), 3, 0},
		"twice":          {ev("pass", "p", "TestA", "") + ev("pass", "p", "TestA", ""), 1, 0},
		"two packages":   {ev("pass", "p", "TestA", "") + ev("pass", "q", "TestA", ""), 2, 0},
		"skipped once":   {ev("skip", "p", "TestA", "") + ev("pass", "p", "TestA", ""), 1, 0},
		"no package":     {`{"Action":"pass","Test":"TestA"}` + "\n", 1, 0},
		"after text":     {"warning: " + ev("pass", "p", "TestA", ""), 1, 0},
		"after a brace":  {"map[{x " + ev("pass", "p", "TestA", ""), 1, 0},
		"no last break":  {strings.TrimSuffix(ev("pass", "p", "TestA", ""), "\n"), 1, 0},
		"cut short":      {`{"Time":"2030-01-02T03:04:05Z","Action":"pass","Pack`, 0, 0},
		"not an event":   {`{"Action":"deploy","Test":"TestA"}` + "\n" + `{"a":1}` + "\n" + "{\n[]\nnull\n", 0, 0},
		"inside output":  {ev("output", "p", "TestA", ev("pass", "p", "TestFake", "")), 0, 0},
		"crlf":           {strings.ReplaceAll(ev("pass", "p", "TestA", ""), "\n", "\r\n"), 1, 0},
		"long text line": {strings.Repeat("x", 3<<20) + "\n" + ev("pass", "p", "TestA", ""), 1, 0},
		"huge text line": {strings.Repeat("{", 20<<20) + "\n" + ev("pass", "p", "TestA", ""), 1, 0},
		"long event":     {ev("output", "p", "TestA", strings.Repeat("y", 2<<20)) + ev("pass", "p", "Test"+strings.Repeat("z", 2<<20), ""), 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ran, skipped, _, _, err := check.Read(iotest.HalfReader(strings.NewReader(tc.log)))
			if err != nil || ran != tc.ran || skipped != tc.skipped {
				t.Errorf("ran %d, skipped %d, error %v; want %d and %d", ran, skipped, err, tc.ran, tc.skipped)
			}
		})
	}
}

func TestReadFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	if _, _, _, _, err := check.Read(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestReadableText(t *testing.T) {
	t.Parallel()
	log := ev("start", "p", "", "") + ev("run", "p", "TestGood", "") +
		ev("output", "p", "TestGood", "=== RUN   TestGood\n") + ev("output", "p", "TestGood", "    good_test.go:1: chatter\n") +
		ev("output", "p", "TestGood", "--- PASS: TestGood (0.00s)\n") + ev("pass", "p", "TestGood", "") +
		"a line of another program\n" + "{\"Action\":\"deploy\"}\n" +
		ev("output", "p", "TestBad", "=== RUN   TestBad\n") + ev("output", "p", "TestBad", "    bad_test.go:2: \x1b[31mgot\x1b[0m 3 \u202e\n") +
		ev("output", "p", "TestBad", "--- FAIL: TestBad (0.00s)\n") + ev("fail", "p", "TestBad", "") +
		ev("output", "p", "", "FAIL\tp\t0.1s\n") + ev("fail", "p", "", "") +
		ev("output", "q", "", "PASS\n") + ev("output", "q", "", "ok  \tq\t0.1s\n") + ev("pass", "q", "", "") +
		`{"ImportPath":"r","Action":"build-output","Output":"r.go:1: undefined: x\n"}` + "\n" +
		ev("output", "s", "TestHang", "    hang_test.go:3: waiting\n")
	_, _, passed, failed, err := check.Read(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	want := "a line of another program\n" +
		"{\"Action\":\"deploy\"}\n" +
		"    bad_test.go:2: \\x1b[31mgot\\x1b[0m 3 \\u202e\n" +
		"--- FAIL: TestBad (0.00s)\n" +
		"FAIL\tp\t0.1s\n" +
		"r.go:1: undefined: x\n" +
		"    hang_test.go:3: waiting"
	if failed != want {
		t.Errorf("failed:\n%s\nwant:\n%s", failed, want)
	}
	if !strings.Contains(passed, "ok  \tq\t0.1s\n") || strings.Contains(passed, "chatter") {
		t.Errorf("passed:\n%s", passed)
	}
}

// TestTextOfKilledPackage: what a test printed that never ended is shown when its package fails.
func TestTextOfKilledPackage(t *testing.T) {
	t.Parallel()
	_, _, _, failed, err := check.Read(strings.NewReader(ev("output", "p", "TestHang", "panic: test timed out\n") +
		ev("output", "p", "", "FAIL\tp\t9s\n") + ev("fail", "p", "", "") + "after\n"))
	if want := "panic: test timed out\nFAIL\tp\t9s\nafter"; err != nil || failed != want {
		t.Errorf("text %q, error %v; want %q", failed, err, want)
	}
}

func TestTextIsCapped(t *testing.T) {
	t.Parallel()
	for name, unit := range map[string]string{"plain": "%d some text é\n", "escapes": "%d \x1b\x1b\x1b\xff\n"} {
		var b strings.Builder
		for i := range 200_000 {
			fmt.Fprintf(&b, unit, i)
		}
		_, _, _, failed, err := check.Read(strings.NewReader(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		first, rest, _ := strings.Cut(failed, "\n")
		if len(failed) > check.OutputBytes+100 || len(failed) < check.OutputBytes/2 || !strings.Contains(rest, "199999 ") ||
			!strings.Contains(first, "bytes left out") || !unicode.IsDigit(rune(rest[0])) {
			t.Errorf("%s: %d bytes, begins %.80q", name, len(failed), failed)
		}
	}
}

func TestWhy(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]sandbox.Result{
		"":                   {Why: "exit"},
		"exit code 1":        {Why: "exit", Exit: 1},
		"cannot be executed": {Why: "exit", Exit: 126},
		"not found":          {Why: "exit", Exit: 127},
		"signal 9 (killed)":  {Why: "exit", Exit: 137},
		"code 143: a program was ended by signal 15 (terminated)": {Why: "exit", Exit: 143},
		"exit code 255":               {Why: "exit", Exit: 255},
		"signal SEGV":                 {Why: "exit", Exit: -1, Signal: "SEGV"},
		"ended by the time limit of ": {Why: "total", Exit: -1, Signal: "KILL"},
	} {
		if got := check.Why(r); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%+v: %q does not say %q", r, got, want)
		}
	}
}

func TestOutputOverTheLimit(t *testing.T) {
	t.Parallel()
	if got := check.NoTest(0, 5); !strings.Contains(got, "64 MiB") {
		t.Errorf("no test seen: %q", got)
	}
	if got := check.Text("x\n", 5); got != "x\n[5 bytes of output came after the limit of the log and were not kept]" {
		t.Errorf("text %q", got)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(ev("pass", "p", "TestA", "") + "x{\"Action\"" + ev("fail", "p", "", ""))
	f.Add("{\"Time\":\"{\"Time\":\"\n\xff\x00")
	f.Fuzz(func(t *testing.T, log string) {
		ran, skipped, passed, failed, err := check.Read(strings.NewReader(log))
		if err != nil || ran < 0 || skipped < 0 {
			t.Fatalf("ran %d, skipped %d, error %v", ran, skipped, err)
		}
		for _, text := range []string{passed, failed} {
			for _, r := range text {
				if r != '\n' && r != '\t' && !unicode.IsGraphic(r) {
					t.Fatalf("%U in %q", r, text)
				}
			}
		}
		// One more event is one more test, whatever came before.
		more, _, _, _, _ := check.Read(strings.NewReader(log + "\n" + ev("pass", "a package", "a new test", "")))
		if more != ran+1 {
			t.Fatalf("%d tests, then %d", ran, more)
		}
	})
}

func FuzzWithJSON(f *testing.F) {
	f.Add("go test; sh -c 'go test' # go test", "x")
	f.Add(`"go test`, `\`)
	f.Fuzz(func(t *testing.T, line, _ string) {
		got, counts := check.WithJSON(line)
		if counts != (got != line) || strings.ReplaceAll(got, " -json", "") != strings.ReplaceAll(line, " -json", "") {
			t.Fatalf("%q became %q, counts %v", line, got, counts)
		}
	})
}

// TestManyBeginningsOfEvents: a line made of nothing but beginnings of events costs no more than any
// other of its length (it once took hours), and an event after ordinary text is still found.
func TestManyBeginningsOfEvents(t *testing.T) {
	t.Parallel()
	flood := strings.Repeat(`{"Action":"","a":`, 4<<20/17)
	ran, _, _, _, err := check.Read(strings.NewReader(flood + "\n" + flood + ev("pass", "p", "TestA", "") + "x {y} " + ev("pass", "p", "TestB", "")))
	if err != nil || ran != 1 { // TestA's event is one of too many beginnings
		t.Errorf("ran %d, %v", ran, err)
	}
}
