package testcount

import (
	"strings"
)

// What the test harness of Rust prints for each binary and for the tests in documents.
var (
	cargoBegin  = pattern(`^running (\d{1,9}) tests?$`)
	cargoTest   = pattern(`^test (.+?) \.\.\. (ok|FAILED|ignored)(?:, .*| <.*>)?$`)
	cargoResult = pattern(`^test result: (?:ok|FAILED)\. (\d{1,9}) passed; (\d{1,9}) failed; (\d{1,9}) ignored; \d+ measured; \d+ filtered out`)
	cargoLine   = pattern(` \(line \d+\)`)
)

// cargo counts a result only after the line that says how many tests begin, and never more.
type cargo struct {
	all   Tally
	begun int
	open  bool
	seen  bool
}

func (c *cargo) line(s string) {
	if !strings.HasPrefix(s, "running ") && !strings.HasPrefix(s, "test ") {
		return
	}
	if m := cargoBegin().FindStringSubmatch(s); m != nil {
		c.begun, c.open = number(m[1]), true
		return
	}
	if !c.open {
		return
	}
	if m := cargoResult().FindStringSubmatch(s); m != nil {
		var t Tally
		t.add(number(m[1]), number(m[2]), number(m[3]))
		t.atMost(c.begun)
		c.all.add(t.Passed, t.Failed, t.Skipped)
		c.open, c.seen = false, true
	} else if m := cargoTest().FindStringSubmatch(s); m != nil && m[2] != "ignored" {
		name := strings.TrimSuffix(m[1], " - should panic")
		c.all.name(cargoLine().ReplaceAllString(name, ""))
	}
}

func (c *cargo) tally() (Tally, bool) {
	t := c.all
	t.Source = "cargo test"
	return t, c.seen
}

// What `go test -v` prints. Without -v nothing in its output says how many tests ran.
var (
	goTestEnd    = pattern(`^ *--- (PASS|FAIL|SKIP): (\S+) \(\d+\.\d+s\)$`)
	goPackageEnd = pattern(`^(?:ok  |FAIL)\t(\S+)\t`)
)

type goText struct {
	all     Tally
	pending []string // tests of the package whose last line is to come
	seen    bool
}

func (g *goText) line(s string) {
	if strings.HasPrefix(s, "ok  \t") || strings.HasPrefix(s, "FAIL\t") {
		if m := goPackageEnd().FindStringSubmatch(s); m != nil {
			g.close(m[1])
		}
		return
	}
	if !strings.Contains(s, "--- ") {
		return
	}
	m := goTestEnd().FindStringSubmatch(s)
	if m == nil {
		return
	}
	g.seen = true
	switch m[1] {
	case "SKIP":
		g.all.add(0, 0, 1)
		return
	case "FAIL":
		g.all.add(0, 1, 0)
	default:
		g.all.add(1, 0, 0)
	}
	if len(g.pending) < maxNames {
		g.pending = append(g.pending, m[2])
	}
}

func (g *goText) close(pkg string) {
	for _, name := range g.pending {
		g.all.name(pkg + " " + name)
	}
	g.pending = g.pending[:0]
}

func (g *goText) tally() (Tally, bool) {
	g.close("")
	t := g.all
	t.Source = "go test -v"
	return t, g.seen
}
