package testcount

import (
	"strings"
	"unicode/utf8"
)

// mark is how node, jest, vitest and mocha begin the line of one test.
var mark = pattern(`^ *([✔✓√✖✕×﹣○▶]) (.+?)(?: \(?\d[\d.]* ?m?s\)?)?(?: # (?:SKIP|TODO)\b.*)?$`)

// marked returns the name of the test on a line, and whether it ran.
func marked(s string) (name string, ran, ok bool) {
	if first := strings.TrimLeft(s, " "); first == "" || first[0] < utf8.RuneSelf {
		return "", false, false
	}
	m := mark().FindStringSubmatch(s)
	if m == nil || m[1] == "▶" {
		return "", false, false
	}
	skipped := m[1] == "﹣" || m[1] == "○" || strings.Contains(s, " # SKIP") || strings.Contains(s, " # TODO")
	return m[2], !skipped, true
}

// The end of what node's own test runner prints: "ℹ tests 10" or, as TAP, "# tests 10".
var nodeSummary = pattern(`^(?:ℹ|#) (tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) (\d{1,9})(?:\.\d+)?$`)

func nodeLine(s string) []string {
	if len(s) > maxSummary || !strings.HasPrefix(s, "#") && !strings.HasPrefix(s, "ℹ") {
		return nil
	}
	return nodeSummary().FindStringSubmatch(s)
}

var nodeOrder = []string{"tests", "suites", "pass", "fail", "cancelled", "skipped", "todo"}

// marks are the tests that were printed one by one, by any of these runners.
type marks struct {
	all     Tally
	points  int
	listing bool // in node's list of failures, which says them again
}

func (m *marks) line(s string) {
	switch {
	case s == "✖ failing tests:":
		m.listing = true
	case m.listing && nodeLine(s) != nil: // the next session has ended
		m.listing = false
	case m.listing:
	default:
		if name, ran, ok := marked(s); ok {
			m.points++
			if ran {
				m.all.name(name)
			}
		}
	}
}

// nodeTest adds up the summaries, of which each is whole and in order, and counts no more tests
// than were printed one by one.
type nodeTest struct {
	all   Tally
	marks *marks
	tap   *tap
	block []int
	seen  bool
}

func (n *nodeTest) line(s string) {
	if m := nodeLine(s); m != nil {
		n.summary(m[1], number(m[2]))
		return
	}
	n.block = nil
}

func (n *nodeTest) summary(word string, count int) {
	if len(n.block) >= len(nodeOrder) || nodeOrder[len(n.block)] != word {
		n.block = nil
	}
	if n.block == nil && word != "tests" {
		return
	}
	if n.block = append(n.block, count); len(n.block) < len(nodeOrder) {
		return
	}
	b := n.block
	n.all.add(b[2], b[3]+b[4], b[5]+b[6])
	n.seen, n.block = true, nil
}

func (n *nodeTest) tally() (Tally, bool) {
	t := n.all
	t.Source = "node --test"
	if points := n.marks.points + n.tap.points; points > 0 {
		t.atMost(points)
	}
	if t.Names = n.marks.all.Names; len(t.Names) == 0 {
		t.Names = n.tap.all.Names
	}
	return t, n.seen
}

// The end of what jest prints: "Test Suites: ..." and then "Tests: 1 failed, 8 passed, 9 total".
var jestTests = pattern(`^Tests: +((?:\d{1,9} [a-z]+, )*)(\d{1,9}) total$`)

type jest struct {
	all    Tally
	marks  *marks
	suites bool // the line before was that of the suites
	seen   bool
}

func (j *jest) line(s string) {
	after := j.suites
	j.suites = strings.HasPrefix(s, "Test Suites: ") && strings.HasSuffix(s, " total")
	if s == "No tests found, exiting with code 0" || s == "No tests found, exiting with code 1" {
		j.seen = true
		return
	}
	if !after || len(s) > maxSummary {
		return
	}
	m := jestTests().FindStringSubmatch(s)
	if m == nil {
		return
	}
	j.seen = true
	n := countsOf(m[1])
	var t Tally
	t.add(n["passed"], n["failed"], n["skipped"]+n["todo"])
	t.atMost(number(m[2]))
	j.all.add(t.Passed, t.Failed, t.Skipped)
}

func (j *jest) tally() (Tally, bool) {
	t := j.all
	t.Source, t.Names = "jest", j.marks.all.Names
	return t, j.seen
}

// The end of what vitest prints: "Test Files  3 passed (3)", "Tests  1 failed | 8 passed (9)".
var (
	vitestFiles = pattern(`^ *Test Files  .*\(\d+\)$`)
	vitestTests = pattern(`^ *Tests  ((?:\d{1,9} [a-z]+(?: \| )?)+) \((\d{1,9})\)$`)
)

type vitest struct {
	all   Tally
	marks *marks
	files bool
	seen  bool
}

func (v *vitest) line(s string) {
	after := v.files
	v.files = len(s) <= maxSummary && strings.Contains(s, "Test Files  ") && vitestFiles().MatchString(s)
	if strings.HasPrefix(s, "No test files found, exiting with code ") {
		v.seen = true
		return
	}
	if !after || len(s) > maxSummary {
		return
	}
	m := vitestTests().FindStringSubmatch(s)
	if m == nil {
		return
	}
	v.seen = true
	n := countsOf(m[1])
	var t Tally
	t.add(n["passed"], n["failed"], n["skipped"]+n["todo"])
	t.atMost(number(m[2]))
	v.all.add(t.Passed, t.Failed, t.Skipped)
}

func (v *vitest) tally() (Tally, bool) {
	t := v.all
	t.Source = "vitest"
	t.Names = nil
	for name, n := range v.marks.all.Names {
		if strings.Contains(name, " > ") { // else it is a file, which is marked too
			if t.Names == nil {
				t.Names = map[string]int{}
			}
			t.Names[name] = n
		}
	}
	return t, v.seen
}

// The end of what mocha prints: "  5 passing (12ms)", then "  1 pending", "  2 failing".
var (
	mochaPassing = pattern(`^  (\d{1,9}) passing \(\d+(?:ms|s|m|h)\)$`)
	mochaMore    = pattern(`^  (\d{1,9}) (pending|failing)$`)
)

type mocha struct {
	all   Tally
	marks *marks
	open  bool // in the lines of a summary
	seen  bool
}

func (m *mocha) line(s string) {
	if len(s) > maxSummary || !strings.HasPrefix(s, "  ") {
		m.open = false
		return
	}
	if found := mochaPassing().FindStringSubmatch(s); found != nil {
		m.seen, m.open = true, true
		m.all.add(number(found[1]), 0, 0)
		return
	}
	found := mochaMore().FindStringSubmatch(s)
	switch {
	case found == nil || !m.open:
		m.open = false
	case found[2] == "pending":
		m.all.add(0, 0, number(found[1]))
	default:
		m.all.add(0, number(found[1]), 0)
	}
}

func (m *mocha) tally() (Tally, bool) {
	t := m.all
	t.Source = "mocha"
	t.Names = m.marks.all.Names
	if m.marks.points > 0 { // its usual reporter marks what passes, and nothing else
		t.Passed = min(t.Passed, m.marks.points)
	}
	return t, m.seen
}
