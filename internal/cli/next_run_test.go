package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"interlock/internal/cli"
)

// notTyped are the commands to be typed next that are not typed here, each with its reason.
var notTyped = map[string]string{
	"df -h X":                          "where the disk is full; TestDisk has that, and df is not ours",
	"interlock --state-dir DIR doctor": "where the state is on a filesystem that cannot be written to",
	"quota":                            "not ours, and not on every machine",
	"interlock config check":           "exits 2 where there are mistakes: that is what it is for; it is typed below",
	"interlock cancel X --state-dir ITS_STATE_DIRECTORY": "of another state directory of this machine, whose place is not known; TestBreakOfLiving has that",
	"git commit --allow-empty -m 'First commit'":         "where nothing was committed yet: typed below for the repository by its path",
	"git switch BRANCH": "where HEAD is detached: typed below for the repository by its path",
}

// typist provokes refusals, and types what they say comes next.
type typist struct {
	*project
	fill  *strings.Replacer // what a person puts in the place of words in capitals
	typed []string          // as it was printed
}

var nextLine = regexp.MustCompile(`(?m)^ *next:? +(\S.*)$|^if its holder is gone for good: (.*)$|^next:\n  (.*)$`)

// provoke runs a command that has to end with a code, and returns what it says is to be typed next.
func (y *typist) provoke(code int, args ...string) string {
	y.t.Helper()
	out := y.must(code, args...)
	m := nextLine.FindStringSubmatch(out)
	if m == nil {
		y.t.Fatalf("interlock %q says nothing to type next:\n%s", args, out)
	}
	return m[1] + m[2] + m[3]
}

// next types a line as a person would, and demands that it does what it is for: its exit code, and
// a part of what it prints.
func (y *typist) next(line string, code int, says string) {
	y.t.Helper()
	y.typed = append(y.typed, line)
	if out := y.type1(code, y.fill.Replace(line)); !strings.Contains(out, says) {
		y.t.Errorf("%s does not say %q:\n%s", line, says, out)
	}
}

// TestNextRuns types each command that a refusal or a resting run says comes next, and demands that
// it works. What is in no list here, and is not typed, fails the test: so nothing new is left out.
func TestNextRuns(t *testing.T) {
	t.Parallel()
	p := newProject(t, quick, "")
	backup := filepath.Join(t.TempDir(), "backup.db")
	y := &typist{project: p, fill: strings.NewReplacer("OTHER-FILE", backup+"-2", "FILE", backup, "PATH", p.repo, "BRANCH", "main", "DIR", p.state)}
	y.ofMistakes()
	y.ofRests()
	y.ofRepositories()
	y.ofHolders()
	p.must(0, "state", "backup", backup)
	y.next(y.provoke(1, "state", "backup", backup), 0, "read back whole")
	y.next(y.provoke(2, "state", "restore", backup+"-none"), 0, "restored from")
	garbage := filepath.Join(t.TempDir(), "garbage")
	p.write(garbage, "no database", 0o600)
	y.next(y.provoke(7, "state", "restore", garbage), 0, "restored from")
	y.complete()
}

// complete demands that nothing that is said comes next was left out, and types what stands alone.
func (y *typist) complete() {
	y.t.Helper()
	for _, template := range cli.NextTemplates() {
		if notTyped[template] != "" {
			continue
		}
		carried := `(?: --(?:state-dir|config|repo) \S+)*`
		is := regexp.MustCompile(`^` + strings.ReplaceAll(regexp.QuoteMeta(template), "X", `.+`) + carried + `$`)
		if !regexp.MustCompile(`X|\b[A-Z]{3,}\b`).MatchString(template) {
			line := template
			if strings.HasPrefix(line, "interlock ") && !strings.Contains(line, "--help") && !strings.Contains(line, "version") {
				line = strings.Replace(line, "interlock ", "interlock --state-dir "+y.state+" ", 1)
			}
			cmd := exec.Command("sh", "-c", line)
			cmd.Env = append(cmd.Environ(), "XDG_CONFIG_HOME="+y.config())
			cmd.Dir = y.repo
			out, err := cmd.CombinedOutput()
			if code := y.end(cmd, err); code != 0 && !(template == "interlock doctor" && code == 7) {
				y.t.Errorf("%s: exit %d\n%s", line, code, out)
			}
			continue
		}
		found := false
		for _, line := range y.typed {
			found = found || is.MatchString(line)
		}
		if !found {
			y.t.Errorf("%q is said to be typed next somewhere, and was not typed here; typed were\n%s", template, strings.Join(y.typed, "\n"))
		}
	}
}

