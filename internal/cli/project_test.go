package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// project is a throwaway repository with one issue, an agent beside it and a state of its own.
// Every command runs in a process of its own, so that it can be stopped and killed.
type project struct {
	t                  *testing.T
	repo, agent, state string
	level              string
}

// newProject makes a repository whose file "answer" is wrong, and files issue 1 with this body.
func newProject(t *testing.T, agent, body string) *project {
	t.Helper()
	dir := t.TempDir()
	p := &project{
		t: t, repo: filepath.Join(dir, "repo"), agent: filepath.Join(dir, "agent.sh"), state: filepath.Join(dir, "state"),
		level: sandboxLevel(t),
	}
	p.write(p.agent, agent, 0o755)
	p.git("init", "-q", "-b", "main", p.repo)
	p.commit("answer", "wrong\n")
	if code, out := p.interlock("issue", "new", "--repo", p.repo, "--title", "The answer is wrong", "--body", body); code != 0 {
		t.Fatalf("issue new: exit %d\n%s", code, out)
	}
	return p
}

func (p *project) write(path, text string, mode os.FileMode) {
	p.t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		p.t.Fatal(err)
	}
}

// commit changes one file of the operator's on the branch that is checked out.
func (p *project) commit(file, text string) {
	p.t.Helper()
	p.write(filepath.Join(p.repo, file), text, 0o644)
	p.git("-C", p.repo, "add", file)
	p.git("-C", p.repo, "-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "-q", "-m", "change "+file)
}

func (p *project) git(args ...string) string {
	p.t.Helper()
	return p.gitFrom(nil, args...)
}

func (p *project) gitFrom(in io.Reader, args ...string) string {
	p.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Stdin = in
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// work is the command line that works issue 1.
func (p *project) work(more ...string) []string {
	args := []string{"run", "--repo", p.repo, "--issue", "1", "--command", p.agent, "--checks", "grep -qx fixed answer"}
	return append(append(args, "--sandbox", p.level), more...)
}

// config is where this project's operator keeps the configuration; at first there is none.
func (p *project) config() string { return filepath.Join(filepath.Dir(p.state), "conf") }

// command is one interlock process with this project's state directory.
func (p *project) command(env []string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.Command("interlock", append([]string{"--state-dir", p.state}, args...)...)
	cmd.Env = append(append(os.Environ(), "XDG_CONFIG_HOME="+p.config()), env...)
	out := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = 5 * time.Second
	return cmd, out
}

// interlock runs one command and returns its exit code, minus the signal if one ended it.
func (p *project) interlock(args ...string) (int, string) {
	p.t.Helper()
	cmd, out := p.command(nil, args...)
	return p.end(cmd, cmd.Run()), out.String()
}

func (p *project) end(cmd *exec.Cmd, err error) int {
	p.t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		p.t.Fatalf("%q: %v", cmd.Args, err)
	}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -int(ws.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

// must runs one command that has to end with this code, and returns what it printed.
func (p *project) must(code int, args ...string) string {
	p.t.Helper()
	got, out := p.interlock(args...)
	if got != code {
		p.t.Fatalf("interlock %q: exit %d, want %d\n%s", args, got, code, out)
	}
	return out
}

// started is a process in the background.
type started struct {
	p   *project
	cmd *exec.Cmd
	out *bytes.Buffer
}

// start starts the work and waits until its agent has said that it works.
func (p *project) start(args ...string) *started {
	p.t.Helper()
	cmd, out := p.command(nil, args...)
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	s := &started{p, cmd, out}
	p.t.Cleanup(func() { _ = cmd.Process.Kill() })
	p.eventually("the agent works", func() bool { return strings.Contains(p.agentLog(), "WORKING") })
	return s
}

// wait returns the exit code of a process in the background.
func (s *started) wait() int {
	s.p.t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.cmd.Wait() }()
	select {
	case err := <-done:
		return s.p.end(s.cmd, err)
	case <-time.After(time.Minute):
		s.p.t.Fatalf("%q does not end", s.cmd.Args)
		return 0
	}
}

func (s *started) signal(sig syscall.Signal) {
	s.p.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.p.t.Fatal(err)
	}
}

// agentLog is all that agents of this project have printed.
func (p *project) agentLog() string {
	files, err := filepath.Glob(filepath.Join(p.state, "logs", "*", "*-agent.log"))
	if err != nil {
		p.t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			p.t.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}

// eventually waits for something that takes seconds at most, and gives it ten times as long.
func (p *project) eventually(what string, is func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("not seen: %s", what)
		}
	}
}

