package cli_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// answer is what these tests read of what explain says.
type answer struct {
	Run       string `json:"run"`
	State     string `json:"state"`
	Why       string `json:"why"`
	Next      string `json:"next"`
	Startable bool   `json:"startable"`
	Driven    bool   `json:"driven"`
}

// why asks for the reason, and demands that one is given, with a command to type.
func (p *project) why(what string) (a answer) {
	p.t.Helper()
	p.json(&a, "explain", what, "--repo", p.repo)
	if a.Why == "" || !strings.HasPrefix(a.Next, "interlock ") {
		p.t.Errorf("explain %s gives no reason, or nothing to type: %+v", what, a)
	}
	return a
}

// TestExplainLiving: an issue that is worked is explained by who works it, one whose process died by
// that, and the command that is named goes on with it. Whoever watches it is told.
func TestExplainLiving(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "slowly")
	first := p.start(p.work()...)
	a := p.why("1")
	if !a.Driven || a.Startable || a.State != "implementing" || !strings.Contains(a.Why, "works on it") || !strings.HasPrefix(a.Next, "interlock watch "+a.Run+" --state-dir "+p.state) {
		t.Errorf("while it is worked: %+v", a)
	}
	watch, seen := p.command(nil, "watch", "--repo", p.repo)
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	first.signal(syscall.SIGKILL)
	first.wait()
	p.dead()
	if code := p.end(watch, watch.Wait()); code != 1 || !strings.Contains(seen.String(), "nobody drives it any more") || !strings.Contains(seen.String(), "session started") {
		t.Errorf("the watch ended with %d:\n%s", code, seen)
	}
	if a = p.why(a.Run); a.Driven || !a.Startable || !strings.Contains(a.Why, "is gone") {
		t.Errorf("after its death: %+v", a)
	}
	p.write(p.agent, slowAgent, 0o755)
	p.type1(0, a.Next)
	p.once()
	if a = p.why("1"); a.State != "in review" || a.Startable || !strings.Contains(a.Why, "waits for a reviewer") {
		t.Errorf("in review: %+v", a)
	}
	p.type1(0, a.Next)
}

// type1 types a command line that was printed, and demands its exit code.
func (p *project) type1(code int, line string) string {
	p.t.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.Env = append(cmd.Environ(), "XDG_CONFIG_HOME="+p.config())
	cmd.Dir = p.repo
	out, err := cmd.CombinedOutput()
	if got := p.end(cmd, err); got != code {
		p.t.Fatalf("%s: exit %d, want %d\n%s", line, got, code, out)
	}
	return string(out)
}

// TestExplainResting: never picked, parked, changed, to go again, canceled, closed.
func TestExplainResting(t *testing.T) {
	t.Parallel()
	p := newProject(t, "#!/bin/sh\nexit 1\n", "never works")
	p.file("The other one")
	if a := p.why("2"); a.State != "never picked" || !a.Startable || !strings.Contains(a.Why, "1 open issues have lower numbers") {
		t.Errorf("never picked: %+v", a)
	}
	p.must(8, p.work("--attempts", "1")...)
	a := p.why("1")
	if a.State != "parked" || a.Startable || !strings.Contains(a.Why, "nothing it depends on has changed") {
		t.Errorf("parked: %+v", a)
	}
	if by := p.why(a.Run); by != a {
		t.Errorf("by its run: %+v, by its issue: %+v", by, a)
	}
	p.commit("other", "text\n")
	if a = p.why("1"); a.Startable || !strings.Contains(a.Why, "sessions that issue 1 may have are used") {
		t.Errorf("after the base has moved: %+v", a)
	}
	old := a.Run
	p.must(8, "retry", "1", "--repo", p.repo)
	if a = p.why(old); a.Run != old || !strings.Contains(a.Why, "was worked again by run") || !strings.Contains(a.Next, "explain "+p.runs()[0].ID) {
		t.Errorf("a run that is not the newest: %+v", a)
	}
	p.must(0, "issue", "close", "1", "--repo", p.repo)
	if a = p.why("1"); a.State != "closed" || a.Startable || !strings.Contains(a.Why, "is closed") {
		t.Errorf("closed: %+v", a)
	}
	p.must(1, "explain", "7", "--repo", p.repo)
	p.must(1, "explain", "7-none", "--repo", p.repo)
}

