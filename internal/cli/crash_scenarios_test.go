//go:build failpoint

package cli_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// leastPoints is how many points there are at least: one that is lost proves nothing any more.
const leastPoints = 240

// crashAgent commits at once, and leaves one file uncommitted.
const crashAgent = `#!/bin/sh
set -e
test -f step1 || { echo one > step1; git add step1; git commit -q -m 'step 1'; echo "STEP1 $(git rev-parse HEAD)"; }
echo fixed > answer
`

// midway is a point at which a session has made its commit and nothing of it is imported yet.
const midway = "before session agent ended true"

// scenarios are what is tried, in this order.
func scenarios() []scenario {
	return append(runScenarios(), peopleScenarios()...)
}

// runScenarios are ways of `interlock run`.
func runScenarios() []scenario {
	retry := strings.Replace(crashAgent, "echo fixed", `test "$INTERLOCK_ATTEMPT" = 1 || echo fixed`, 1) +
		"test -f step2 || { echo two > step2; git add step2; git commit -q -m 'step 2'; }\n"
	slow := crashAgent + "test \"$INTERLOCK_ATTEMPT\" -gt 1 || sleep 4\n"
	work := func(more ...string) func(*project) []string {
		return func(p *project) []string { return p.work(more...) }
	}
	many := work("--attempts", "9")
	return []scenario{
		{name: "propose", agent: crashAgent, command: many, codes: []int{0, 4}, check: (*project).once, first: true},
		{name: "resume", agent: crashAgent, begin: killedAt(midway), command: many, codes: []int{0, 4}, check: (*project).once, first: true},
		{name: "retry", agent: retry, command: many, codes: []int{0, 4}, check: (*project).once, first: true},
		{name: "renew", agent: slow, command: many, env: []string{"INTERLOCK_SOONER_RENEWALS=120"}, codes: []int{0, 4}, check: (*project).once, long: true, first: true},
		{name: "wiped", agent: crashAgent, begin: wiped, command: many, codes: []int{0, 4}, check: (*project).once, first: true},
		{name: "take over", agent: crashAgent, begin: abandoned, command: many, codes: []int{0, 4}, check: (*project).once},
		{name: "build", agent: crashAgent, command: work("--lane", "build"), codes: []int{0, 1}, check: rests("done", "Built "), first: true},
		{
			name: "park", agent: "#!/bin/sh\nexit 3\n", command: work("--attempts", "1"), codes: []int{8, 1},
			check: rests("parked", "attempts are used"),
		},
	}
}

// peopleScenarios are ways of what people type.
func peopleScenarios() []scenario {
	words := func(words ...string) func(*project) []string {
		return func(p *project) []string { return append(words, "--repo", p.repo) }
	}
	accept := words("change", "accept", "1")
	return []scenario{
		{
			name: "cancel", group: "cancel", agent: crashAgent, begin: killedAt(midway), command: words("cancel", "1", "--reason", "not needed"),
			codes: []int{0, 1}, check: rests("canceled", "not needed"), first: true,
		},
		{name: "accept", group: "accept", agent: crashAgent, begin: worked, command: accept, codes: []int{0, 1}, check: (*project).accepted, first: true},
		{
			name: "accept early", group: "accept", agent: crashAgent, begin: killedAt("after effect propose"), command: accept,
			codes: []int{0, 1}, check: (*project).accepted, first: true,
		},
		{
			name: "again", group: "again", agent: "#!/bin/sh\nexit 3\n", begin: parkedOnce, command: words("retry", "1", "--later"), codes: []int{0},
			check: (*project).askedOnce,
		},
		{name: "break", group: "break", agent: crashAgent, begin: deadElsewhere, command: breakClaim, codes: []int{0}, check: (*project).broken},
		{
			name: "restore", group: "restore", agent: crashAgent, begin: backedUp, command: restoreState, codes: []int{0},
			crashed: (*project).whole, check: (*project).restored, first: true,
		},
	}
}

// killedAt lets the engine be killed at a point.
func killedAt(point string) func(*project) *project {
	return func(p *project) *project {
		p.t.Helper()
		cmd, out := p.command([]string{"INTERLOCK_FAILPOINT=" + point}, p.work("--attempts", "9")...)
		if code := p.end(cmd, cmd.Run()); code != -int(syscall.SIGKILL) {
			p.t.Fatalf("not killed at %s: exit %d\n%s", point, code, out)
		}
		p.dead()
		return p
	}
}

// wiped is a killed engine whose claim somebody deletes.
func wiped(p *project) *project {
	p.t.Helper()
	killedAt(midway)(p)
	p.git("-C", p.repo, "update-ref", "-d", "refs/interlock/claims/1")
	return p
}

// abandoned is another installation, which has seen the claim of a killed engine stand still.
func abandoned(p *project) *project {
	p.t.Helper()
	other := deadElsewhere(p)
	other.must(3, p.work()...)
	other.age(16 * time.Minute)
	return other
}

