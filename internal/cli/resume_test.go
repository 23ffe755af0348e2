//go:build failpoint

package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// points are the places at which the engine is killed, in the order in which a run meets them.
var points = []string{"claim-saved", "agent-running", "verified", "before-push", "after-push", "after-propose"}

// resumeAgent commits a first step once, leaves a daemon behind, and sleeps in its first attempt
// when the test is about to kill the engine; every later attempt finishes.
const resumeAgent = `#!/bin/sh
set -e
test -s "$INTERLOCK_PROMPT_FILE"
if ! test -f step1; then
	echo one > step1
	git add step1
	git commit -q -m 'step 1'
fi
if test "$INTERLOCK_ATTEMPT" = 1 && grep -q SLEEP "$INTERLOCK_PROMPT_FILE"; then
	(setsid sh -c 'sleep 600 & sleep 600' >/dev/null 2>&1 &)
	sleep 600
fi
echo fixed > answer
git add answer
git commit -q -m 'answer'
`

// TestResume kills the engine with SIGKILL at each point and types the command again.
func TestResume(t *testing.T) {
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			body := "Please answer."
			if point == "agent-running" {
				body = "SLEEP first, then answer."
			}
			p := newProject(t, body)
			p.kill(point)
			p.dead()
			if code, out := p.interlock("", p.work()...); code != 0 {
				t.Fatalf("resume: exit %d\n%s", code, out)
			}
			p.dead()
			p.once()
		})
	}
}

// project is a throwaway repository with one issue, an agent beside it and a state of its own.
type project struct {
	t                  *testing.T
	repo, agent, state string
}

func newProject(t *testing.T, body string) *project {
	t.Helper()
	dir := t.TempDir()
	p := &project{t: t, repo: filepath.Join(dir, "repo"), agent: filepath.Join(dir, "agent.sh"), state: filepath.Join(dir, "state")}
	if err := os.WriteFile(p.agent, []byte(resumeAgent), 0o755); err != nil {
		t.Fatal(err)
	}
	p.git("init", "-q", "-b", "main", p.repo)
	if err := os.WriteFile(filepath.Join(p.repo, "answer"), []byte("wrong\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p.git("-C", p.repo, "add", ".")
	p.git("-C", p.repo, "-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "-q", "-m", "first")
	if code, out := p.interlock("", "issue", "new", "--repo", p.repo, "--title", "The answer is wrong", "--body", body); code != 0 {
		t.Fatalf("issue new: exit %d\n%s", code, out)
	}
	return p
}

func (p *project) git(args ...string) string {
	p.t.Helper()
	out, err := exec.Command("git", args...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (p *project) work() []string {
	args := []string{"run", "--repo", p.repo, "--issue", "1", "--command", p.agent, "--checks", "grep -qx fixed answer"}
	return append(args, "--sandbox", sandboxLevel(p.t))
}

// interlock runs one command in a process of its own and returns its exit code, -1 for a signal.
func (p *project) interlock(failpoint string, args ...string) (int, string) {
	p.t.Helper()
	cmd := exec.Command("interlock", append([]string{"--state-dir", p.state}, args...)...)
	cmd.Env = append(os.Environ(), "INTERLOCK_FAILPOINT="+failpoint)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		p.t.Fatalf("interlock %q: %v\n%s", args, err, out.String())
	}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -int(ws.Signal()), out.String()
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// kill runs the work with a failpoint and demands that it died there.
func (p *project) kill(point string) {
	p.t.Helper()
	code, out := p.interlock(point, p.work()...)
	if code != -int(syscall.SIGKILL) {
		p.t.Fatalf("at %s the engine ended with %d instead of being killed:\n%s", point, code, out)
	}
}

// dead demands that no process of any session of this state is left within ten times a second.
func (p *project) dead() {
	p.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		left := p.processes()
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("processes of a dead session are left: %q", left)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// processes lists what runs with this project's run in its environment.
func (p *project) processes() []string {
	runs := p.runs()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		p.t.Fatal(err)
	}
	var found []string
	for _, file := range all {
		env, err := os.ReadFile(file)
		if err != nil {
			continue // it is gone, or not ours to read
		}
		for _, r := range runs {
			if bytes.Contains(env, []byte("INTERLOCK_RUN="+r.ID+"\x00")) {
				cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
				found = append(found, fmt.Sprintf("%s %q", filepath.Dir(file), cmdline))
			}
		}
	}
	return found
}

type runRow struct {
	ID    string `json:"id"`
	State string `json:"state"`
}

func (p *project) runs() []runRow {
	p.t.Helper()
	cmd := exec.Command("interlock", "--state-dir", p.state, "runs", "--json")
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("runs: %v\n%s", err, out)
	}
	var rows []runRow
	if err := json.Unmarshal(out, &rows); err != nil {
		p.t.Fatalf("runs: %v\n%s", err, out)
	}
	return rows
}

// once demands one run, one claim, one branch, one change, no comment twice, and every commit.
func (p *project) once() {
	p.t.Helper()
	if rows := p.runs(); len(rows) != 1 || rows[0].State != "in review" {
		p.t.Errorf("runs: %+v, want one in review", rows)
	}
	refs := func(pattern string) []string {
		return strings.Fields(p.git("-C", p.repo, "for-each-ref", "--format=%(refname)", pattern))
	}
	for _, pattern := range []string{"refs/interlock/claims/", "refs/heads/interlock/", "refs/interlock/changes/"} {
		if got := refs(pattern); len(got) != 1 {
			p.t.Errorf("%s: %q, want one", pattern, got)
		}
	}
	p.comments()
	log := p.git("-C", p.repo, "log", "--format=%s", "interlock/issue-1")
	if strings.Count(log, "step 1") != 1 || !strings.Contains(log, "answer") {
		p.t.Errorf("commits of the branch: %q", log)
	}
	if got := p.git("-C", p.repo, "show", "interlock/issue-1:answer"); got != "fixed" {
		p.t.Errorf("answer on the branch: %q", got)
	}
	if got := p.git("-C", p.repo, "show", "main:answer"); got != "wrong" {
		p.t.Errorf("the base was changed: %q", got)
	}
}

// comments demands that no comment is there twice and that the issue is no longer marked as worked.
func (p *project) comments() {
	p.t.Helper()
	out, err := exec.Command("interlock", "issue", "show", "1", "--repo", p.repo, "--json").Output()
	if err != nil {
		p.t.Fatalf("issue show: %v", err)
	}
	var issue struct {
		Labels    []string `json:"labels"`
		Assignees []string `json:"assignees"`
		Comments  []struct {
			Body string `json:"body"`
		} `json:"comments"`
	}
	if err := json.Unmarshal(out, &issue); err != nil {
		p.t.Fatalf("issue show: %v\n%s", err, out)
	}
	seen := map[string]bool{}
	for _, c := range issue.Comments {
		if seen[c.Body] {
			p.t.Errorf("comment twice: %q", c.Body)
		}
		seen[c.Body] = true
	}
	if len(issue.Assignees) != 0 || len(issue.Labels) != 1 || issue.Labels[0] != "interlock/in-review" {
		p.t.Errorf("mark after the hand-off: labels %q, assignees %q", issue.Labels, issue.Assignees)
	}
}
