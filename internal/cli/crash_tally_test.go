//go:build failpoint

package cli_test

import (
	"fmt"
	"strings"
)

// tally counts what a project has in the end. It is compared with that of the same way without a
// crash: what was done twice, or not at all, makes another number.
type tally struct {
	runs      int
	claims    int // nonces that ever held the claim of issue 1
	releases  int // commits by which it was given back
	branches  int
	changes   int
	edits     int // commits of the issue and of the changes: one for each time that one was written
	comments  int
	marks     int // assignees and labels
	commits   int // above the base, on all branches of runs
	settled   int // effects
	pending   int // effects
	processes int // of sessions, alive
	live      int // sessions that are not recorded as ended
}

const tallyHead = "runs claims releases branches changes edits comments marks commits settled pending processes live"

func (c tally) String() string {
	var b strings.Builder
	counts := []int{c.runs, c.claims, c.releases, c.branches, c.changes, c.edits, c.comments, c.marks, c.commits, c.settled, c.pending, c.processes, c.live}
	for i, name := range strings.Fields(tallyHead) {
		fmt.Fprintf(&b, "%*d ", len(name), counts[i])
	}
	return strings.TrimSuffix(b.String(), " ")
}

// counts counts it.
func (p *project) counts() (c tally) {
	p.t.Helper()
	runs := p.runs()
	c.runs, c.processes = len(runs), len(p.processes())
	labels, assignees, comments := p.issue()
	c.comments, c.marks = len(comments), len(labels)+len(assignees)
	written := []string{"refs/interlock/issues/1"}
	branches := []string{"main"}
	for _, ref := range p.refs("refs/") {
		switch {
		case strings.HasPrefix(ref, "refs/heads/interlock/"):
			c.branches++
			branches = append(branches, ref)
		case strings.HasPrefix(ref, "refs/interlock/changes/"):
			c.changes++
			written = append(written, ref)
		}
	}
	c.edits = p.count(written...)
	c.commits = p.count(branches...) - p.base()
	nonces := map[string]bool{}
	for line := range strings.Lines(p.git("-C", p.repo, "log", "--format=%B", "refs/interlock/claims/1")) {
		_, rest, ok := strings.Cut(line, `"nonce":"`)
		if !ok {
			continue
		}
		if strings.Contains(line, `"state":"released"`) {
			c.releases++
		} else {
			nonces[rest[:32]] = true
		}
	}
	c.claims = len(nonces)
	for _, r := range runs {
		p.effects(r.ID, &c)
	}
	return c
}

// base is how many commits the operator has made.
func (p *project) base() int {
	p.t.Helper()
	return strings.Count(p.git("-C", p.repo, "log", "--format=%an", "main")+"\n", "T\n")
}

// count returns how many commits there are below these refs.
func (p *project) count(refs ...string) (n int) {
	p.t.Helper()
	if _, err := fmt.Sscan(p.git(append([]string{"-C", p.repo, "rev-list", "--count"}, refs...)...), &n); err != nil {
		p.t.Fatal(err)
	}
	return n
}

// effects counts the effects and sessions of a run.
func (p *project) effects(run string, c *tally) {
	p.t.Helper()
	var shown struct {
		History struct {
			Effects []struct {
				Status string `json:"status"`
			} `json:"effects"`
			Sessions []struct {
				Ended bool `json:"ended"`
			} `json:"sessions"`
		} `json:"history"`
	}
	p.json(&shown, "show", run)
	for _, e := range shown.History.Effects {
		switch e.Status {
		case "settled":
			c.settled++
		case "pending":
			c.pending++
		}
	}
	for _, s := range shown.History.Sessions {
		if !s.Ended {
			c.live++
		}
	}
}