// dead demands that no process of any session of this project is left.
func (p *project) dead() {
	p.t.Helper()
	left := p.processes()
	for deadline := time.Now().Add(10 * time.Second); len(left) > 0; left = p.processes() {
		if time.Now().After(deadline) {
			p.t.Fatalf("processes of a dead session are left: %q", left)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// processes lists what runs with one of this project's runs in its environment.
func (p *project) processes() []string {
	p.t.Helper()
	return p.processesOf(p.runs())
}

// processesOf lists what runs with one of these runs in its environment.
func (p *project) processesOf(runs []runRow) (found []string) {
	p.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		p.t.Fatal(err)
	}
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

// runRow is what these tests read of a run.
type runRow struct {
	ID      string `json:"id"`
	State   string `json:"state"`
	Attempt int    `json:"attempt"`
	Spent   int    `json:"spent"`
	Change  int64  `json:"change"`
	Tip     string `json:"tip"`
	Head    struct {
		Hash string `json:"hash"`
	} `json:"head"`
}

// json runs a command with --json that has to succeed, and decodes what it prints.
func (p *project) json(into any, args ...string) {
	p.t.Helper()
	cmd := exec.Command("interlock", append([]string{"--state-dir", p.state, "--json"}, args...)...)
	cmd.Args = append([]string{"interlock", "--state-dir", p.state}, append(args, "--json")...)
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("interlock %q: %v\n%s", args, err, out)
	}
	if err := json.Unmarshal(out, into); err != nil {
		p.t.Fatalf("interlock %q: %v\n%s", args, err, out)
	}
}

func (p *project) runs() []runRow {
	p.t.Helper()
	var rows []runRow
	p.json(&rows, "runs")
	return rows
}

// issue is what these tests read of issue 1.
func (p *project) issue() (labels, assignees, comments []string) {
	p.t.Helper()
	var is struct {
		Labels    []string `json:"labels"`
		Assignees []string `json:"assignees"`
		Comments  []struct {
			Body string `json:"body"`
		} `json:"comments"`
	}
	p.json(&is, "issue", "show", "1", "--repo", p.repo)
	for _, c := range is.Comments {
		comments = append(comments, c.Body)
	}
	return is.Labels, is.Assignees, comments
}

// refs lists the refs of the operator's repository below a prefix.
func (p *project) refs(prefix string) []string {
	p.t.Helper()
	return strings.Fields(p.git("-C", p.repo, "for-each-ref", "--format=%(refname)", prefix))
}

// once demands one run in review, one claim, one branch, one change, no comment twice, no mark
// of a claim left, and the base as it was.
func (p *project) once() {
	p.t.Helper()
	if rows := p.runs(); len(rows) != 1 || rows[0].State != "in review" {
		p.t.Errorf("runs: %+v, want one in review", rows)
	}
	for _, prefix := range []string{"refs/interlock/claims/", "refs/heads/interlock/", "refs/interlock/changes/"} {
		if got := p.refs(prefix); len(got) != 1 {
			p.t.Errorf("%s: %q, want one", prefix, got)
		}
	}
	labels, assignees, comments := p.issue()
	seen := map[string]bool{}
	for _, c := range comments {
		if seen[c] {
			p.t.Errorf("comment twice: %q", c)
		}
		seen[c] = true
	}
	if len(assignees) != 0 || len(labels) != 1 || labels[0] != "interlock/in-review" {
		p.t.Errorf("mark after the hand-off: labels %q, assignees %q", labels, assignees)
	}
	if got := p.git("-C", p.repo, "show", "main:answer"); got != "wrong" {
		p.t.Errorf("the base was changed: %q", got)
	}
}
