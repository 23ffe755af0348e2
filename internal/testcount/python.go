package testcount

import (
	"strings"
)

// pytest's last line, with or without its rule: "== 1 failed, 4 passed, 1 error in 0.04s ==".
var (
	pytestSummary = pattern(`^(?:=+ )?((?:\d{1,9} [a-z]+(?:, )?)+|no tests ran|no tests collected(?: \([^)]*\))?) in \d+\.\d+s(?: \([0-9:]+\))?(?: =+)?$`)
	pytestBegin   = pattern(`^=+ test session starts =+$`)
	pytestItems   = pattern(`^(?:collecting \.\.\. )?collected (\d{1,9}) items?\b`)
	pytestDots    = pattern(`^(?:\S+ )?[.sxXFE]+\s+\[ *\d{1,3}%\]$`)
	pytestTest    = pattern(`^(\[gw\d+\] \[ *\d+%\] )?(PASSED |FAILED |ERROR |XPASS )?(\S+\.py(?:::.+?)+)(?: (PASSED|FAILED|ERROR|XPASS))?(?:\s+\[ *\d+%\])?(?: - .*)?$`)
)

// pytest takes the last summary of each session: what a test prints comes before it.
type pytest struct {
	done    Tally
	now     map[string]int // the newest summary of this session; nil: none yet
	seen    bool
	items   int // collected in all sessions
	counted bool
}

func (p *pytest) line(s string) {
	if strings.Contains(s, ".py::") {
		p.test(s)
		return
	}
	if len(s) > maxSummary {
		return
	}
	switch {
	case strings.Contains(s, "test session starts") && pytestBegin().MatchString(s):
		p.close()
	case p.now != nil && strings.HasSuffix(s, "%]") && pytestDots().MatchString(s): // a quiet session begins without a rule
		p.close()
	}
	if !strings.Contains(s, "collected ") && !strings.Contains(s, " in ") {
		return
	}
	if m := pytestItems().FindStringSubmatch(s); m != nil {
		p.items, p.counted = sum(p.items, number(m[1])), true
	}
	if m := pytestSummary().FindStringSubmatch(s); m != nil && isPytest(m[1]) {
		p.now, p.seen = countsOf(m[1]), true
	}
}

// test takes the name of a test that ran.
func (p *pytest) test(s string) {
	if m := pytestTest().FindStringSubmatch(s); m != nil && (m[2] == "") != (m[4] == "") {
		if m[1] != "" || m[2] == "" { // the list at the end says it again
			p.done.name(m[3])
		}
	}
}

// isPytest tells a summary from another program's sentence.
func isPytest(s string) bool {
	if strings.HasPrefix(s, "no tests") {
		return true
	}
	for word := range countsOf(s) {
		switch word {
		case "passed", "failed", "skipped", "deselected", "xfailed", "xpassed", "warning", "warnings", "error", "errors", "rerun", "subtests":
		default:
			return false
		}
	}
	return true
}

func (p *pytest) close() {
	p.done.add(p.now["passed"]+p.now["xpassed"], p.now["failed"]+p.now["error"]+p.now["errors"], p.now["skipped"]+p.now["xfailed"])
	p.now = nil
}

func (p *pytest) tally() (Tally, bool) {
	all := *p
	all.close()
	all.done.Source = "pytest"
	if all.counted {
		// A test whose teardown fails too is counted twice by pytest.
		all.done.atMost(all.items)
	}
	return all.done, all.seen
}

// The end of Python's unittest: "Ran 3 tests in 0.001s", an empty line, "OK (skipped=1)".
var (
	unittestRan    = pattern(`^Ran (\d{1,9}) tests? in \d+\.\d+s$`)
	unittestResult = pattern(`^(?:OK|FAILED|NO TESTS RAN)(?: \(([^)]*)\))?$`)
	unittestPart   = pattern(`(failures|errors|skipped|expected failures|unexpected successes)=(\d{1,9})`)
	unittestTest   = pattern(`^(\w+ \([\w.<>]+\))(?: \.\.\. |$)`)
	unittestEnd    = pattern(`\.\.\. (ok|FAIL|ERROR|unexpected success)$`)
)

type unittest struct {
	all     Tally
	pending int    // tests of a session whose result is to come
	open    bool   // pending is set
	last    string // the test whose outcome is to come
	seen    bool
}

func (u *unittest) line(s string) {
	if !strings.HasPrefix(s, "Ran ") {
		u.after(s)
		return
	}
	if m := unittestRan().FindStringSubmatch(s); m != nil {
		u.pending, u.open = number(m[1]), true
	}
}

// after takes a line that is not the one with the number of tests.
func (u *unittest) after(s string) {
	if u.open && s != "" {
		u.open = false
		if m := unittestResult().FindStringSubmatch(s); m != nil {
			u.result(m[1])
			return
		}
	}
	if strings.Contains(s, " (") {
		if m := unittestTest().FindStringSubmatch(s); m != nil {
			u.last = m[1]
		}
	}
	if u.last != "" && strings.Contains(s, "... ") && unittestEnd().MatchString(s) {
		u.all.name(u.last)
		u.last = ""
	}
}

func (u *unittest) result(parts string) {
	u.seen = true
	n := map[string]int{}
	for _, m := range unittestPart().FindAllStringSubmatch(parts, -1) {
		n[m[1]] = number(m[2])
	}
	skipped := min(u.pending, n["skipped"]+n["expected failures"])
	failed := min(u.pending-skipped, n["failures"]+n["errors"])
	u.all.add(u.pending-skipped-failed, failed, skipped)
}

func (u *unittest) tally() (Tally, bool) {
	t := u.all
	t.Source = "unittest"
	return t, u.seen
}
