package testcount_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"interlock/internal/testcount"
)

func reports(t *testing.T, files ...string) testcount.Tally {
	t.Helper()
	var r testcount.Reports
	for _, f := range files {
		if err := r.Read(strings.NewReader(f)); err != nil {
			t.Fatalf("%v: %s", err, f)
		}
	}
	tally, ok := r.Tally()
	if !ok {
		t.Fatal("no tally")
	}
	return tally
}

func TestReports(t *testing.T) {
	t.Parallel()
	pytest, err := os.ReadFile("testdata/pytest.xml")
	if err != nil {
		t.Fatal(err)
	}
	surefire := `<?xml version="1.0" encoding="ISO-8859-1"?><testsuite name="A" tests="99"><properties><property name="testcase"/></properties>` +
		`<testcase name="a" classname="x.A"/><testcase name="b" classname="x.A"><failure>f<error/></failure><system-out><![CDATA[<testcase name="z"/>]]></system-out></testcase>` +
		`<testcase name="c" classname="x.A"><skipped/></testcase><testcase name="d" classname="x.A"><error/></testcase></testsuite>`
	for name, c := range map[string]struct {
		files []string
		want  want
	}{
		"pytest": {[]string{string(pytest)}, want{"JUnit files", 5, 2, 2, []string{"test_a test_bad", "test_a test_err",
			"test_a test_ok", "test_a test_p[1]", "test_a test_p[a b]", "test_a test_xp", "test_a.TestC test_m"}}},
		"surefire":     {[]string{surefire}, want{"JUnit files", 1, 2, 1, []string{"x.A a", "x.A b", "x.A d"}}},
		"nested":       {[]string{`<testsuites><testsuite><testsuite><testcase name="a"/></testsuite></testsuite><testsuite><testcase name="b"/></testsuite></testsuites>`}, want{"JUnit files", 2, 0, 0, nil}},
		"empty":        {[]string{`<testsuites tests="5"/>`}, want{"JUnit files", 0, 0, 0, nil}},
		"gathered":     {[]string{surefire, `<testsuites>` + surefire[strings.Index(surefire, "<testsuite "):] + `</testsuites>`}, want{"JUnit files", 1, 2, 1, nil}},
		"twice in one": {[]string{`<testsuite><testcase name="a"/><testcase name="a"/></testsuite>`, `<testsuite><testcase name="a"/></testsuite>`}, want{"JUnit files", 2, 0, 0, []string{"a"}}},
		"not run":      {[]string{`<testsuite><testcase name="a" status="notrun"/><testcase name="b" status="run"/></testsuite>`}, want{"JUnit files", 1, 0, 1, []string{"b"}}},
		"latin":        {[]string{`<?xml version="1.0" encoding="ISO-8859-1"?><testsuite><testcase name="` + strings.Repeat("\xe9", 300) + `"/></testsuite>`}, want{"JUnit files", 1, 0, 0, []string{strings.Repeat("é", 300)}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compare(t, []testcount.Tally{reports(t, c.files...)}, c.want)
		})
	}
}

// TestHostileReports: nothing outside of a file is looked at, nothing grows beyond the file, and
// of a file that is not whole nothing is counted.
func TestHostileReports(t *testing.T) {
	t.Parallel()
	secret := t.TempDir() + "/secret"
	if err := os.WriteFile(secret, []byte("sesame"), 0o600); err != nil {
		t.Fatal(err)
	}
	laughs := `<!DOCTYPE x [<!ENTITY a "ha">`
	for i := range 20 {
		laughs += fmt.Sprintf(`<!ENTITY a%d "%s">`, i, strings.Repeat(fmt.Sprintf("&a%d;", i-1), 10))
	}
	for name, text := range map[string]string{
		"external":   `<!DOCTYPE x [<!ENTITY e SYSTEM "file://` + secret + `">]><testsuite><testcase name="&e;"/></testsuite>`,
		"laughs":     laughs + `]><testsuite><testcase name="&a19;"/></testsuite>`,
		"deep":       "<testsuites>" + strings.Repeat("<testsuite>", 100_000),
		"deep whole": strings.Repeat("<testsuite>", 70) + strings.Repeat("</testsuite>", 70),
		"cut":        `<testsuite><testcase name="a"/>`,
		"other root": `<html><testcase name="a"/></html>`,
		"no XML":     "testsuite",
		"nothing":    "",
		"in a case":  `<testsuite><testcase name="a"><x><testcase name="b"/></x></testcase></testsuite>`,
		"mismatch":   `<testsuite><testcase name="a"></testsuite></testcase>`,
		"encoding":   `<?xml version="1.0" encoding="UTF-16"?><testsuite><testcase name="a"/></testsuite>`,
		"not UTF-8":  "<testsuite><testcase name=\"\xff\"/></testsuite>",
	} {
		var r testcount.Reports
		err := r.Read(strings.NewReader(text))
		if !errors.Is(err, testcount.ErrReport) || strings.Contains(fmt.Sprint(err), "sesame") {
			t.Errorf("%s: error %v", name, err)
		}
		if tally, ok := r.Tally(); ok || tally.Ran() != 0 {
			t.Errorf("%s: %+v", name, tally)
		}
	}
	var r testcount.Reports
	big := "<testsuite>" + strings.Repeat(" ", testcount.ReportBytes) + "</testsuite>"
	if err := r.Read(strings.NewReader(big)); !errors.Is(err, testcount.ErrReport) || !strings.Contains(err.Error(), "more than") {
		t.Errorf("big: %v", err)
	}
	broken := errors.New("broken disk")
	if err := r.Read(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("broken: %v", err)
	}
}

func TestIsReport(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"junit.xml": true, "a/junit-node.xml": true, "TEST-x.A.xml": true, "target/surefire-reports/x.xml": true,
		"m/build/test-results/test/TEST-a.xml": true, "test-results.xml": true, "reports/report.xml": true,
		"pom.xml": false, "junit.txt": false, "src/main.xml": false, "build/other/x.xml": false, "coverage.xml": false,
	} {
		if got := testcount.IsReport(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzReport(f *testing.F) {
	f.Add(`<testsuite><testcase name="a" classname="b"><skipped/></testcase></testsuite>`)
	f.Add(`<?xml version="1.0" encoding="latin1"?><testsuites><testsuite/></testsuites>`)
	f.Fuzz(func(t *testing.T, text string) {
		var r testcount.Reports
		err := r.Read(strings.NewReader(text))
		tally, ok := r.Tally()
		if ok != (err == nil) || tally.Passed < 0 || tally.Ran()+tally.Skipped > strings.Count(text, "testcase") {
			t.Fatalf("error %v, %+v", err, tally)
		}
		if r.Read(strings.NewReader(text)) == nil {
			if again, _ := r.Tally(); again.Ran() != tally.Ran() || again.Skipped != tally.Skipped {
				t.Fatalf("read twice: %+v, then %+v", tally, again)
			}
		}
	})
}