// ofMistakes are command lines that are not understood, and configurations.
func (y *typist) ofMistakes() {
	y.t.Helper()
	y.next(y.provoke(2, "issue", "show", "one"), 0, "The answer is wrong")
	y.next(y.provoke(1, "issue", "show", "99", "--repo", y.repo), 0, "The answer is wrong")
	y.next(y.provoke(2, "issue", "list", "--repo", "https://example.org/r"), 0, "The answer is wrong")
	y.next(y.provoke(2, "claim", "break", "1", "--hash", "x"), 1, "has no claim")
	y.next(y.provoke(1, "state", "check", "--state-dir", y.state+"-none"), 0, "whole: ")
	file := filepath.Join(filepath.Dir(y.agent), "later.sh")
	y.write(file, quick, 0o644)
	y.next(y.provoke(2, "run", "--repo", y.repo, "--issue", "1", "--command", file, "--checks", "true"), 0, "")
	cmd := exec.Command("interlock", "runs")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if m := nextLine.FindStringSubmatch(string(out)); y.end(cmd, err) == 2 && m != nil {
		y.next(m[1], 0, "no runs")
	} else {
		y.t.Errorf("without HOME: %v\n%s", err, out)
	}
	own := filepath.Join(y.config(), "interlock", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		y.t.Fatal(err)
	}
	y.write(own, "limits:\n  atempts: 2\n", 0o600)
	y.next(y.provoke(2, "run", "--repo", y.repo, "--next"), 2, "limits.attempts")
	if err := os.Remove(own); err != nil {
		y.t.Fatal(err)
	}
	cmd = exec.Command("interlock", "init", "--operator")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err = cmd.CombinedOutput()
	if m := nextLine.FindStringSubmatch(string(out)); y.end(cmd, err) == 2 && m != nil {
		y.next(strings.Replace(m[1], "FILE", filepath.Join(y.t.TempDir(), "own.yaml"), 1), 0, "")
		y.typed = append(y.typed, m[1])
	} else {
		y.t.Errorf("init --operator without a place: %v\n%s", err, out)
	}
}

// ofRests are runs that rest, and what they keep from being done.
func (y *typist) ofRests() {
	y.t.Helper()
	y.next(y.provoke(8, y.work("--command", "echo THAT FAILS; exit 1", "--attempts", "1")...), 0, "THAT FAILS")
	first := y.runs()[0].ID
	y.next(y.provoke(0, "retry", first, "--later"), 8, "was to be worked again already")
	y.next(y.provoke(1, "retry", first), 0, "parked")
	y.next(y.provoke(1, "logs", first, "--attempt", "7"), 0, first)
	y.next(y.provoke(0, "retry", "1", "--repo", y.repo, "--command", y.agent), 0, "+fixed")
	y.next(y.provoke(4, y.work()...), 0, "+fixed")
	y.must(0, "change", "accept", "1", "--repo", y.repo)
	y.next(y.provoke(1, "change", "accept", "1", "--repo", y.repo), 0, "merged")
	y.next(y.provoke(1, "change", "close", "1", "--repo", y.repo), 0, "merged")
	y.next(y.provoke(0, "explain", "1", "--repo", y.repo), 0, "closed")
	y.next(y.provoke(1, y.next1()...), 0, "2")
	y.must(0, "run", "--repo", y.repo, "--issue", "2", "--lane", "build", "--command", "echo more > more", "--checks", "true", "--allow-no-tests", "--sandbox", y.level)
	y.next(y.provoke(0, "explain", "2", "--repo", y.repo), 0, "what is wrong (issue 2)")
	y.must(0, "issue", "close", "2", "--repo", y.repo)
	y.plant("3", strings.NewReplacer("TITLE", `"\u200b"`, "BODY", `""`, `"number":1`, `"number":3`).Replace(document))
	y.next(y.provoke(1, "run", "--repo", y.repo, "--issue", "3", "--command", y.agent, "--checks", "true", "--sandbox", y.level), 0, "issue 3 is closed")
}