// deadElsewhere is another installation than that of a killed engine.
func deadElsewhere(p *project) *project {
	p.t.Helper()
	return killedAt(midway)(p).elsewhere()
}

// worked is an issue whose change waits for a reviewer.
func worked(p *project) *project {
	p.t.Helper()
	p.must(0, p.work()...)
	return p
}

// parkedOnce is an issue whose only session brought nothing.
func parkedOnce(p *project) *project {
	p.t.Helper()
	p.must(8, p.work("--attempts", "1")...)
	return p
}

// askedOnce demands a parked run that is to go again, and was asked to once.
func (p *project) askedOnce() {
	p.t.Helper()
	var shown struct {
		Retry   string `json:"retry"`
		Allowed int    `json:"allowed"`
		History struct {
			Events []struct{ Kind string } `json:"events"`
		} `json:"history"`
	}
	p.json(&shown, "show", "1", "--repo", p.repo)
	asked := 0
	for _, e := range shown.History.Events {
		if e.Kind == "retried" {
			asked++
		}
	}
	if rows := p.runs(); len(rows) != 1 || asked != 1 || shown.Retry == "" || shown.Allowed != 2 {
		p.t.Errorf("asked %d times, %+v, runs %+v", asked, shown, rows)
	}
}

func breakClaim(p *project) []string {
	return []string{"claim", "break", "1", "--repo", p.repo, "--hash", p.holder(), "--reason", "that machine was sold"}
}

// holder is the first commit of the claim: what a person has looked at before it was broken.
func (p *project) holder() string {
	p.t.Helper()
	return strings.Fields(p.git("-C", p.repo, "rev-list", "--reverse", "refs/interlock/claims/1"))[0]
}

func (p *project) copyFile() string { return filepath.Join(filepath.Dir(p.state), "copy.db") }

// backedUp is a state with a copy, and with a run that the copy does not know to be in review.
func backedUp(p *project) *project {
	p.t.Helper()
	worked(p)
	p.must(0, "state", "backup", p.copyFile())
	return p
}

func restoreState(p *project) []string { return []string{"state", "restore", p.copyFile()} }

// rests demands one run in this state that gave everything back and said why, once.
func rests(state, why string) func(*project) {
	return func(p *project) {
		p.t.Helper()
		p.givenBack(state, why)
		if got := p.refs("refs/interlock/changes/"); len(got) != 0 {
			p.t.Errorf("changes %q, want none", got)
		}
	}
}

// accepted demands that the change is in the base, that its issue is closed and its run is done.
func (p *project) accepted() {
	p.t.Helper()
	if rows := p.runs(); len(rows) != 1 || rows[0].State != "done" {
		p.t.Errorf("runs: %+v, want one done", rows)
	}
	if got := p.git("-C", p.repo, "rev-parse", "main"); got != p.git("-C", p.repo, "rev-parse", "interlock/issue-1") {
		p.t.Errorf("main is at %s, not at the branch of the change", got)
	}
	if dirty := p.git("-C", p.repo, "status", "--porcelain"); dirty != "" {
		p.t.Errorf("the work tree is not clean: %s", dirty)
	}
	if labels, assignees, _ := p.issue(); len(labels)+len(assignees) != 0 {
		p.t.Errorf("the closed issue has labels %q, assignees %q", labels, assignees)
	}
	p.state1("issue", "closed")
	p.state1("change", "merged")
	if heads := p.refs("refs/interlock/heads/"); len(heads) != 0 {
		p.t.Errorf("the head is not free: %q", heads)
	}
	if !p.claim().Released {
		p.t.Error("the claim is not released")
	}
}

// state1 demands the state of issue 1 or change 1.
func (p *project) state1(what, want string) {
	p.t.Helper()
	var shown struct {
		State string `json:"state"`
	}
	p.json(&shown, what, "show", "1", "--repo", p.repo)
	if shown.State != want {
		p.t.Errorf("%s 1 is %q, want %q", what, shown.State, want)
	}
}

// broken demands a claim that was given up on a person's word, and an issue that was told.
func (p *project) broken() {
	p.t.Helper()
	if s := p.claim(); !s.Released || s.Generation != 2 {
		p.t.Errorf("the claim: %+v", s)
	}
	labels, assignees, comments := p.issue()
	if n := strings.Count(strings.Join(comments, "\n"), "that machine was sold"); n != 1 || len(labels)+len(assignees) != 0 {
		p.t.Errorf("told %d times, labels %q, assignees %q", n, labels, assignees)
	}
}

// whole demands a database that is there and can be worked with.
func (p *project) whole() {
	p.t.Helper()
	p.must(0, "state", "check")
}

// restored demands a state that is whole and knows what it knew.
func (p *project) restored() {
	p.t.Helper()
	p.whole()
	p.once()
	p.must(4, p.work()...)
}
