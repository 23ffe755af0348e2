// Package testcount reads how many tests ran out of what test runners print (Text) and out of the
// JUnit files that they write (Reports). It runs nothing, opens nothing, and believes little: the
// code under test can print and write whatever a runner can, so a count is a tripwire and never a
// proof. Where one runner says two numbers, the lower one counts.
package testcount

import (
	"maps"
	"slices"
	"strings"
)

// Limits of what is kept in memory. What is beyond them is not counted, and said by Cut.
const (
	maxNames = 200_000
	maxName  = 1 << 10  // bytes of one name
	maxLine  = 4 << 10  // bytes of a line that are looked at
	maxBytes = 32 << 20 // bytes of all names of a tally
	// maxSummary is longer than any line with numbers of tests.
	maxSummary = 512
)

// Tally is what one runner said.
type Tally struct {
	Source  string         // the runner or the format, for people
	Passed  int            // ran, and no failure is known
	Failed  int            // ran and failed, or could not be set up
	Skipped int            // was there and did not run, or was not expected to pass
	Names   map[string]int // how many tests of each name ran; empty where the format has no names
	Cut     bool           // not all of it was counted, or not all names are known

	bytes int
}

// Ran is how many tests ran, whatever came of them.
func (t Tally) Ran() int { return t.Passed + t.Failed }

// add counts tests; a nonsensical number counts nothing.
func (t *Tally) add(passed, failed, skipped int) {
	t.Passed = sum(t.Passed, passed)
	t.Failed = sum(t.Failed, failed)
	t.Skipped = sum(t.Skipped, skipped)
}

const most = 1 << 30 // tests: more than any runner has, and sums of it do not overflow

func sum(a, b int) int { return min(most, a+max(0, min(most, b))) }

// name remembers a test that ran.
func (t *Tally) name(name string) {
	if name = strings.TrimSpace(name); name == "" {
		return
	}
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "")
	}
	if _, there := t.Names[name]; !there {
		if len(t.Names) >= maxNames || t.bytes+len(name) > maxBytes {
			t.Cut = true
			return
		}
		if t.Names == nil {
			t.Names = map[string]int{}
		}
		t.Names[strings.Clone(name)] = 0
		t.bytes += len(name)
	}
	t.Names[name]++
}

// atMost lowers a tally so that no more than n tests ran.
func (t *Tally) atMost(n int) {
	over := max(0, t.Ran()-max(0, n))
	fewer := min(over, t.Passed)
	t.Passed -= fewer
	t.Failed -= over - fewer
}

// Missing lists the names of which fewer tests ran in now than in before, sorted; one that ran
// more than once less is there once.
func Missing(before, now map[string]int) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if now[name] < before[name] {
			out = append(out, name)
		}
	}
	return out
}