// TestClosedChange: of a run in review whose change was closed, explain, show and
// watch say so, and name a command that goes on from there.
func TestClosedChange(t *testing.T) {
	t.Parallel()
	p := newProject(t, quick, "")
	p.must(0, p.work()...)
	id := p.runs()[0].ID
	everywhere := func(says, next string, typed int) {
		t.Helper()
		a := p.why("1")
		if !strings.Contains(a.Why, says) || strings.Contains(a.Why, "waits for a reviewer") || !strings.HasPrefix(a.Next, next) {
			t.Errorf("explain: %+v", a)
		}
		for _, verb := range []string{"show", "watch"} {
			out, told := p.must(0, verb, id), ""
			if _, told, _ = strings.Cut(out, "issue 1"); verb == "show" {
				told, _, _ = strings.Cut(told, "events:")
			} else { // what was recorded comes before how it rests
				_, told, _ = strings.Cut(told, "issue 1: in review")
			}
			if !strings.Contains(told, says) || strings.Contains(told, "waits for a reviewer") || strings.Contains(told, "change accept") || !strings.Contains(told, next) {
				t.Errorf("%s does not say %q, next %q:\n%s", verb, says, next, out)
			}
		}
		p.type1(typed, a.Next)
	}
	p.must(0, "change", "close", "1", "--repo", p.repo)
	p.must(0, "issue", "close", "1", "--repo", p.repo)
	everywhere("change 1 was closed, not merged", "interlock issue show 1", 0)
	p = newProject(t, quick, "")
	p.must(0, p.work()...)
	id = p.runs()[0].ID
	p.must(0, "change", "close", "1", "--repo", p.repo)
	if out := p.must(0, "show", id); !strings.Contains(out, "then      to give it up instead: interlock issue close 1 --repo ") {
		t.Errorf("the other way out:\n%s", out)
	}
	everywhere("change 1 was closed, not merged", "interlock retry "+id, 0)
	if rows := p.runs(); len(rows) != 2 || rows[0].State != "in review" {
		t.Errorf("after the retry: %+v", rows)
	}
	if out := p.must(0, "show", id); !strings.Contains(out, "next      interlock explain "+p.runs()[0].ID) {
		t.Errorf("of a run that is not the newest:\n%s", out)
	}
}

// TestExplainHeldElsewhere: an issue that another installation holds by its claim.
func TestExplainHeldElsewhere(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "slowly")
	first := p.start(p.work()...)
	other := *p
	other.state = p.state + "-2"
	if a := other.why("1"); a.State != "never picked" || a.Startable || !strings.Contains(a.Why, "of installation") || !strings.Contains(a.Next, "claim show 1") {
		t.Errorf("held by another installation: %+v", a)
	} else {
		other.type1(0, a.Next)
	}
	first.signal(syscall.SIGINT)
	first.wait()
}

// TestRetryOnce: of many who ask that a run goes again one counts, the wish outlives its process,
// one more session is started for it and no second one, and what it did is said.
func TestRetryOnce(t *testing.T) {
	t.Parallel()
	p := newProject(t, "#!/bin/sh\nexit 1\n", "never works")
	p.must(8, p.work("--attempts", "1")...)
	id := p.runs()[0].ID
	p.must(1, p.work("--attempts", "1")...)
	var wait sync.WaitGroup
	asked := make(chan bool, 5)
	for range 5 {
		wait.Go(func() {
			var told struct {
				Retry struct {
					Asked   bool     `json:"asked"`
					Changed []string `json:"changed"`
					Allowed int      `json:"allowed"`
				} `json:"retry"`
			}
			cmd := exec.Command("interlock", "--state-dir", p.state, "retry", id, "--later", "--json")
			out, err := cmd.Output()
			for code := p.end(cmd, err); code == 3; code = p.end(cmd, err) { // another one was saving it just then
				cmd = exec.Command("interlock", "--state-dir", p.state, "retry", id, "--later", "--json")
				out, err = cmd.Output()
			}
			if err != nil || json.Unmarshal(out, &told) != nil || told.Retry.Allowed != 2 || len(told.Retry.Changed) != 0 {
				t.Errorf("retry: %v\n%s", err, out)
			}
			asked <- told.Retry.Asked
		})
	}
	wait.Wait()
	close(asked)
	count := 0
	for a := range asked {
		if a {
			count++
		}
	}
	if count != 1 {
		t.Errorf("%d of 5 were told that theirs is the one that counts", count)
	}
	if a := p.why("1"); !a.Startable || !strings.Contains(a.Why, "it is to go again") {
		t.Errorf("to go again: %+v", a)
	}
	p.must(8, p.next("--attempts", "1")...) // whoever comes next does it
	if rows := p.runs(); len(rows) != 2 || rows[0].Spent != 2 || rows[0].Attempt != 1 {
		t.Errorf("after the retry: %+v", rows)
	}
	if out := p.must(1, p.work("--attempts", "1")...); !strings.Contains(out, "nothing it depends on has changed") {
		t.Errorf("the wish is used up:\n%s", out)
	}
	if out := p.must(1, "retry", id, "--repo", p.repo); !strings.Contains(out, "was worked again since") || !strings.Contains(out, "next: interlock explain "+p.runs()[0].ID) {
		t.Errorf("a run that is not the newest:\n%s", out)
	}
	if len(p.runs()) != 2 {
		t.Errorf("a refused retry started something: %+v", p.runs())
	}
}

