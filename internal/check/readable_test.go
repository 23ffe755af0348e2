package check_test

import (
	"strings"
	"testing"

	"interlock/internal/check"
)

// readable writes a log in pieces of a size and returns what came out.
func readable(t *testing.T, log string, size int) string {
	t.Helper()
	var b strings.Builder
	r := &check.Readable{To: &b}
	for len(log) > 0 {
		n := min(size, len(log))
		if _, err := r.Write([]byte(log[:n])); err != nil {
			t.Fatal(err)
		}
		log = log[n:]
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestReadableLog: events become what go test -v prints, each package in one piece, and nothing
// else is touched.
func TestReadableLog(t *testing.T) {
	t.Parallel()
	log := "$ go test ./...\n" + ev("start", "p", "", "") + ev("output", "p", "TestA", "=== RUN   TestA\n") +
		ev("output", "q", "TestB", "=== RUN   TestB\n") + "text of {another} program\n" +
		ev("output", "p", "TestA", "--- PASS: TestA (0.00s)\n") + ev("pass", "p", "TestA", "") +
		ev("output", "p", "", "ok  \tp\t0.1s\n") + ev("pass", "p", "", "") +
		`{"ImportPath":"r","Action":"build-output","Output":"r.go:1: no\n"}` + "\n" + ev("output", "q", "", "FAIL\tq\t0.1s\n") + "the end"
	want := "$ go test ./...\ntext of {another} program\n=== RUN   TestA\n--- PASS: TestA (0.00s)\nok  \tp\t0.1s\nr.go:1: no\n" +
		"the end=== RUN   TestB\nFAIL\tq\t0.1s\n"
	for _, size := range []int{1, 7, 1 << 20} {
		if got := readable(t, log, size); got != want {
			t.Errorf("in pieces of %d:\n%s\nwant:\n%s", size, got, want)
		}
	}
	big := ev("output", "p", "T", strings.Repeat("x", 9<<20)+"\n") // longer than a line that is read as an event
	if got := readable(t, big+strings.Repeat("y", 20<<20), 1<<20); len(got) < 29<<20 {
		t.Errorf("%d bytes of long lines", len(got))
	}
}
