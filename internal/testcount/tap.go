package testcount

import (
	"strings"
)

// The Test Anything Protocol, versions 13 and 14 (testanything.org): a plan, test points with
// directives, subtests four spaces deeper, YAML blocks two deeper.
var (
	tapVersion = pattern(`^ *TAP version 1[34]$`)
	tapPlan    = pattern(`^( *)1\.\.(\d{1,9})(?:\s*#.*)?$`)
	tapLine    = pattern(`^( *)(not ok|ok)\b(?: +(\d{1,9}))?(?: +-)?(?: +(.*))?$`)
	tapHash    = pattern(`(?:^|[^\\])# *(?i:(skip\w*|todo))\b.*$`)
)

// point is one test point.
type point struct {
	depth     int
	passed    bool
	directive string // "skip" or "todo", "" for none
	name      string
}

func (p point) ran() bool { return p.directive == "" }

// tapPoint reads a test point. "ok  \tpkg\t0.1s" of go is none.
func tapPoint(s string) (point, bool) {
	if trimmed := strings.TrimLeft(s, " "); !strings.HasPrefix(trimmed, "ok") && !strings.HasPrefix(trimmed, "not ok") {
		return point{}, false
	}
	m := tapLine().FindStringSubmatch(s)
	if m == nil || strings.Contains(s, "\t") || m[3] == "" && m[4] != "" && !strings.Contains(s, "ok - ") {
		return point{}, false
	}
	p := point{depth: len(m[1]) / 4, passed: m[2] == "ok", name: m[4]}
	if at := tapHash().FindStringSubmatchIndex(p.name); at != nil {
		p.directive = strings.ToLower(p.name[at[2]:at[3]])
		p.name = strings.TrimRight(strings.TrimSuffix(p.name[:at[2]], "#"), "# ")
	}
	return p, true
}

// tapDepth bounds how deep subtests are looked at; what is deeper counts as a diagnostic.
const tapDepth = 32

// tap counts test points that are no summary of subtests, and never more at the top than planned.
type tap struct {
	all     Tally
	below   [tapDepth + 1]int // points seen at each depth since the last one above it
	yaml    int               // indentation of the YAML block that is open; -1: none
	version bool
	plan    int // tests planned at the top, of all plans
	plans   int
	top     int // points at the top
	points  int // points at any depth, those that sum up others too
}

func newTAP() *tap { return &tap{yaml: -1} }

func (t *tap) line(s string) {
	if t.yaml >= 0 {
		if s == strings.Repeat(" ", t.yaml)+"..." {
			t.yaml = -1
		}
		return
	}
	trimmed := strings.TrimLeft(s, " ")
	switch {
	case trimmed == "---" && len(s) > len(trimmed) && t.points > 0:
		t.yaml = len(s) - len(trimmed)
	case strings.HasPrefix(trimmed, "TAP ") && tapVersion().MatchString(s):
		t.version = true
	case strings.HasPrefix(trimmed, "1.."):
		if m := tapPlan().FindStringSubmatch(s); m != nil && m[1] == "" {
			t.plan, t.plans = sum(t.plan, number(m[2])), t.plans+1
		}
	default:
		if p, ok := tapPoint(s); ok && p.depth < tapDepth {
			t.point(p)
		}
	}
}

func (t *tap) point(p point) {
	parent := t.below[p.depth+1] > 0
	clear(t.below[p.depth+1:])
	t.below[p.depth]++
	t.points++
	if p.depth == 0 {
		t.top++
	}
	switch {
	case parent:
	case !p.ran():
		t.all.add(0, 0, 1)
	case p.passed:
		t.all.add(1, 0, 0)
		t.all.name(p.name)
	default:
		t.all.add(0, 1, 0)
		t.all.name(p.name)
	}
}

func (t *tap) tally() (Tally, bool) {
	all := t.all
	all.Source = "TAP"
	if over := t.top - t.plan; t.plans > 0 && over > 0 {
		all.atMost(all.Ran() - over)
	}
	return all, t.plans > 0 && (t.version || t.points > 0 || t.plan == 0)
}
