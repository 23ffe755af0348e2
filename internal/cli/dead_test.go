package cli_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// TestDeadRunIsShownAsDead: while its engine lives a run is shown as it is; once that is killed, all
// that looks at the run says that it has stopped, and the command that is named goes on with it.
func TestDeadRunIsShownAsDead(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "HURRY")
	s := p.start(p.work()...)
	id := p.runs()[0].ID
	type stopped struct {
		Stopped string `json:"stopped"`
		Next    string `json:"next"`
		Dead    bool   `json:"dead"`
	}
	look := func() (all []stopped, shown, claim stopped) {
		p.json(&all, "runs", "--live")
		p.json(&shown, "show", id)
		p.json(&claim, "claim", "show", "1", "--repo", p.repo)
		return all, shown, claim
	}
	if all, shown, claim := look(); len(all) != 1 || all[0].Stopped != "" || shown.Stopped != "" || claim.Dead {
		t.Errorf("a run that lives: listed %+v, shown %+v, claim %+v", all, shown, claim)
	}
	if out := p.must(0, "show", id); strings.Contains(out, "stopped") {
		t.Errorf("a run that lives:\n%s", out)
	}
	pid := s.cmd.Process.Pid
	s.signal(syscall.SIGKILL)
	s.wait()
	next := fmt.Sprintf("interlock run --repo %s --issue 1 --state-dir %s", p.repo, p.state)
	why := fmt.Sprintf("process %d is gone", pid)
	if all, shown, claim := look(); len(all) != 1 || all[0].Stopped != why || shown.Stopped != why || shown.Next != next || !claim.Dead {
		t.Errorf("a run that is dead: listed %+v, shown %+v, claim %+v", all, shown, claim)
	}
	for want, out := range map[string]string{
		"implementing (dead) ":                   p.must(0, "runs", "--live"),
		"  why       stopped: " + why + " (":     p.must(0, "show", id),
		"  next      " + next + "\n":             p.must(0, "show", id),
		"the next run from this state directory": p.must(0, "claim", "show", "1", "--repo", p.repo),
	} {
		if !strings.Contains(out, want) {
			t.Errorf("not said: %q\n%s", want, out)
		}
	}
	if out := p.must(0, "claim", "show", "1", "--repo", p.repo); strings.Contains(out, "claim break") || strings.Contains(out, "does not move") {
		t.Errorf("a dead holder of our own:\n%s", out)
	}
	var theirs stopped
	other := p.elsewhere()
	if other.json(&theirs, "claim", "show", "1", "--repo", p.repo); theirs.Dead {
		t.Error("for another installation the claim is one of its own dead")
	}
	p.must(0, strings.Fields(next)[1:]...)
	p.once()
	p.dead()
}