// TestRetryGoesOn: a retry works at once, with the settings that the run had, and says what has
// changed; what is in review or done it refuses, and a run that is driven is not its to start.
func TestRetryGoesOn(t *testing.T) {
	t.Parallel()
	p := newProject(t, "#!/bin/sh\nexit 1\n", "works at last")
	p.must(8, p.work("--attempts", "1")...)
	p.commit("other", "text\n")
	p.write(p.agent, quick, 0o755)
	out := p.must(0, "retry", "1", "--repo", p.repo)
	if !strings.Contains(out, "changed since: base main") || !strings.Contains(out, "in review") {
		t.Errorf("the retry:\n%s", out)
	}
	if out = p.must(4, "retry", "1", "--repo", p.repo); !strings.Contains(out, "waits for a reviewer") {
		t.Errorf("in review:\n%s", out)
	}
	p.must(0, "change", "close", "1", "--repo", p.repo)
	if out = p.must(0, "retry", "1", "--repo", p.repo, "--later"); !strings.Contains(out, "issue 1 is to be worked again") || !strings.Contains(out, "in all: 3") || !strings.Contains(out, "change 1 was turned down") {
		t.Errorf("after its change was turned down:\n%s", out)
	}
	p.must(0, "retry", "1", "--repo", p.repo)
	p.must(0, "change", "accept", "2", "--repo", p.repo)
	if out = p.must(1, "retry", "1", "--repo", p.repo); !strings.Contains(out, "closed") && !strings.Contains(out, "accepted") {
		t.Errorf("accepted:\n%s", out)
	}
	if n := len(p.runs()); n != 3 {
		t.Errorf("%d runs, want 3", n)
	}
}

// TestRetryOfLiving: a run that has not ended is gone on with, not worked again.
func TestRetryOfLiving(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "slowly")
	first := p.start(p.work()...)
	if out := p.must(1, "retry", "1", "--repo", p.repo); !strings.Contains(out, "has not ended") || !strings.Contains(out, "next: interlock watch "+p.runs()[0].ID) || len(p.runs()) != 1 {
		t.Errorf("while it is worked:\n%s", out)
	}
	// Who ends the watch does not end the run.
	seen, err := os.Create(filepath.Join(t.TempDir(), "seen"))
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Close()
	watch, _ := p.command(nil, "watch", "--repo", p.repo)
	watch.Stderr = seen
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	said := func() string {
		data, err := os.ReadFile(seen.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	p.eventually("the watch tells that a session was started", func() bool { return strings.Contains(said(), "session started") })
	if err := watch.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.end(watch, watch.Wait()); code != 130 || !strings.Contains(said(), "next: interlock watch "+p.runs()[0].ID) || p.runs()[0].State != "implementing" {
		t.Errorf("the watch ended with %d, the run is %s\n%s", code, p.runs()[0].State, said())
	}
	first.signal(syscall.SIGINT)
	first.wait()
}

// TestWatchEndsAsTheRun: who watches a run is told what happens and how it rests, and gets its exit
// code; with --json it is one object on each line.
func TestWatchEndsAsTheRun(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "HURRY")
	if out := p.must(1, "watch", "--repo", p.repo); !strings.Contains(out, "no run is under way") {
		t.Errorf("with nothing to watch:\n%s", out)
	}
	first := p.start(p.work()...)
	watch, out := p.command(nil, "watch", "1", "--repo", p.repo, "--json")
	if code := p.end(watch, watch.Run()); code != 0 {
		t.Fatalf("watch: exit %d\n%s", code, out)
	}
	if code := first.wait(); code != 0 {
		t.Fatalf("run: exit %d\n%s", code, first.out)
	}
	kinds, result := map[string]bool{}, ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var line struct {
			Event  struct{ Kind string } `json:"event"`
			Result struct {
				State string `json:"state"`
				Exit  int    `json:"exit"`
			} `json:"result"`
		}
		if result != "" || json.Unmarshal(lines.Bytes(), &line) != nil {
			t.Errorf("after the result, or no JSON: %s", lines.Text())
		}
		kinds[line.Event.Kind], result = true, line.Result.State
	}
	if !kinds["claimed"] || !kinds["delivered"] || !kinds["verified"] || result != "in review" {
		t.Errorf("events %v, result %q", kinds, result)
	}
	p.file("The other one")
	p.write(p.agent, "#!/bin/sh\nexit 1\n", 0o755)
	p.must(8, p.next("--attempts", "1")...)
	if plain := p.must(8, "watch", "2", "--repo", p.repo); !strings.Contains(plain, "issue 2  parked: ") || strings.ContainsAny(plain, "\x1b\r") {
		t.Errorf("of one that is parked:\n%q", plain)
	}
}