func (y *typist) next1() []string { return y.project.next() }

// ofRepositories are repositories in which nothing can be done as they are.
func (y *typist) ofRepositories() {
	y.t.Helper()
	y.file("The next one")
	issue := fmt.Sprint(len(y.refs("refs/interlock/issues/")))
	work := []string{"run", "--repo", y.repo, "--issue", issue, "--command", y.agent, "--checks", "true", "--sandbox", y.level}
	y.next(y.provoke(1, append(work, "--base", "nosuch")...), 0, "main")
	y.git("-C", y.repo, "checkout", "-q", "--detach")
	y.next(y.provoke(1, work...), 0, "main")
	empty := filepath.Join(y.t.TempDir(), "empty")
	y.git("init", "-q", "-b", "main", empty)
	y.git("-C", empty, "config", "user.email", "t@localhost")
	y.git("-C", empty, "config", "user.name", "T")
	y.must(0, "issue", "new", "--repo", empty, "--title", "T")
	y.next(y.provoke(1, "run", "--repo", empty, "--issue", "1", "--command", y.agent, "--checks", "true", "--sandbox", y.level), 0, "")
	if head := y.git("-C", empty, "log", "--format=%s"); head != "first commit" {
		y.t.Errorf("the commit that was said: %q", head)
	}
	y.next(y.provoke(2, "issue", "new", "Title", "--repo", empty), 0, "2")
	other := newProject(y.t, quick, "")
	other.state = y.state
	other.must(8, other.work("--command", "exit 1", "--attempts", "1")...)
	id := other.runs()[0].ID
	line := y.provoke(1, "cancel", id, "--repo", y.repo)
	y.typed = append(y.typed, line)
	other.type1(1, strings.ReplaceAll(line, "PATH", other.repo)) // it has ended
}

// ofHolders are runs that somebody drives, or drove.
func (y *typist) ofHolders() {
	y.t.Helper()
	p := newProject(y.t, slowAgent, "slowly")
	z := &typist{project: p, fill: y.fill}
	first := p.start(p.work()...)
	z.next(z.provoke(3, p.work()...), 0, "implementing")
	watch, out := p.command(nil, "watch", "1", "--repo", p.repo)
	if err := watch.Start(); err != nil {
		y.t.Fatal(err)
	}
	p.eventually("the watch has begun", func() bool { return strings.Contains(z.must(0, "explain", "1", "--repo", p.repo), "works on it") })
	again := z.provoke(0, "explain", "1", "--repo", p.repo)
	other := *z
	other.project = &project{t: p.t, repo: p.repo, agent: p.agent, state: p.state + "-2", level: p.level}
	other.next(other.provoke(3, p.work()...), 0, "held")
	first.signal(syscall.SIGINT)
	first.wait()
	p.end(watch, watch.Wait())
	m := nextLine.FindStringSubmatch(out.String())
	if m == nil {
		y.t.Fatalf("the watch of a run that was stopped:\n%s", out)
	}
	other.next(other.provoke(0, "claim", "show", "1", "--repo", p.repo), 0, "is broken")
	y.typed = append(y.typed, other.typed...)
	z.next(m[1], 9, "")          // the claim is another's by now: that is found out, and said
	z.next(again, 9, "parked: ") // watched to its end
	y.typed = append(y.typed, z.typed...)
}
