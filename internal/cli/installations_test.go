package cli_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// engines counts what became of the engines that one installation started.
type engines struct {
	started, killed int
	exits           map[int]int
	odd             []string // ends that this test does not expect
}

// until works issue after issue until none is left, and kills so many of its engines at random
// moments.
func (p *project) until(kills int, rnd *rand.Rand, deadline time.Time) engines {
	e := engines{exits: map[int]int{}}
	for time.Now().Before(deadline) {
		cmd, out := p.command(nil, "run", "--repo", p.repo, "--next", "--attempts", "30", "--command", "echo fixed > answer",
			"--checks", "grep -qx fixed answer", "--sandbox", p.level)
		if err := cmd.Start(); err != nil {
			e.odd = append(e.odd, err.Error())
			return e
		}
		e.started++
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		var kill <-chan time.Time
		if e.killed < kills && rnd.IntN(2) == 0 {
			kill = time.After(time.Duration(rnd.IntN(2500)) * time.Millisecond)
		}
		var err error
		select {
		case err = <-done:
		case <-kill:
			_ = cmd.Process.Kill()
			err = <-done
		}
		code := p.end(cmd, err)
		e.exits[code]++
		switch {
		case code == -9:
			e.killed++
		case code == 1 && strings.Contains(out.String(), "no eligible issue"):
			return e
		case code != 0 && code != 3 && !strings.Contains(out.String(), "was opened while it was being claimed"):
			e.odd = append(e.odd, fmt.Sprintf("exit %d:\n%s", code, out))
		}
	}
	e.odd = append(e.odd, "not done in time")
	return e
}

// TestTwoInstallations30: two installations that share one bare repository and nothing else work
// its 30 issues, while their engines are killed at random moments. Each issue is claimed and
// proposed once, and nothing is left over.
func TestTwoInstallations30(t *testing.T) {
	t.Parallel()
	const issues, kills = 30, 8
	p := newProject(t, slowAgent, "one of many")
	bare := filepath.Join(t.TempDir(), "remote.git")
	p.git("clone", "-q", "--bare", p.repo, bare)
	p.git("-C", bare, "fetch", "-q", "origin", "refs/interlock/*:refs/interlock/*") // its first issue
	p.repo = bare
	for range issues - 1 {
		p.must(0, "issue", "new", "--repo", p.repo, "--title", "The answer is wrong")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	both := []*project{p, p.elsewhere()}
	did := make([]engines, len(both))
	begin := time.Now()
	var wg sync.WaitGroup
	for i, one := range both {
		wg.Go(func() { did[i] = one.until(kills, rand.New(rand.NewPCG(seed, uint64(i))), begin.Add(210*time.Second)) })
	}
	wg.Wait()
	for i, e := range did {
		t.Logf("installation %d: %d engines, %d killed, exits %v", i+1, e.started, e.killed, e.exits)
		for _, odd := range e.odd {
			t.Errorf("installation %d: %s", i+1, odd)
		}
	}
	claims, changes := p.tally(issues)
	for _, one := range both {
		one.dead()
		for _, r := range one.runs() {
			if r.State != "in review" && r.State != "canceled" && r.State != "parked" {
				t.Errorf("a run is left: %+v", r)
			}
		}
	}
	t.Logf("%d issues, %d claims, %d changes, %d engines killed, in %s", issues, claims, changes,
		did[0].killed+did[1].killed, time.Since(begin).Round(time.Second))
}

// tally counts what is in the repository after all issues were worked: every claim given back, one
// change and one branch for each issue, no mark and no comment left over.
func (p *project) tally(issues int) (claims, changes int) {
	p.t.Helper()
	var held []struct {
		Issue    int64  `json:"issue"`
		Released bool   `json:"released"`
		Damage   string `json:"damage"`
		Wiped    bool   `json:"wiped"`
	}
	p.json(&held, "claim", "show", "--all", "--repo", p.repo)
	for _, c := range held {
		if !c.Released || c.Damage != "" || c.Wiped {
			p.t.Errorf("a claim is left: %+v", c)
		}
	}
	var proposed []struct {
		Issue int64  `json:"issue"`
		Head  string `json:"head"`
		State string `json:"state"`
	}
	p.json(&proposed, "change", "list", "--state", "all", "--repo", p.repo)
	of := map[int64]int{}
	for _, c := range proposed {
		of[c.Issue]++
		if c.State != "open" || of[c.Issue] > 1 {
			p.t.Errorf("change %+v, number %d of its issue", c, of[c.Issue])
		}
	}
	if refs := p.refs("refs/interlock/claims/"); len(held) != issues || len(refs) != issues {
		p.t.Errorf("%d claims shown, %d refs, want %d", len(held), len(refs), issues)
	}
	if branches := p.refs("refs/heads/interlock/"); len(proposed) != issues || len(branches) != issues {
		p.t.Errorf("%d changes, %d branches, want %d", len(proposed), len(branches), issues)
	}
	var listed []struct {
		Number    int64    `json:"number"`
		Labels    []string `json:"labels"`
		Assignees []string `json:"assignees"`
		Comments  []struct{ Key, Body string }
	}
	p.json(&listed, "issue", "list", "--repo", p.repo)
	for _, is := range listed {
		seen := map[string]bool{}
		for _, c := range is.Comments {
			if seen[c.Body] {
				p.t.Errorf("issue %d: comment twice: %q", is.Number, c.Body)
			}
			seen[c.Body] = true
		}
		if len(is.Assignees) != 0 || len(is.Labels) != 1 || is.Labels[0] != "interlock/in-review" {
			text, _ := json.Marshal(is)
			p.t.Errorf("a mark is left: %s", text)
		}
	}
	return len(held), len(proposed)
}
