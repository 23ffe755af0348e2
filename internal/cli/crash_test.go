//go:build failpoint

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// crashAgent commits at once, and leaves one file uncommitted.
const crashAgent = `#!/bin/sh
set -e
test -f step1 || { echo one > step1; git add step1; git commit -q -m 'step 1'; echo "STEP1 $(git rev-parse HEAD)"; }
echo fixed > answer
`

// scenario is one way a run may go. Every point that it passes is a place to be killed.
type scenario struct {
	name   string
	before string // a point at which the engine was killed already, "" for none
	agent  string
	args   []string // of the command that goes this way, after `run`'s own
	codes  []int    // with which the command may end when it is typed again after a crash
	check  func(*project)
}

func scenarios() []scenario {
	retry := strings.Replace(crashAgent, "echo fixed", `test "$INTERLOCK_ATTEMPT" = 1 || echo fixed`, 1) +
		"test -f step2 || { echo two > step2; git add step2; git commit -q -m 'step 2'; }\n"
	more := []string{"--attempts", "9"}
	return []scenario{
		{"propose", "", crashAgent, more, []int{0, 4}, (*project).once},
		{"resume", "after session agent ended false", crashAgent, more, []int{0, 4}, (*project).once},
		{"retry", "", retry, more, []int{0, 4}, (*project).once},
		{"build", "", crashAgent, []string{"--lane", "build"}, []int{0, 1}, func(p *project) { p.rests("done", "Built ") }},
		{"park", "", "#!/bin/sh\nexit 3\n", []string{"--attempts", "1"}, []int{8, 1}, func(p *project) { p.rests("parked", "attempts are used") }},
	}
}

// rests demands one run in this state that gave everything back and said why, once.
func (p *project) rests(state, why string) {
	p.t.Helper()
	if rows := p.runs(); len(rows) != 1 || rows[0].State != state {
		p.t.Errorf("runs: %+v, want one %s", rows, state)
	}
	_, assignees, comments := p.issue()
	if n := strings.Count(strings.Join(comments, "\n"), why); n != 1 || len(assignees) != 0 {
		p.t.Errorf("said %d times, assignees %q: %q", n, assignees, comments)
	}
	if got := append(p.refs("refs/heads/interlock/"), p.refs("refs/interlock/changes/")...); len(got) != 0 {
		p.t.Errorf("branches or changes %q, want none", got)
	}
	if claim := p.git("-C", p.repo, "log", "-1", "--format=%B", "refs/interlock/claims/1"); !strings.Contains(claim, "released") {
		p.t.Errorf("the claim is not released: %q", claim)
	}
}

// TestCrash kills the engine with SIGKILL before and after each effect and each save, and has
// each write fail though it was persisted; then the command is typed again. A scenario is tried
// at the points that those before it do not pass.
func TestCrash(t *testing.T) {
	seen, table := map[string]bool{}, map[string]*atomic.Int64{}
	t.Cleanup(func() {
		for _, s := range scenarios() {
			t.Logf("%-8s %3d points: resumed, nothing twice, nothing lost", s.name, table[s.name].Load())
		}
	})
	for _, s := range scenarios() {
		done := new(atomic.Int64)
		table[s.name] = done
		for _, point := range s.trace(t) {
			if seen[point] {
				continue
			}
			seen[point] = true
			t.Run(s.name+"/"+point, func(t *testing.T) {
				t.Parallel()
				s.crash(t, point)
				if !t.Failed() {
					done.Add(1)
				}
			})
		}
	}
	if len(seen) < 60 {
		t.Errorf("only %d points in all", len(seen))
	}
}

// start makes a project that is where the scenario begins.
func (s scenario) start(t *testing.T) *project {
	t.Helper()
	p := newProject(t, s.agent, "Please answer.")
	if s.before != "" {
		cmd, out := p.command([]string{"INTERLOCK_FAILPOINT=" + s.before}, p.work(s.args...)...)
		if code := p.end(cmd, cmd.Run()); code != -int(syscall.SIGKILL) {
			t.Fatalf("not killed at %s: exit %d\n%s", s.before, code, out)
		}
	}
	return p
}

// trace runs the scenario once and returns its points: each pass, to be killed at, and each
// write, to be told a failure of.
func (s scenario) trace(t *testing.T) []string {
	t.Helper()
	p := s.start(t)
	file := filepath.Join(t.TempDir(), "trace")
	cmd, out := p.command([]string{"INTERLOCK_FAILPOINT_TRACE=" + file}, p.work(s.args...)...)
	if code := p.end(cmd, cmd.Run()); code != s.codes[0] {
		t.Fatalf("without a crash: exit %d\n%s", code, out)
	}
	s.check(p)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var points []string
	for name := range strings.Lines(string(data)) {
		name = strings.TrimSuffix(name, "\n")
		points = append(points, "kill "+name)
		for _, write := range []string{"save ", "effect "} {
			if rest, ok := strings.CutPrefix(name, "after "+write); ok {
				points = append(points, "fault "+write+rest)
			}
		}
	}
	return points
}

// crash has one crash or fault at a point, types the command again until it is done, and counts.
func (s scenario) crash(t *testing.T, point string) {
	p := s.start(t)
	how, name, _ := strings.Cut(point, " ")
	variable := map[string]string{"kill": "INTERLOCK_FAILPOINT=", "fault": "INTERLOCK_FAULT="}[how]
	cmd, out := p.command([]string{variable + name}, p.work(s.args...)...)
	code := p.end(cmd, cmd.Run())
	if how == "kill" && code != -int(syscall.SIGKILL) {
		t.Fatalf("not killed: exit %d\n%s", code, out)
	}
	p.dead()
	codes := []string{fmt.Sprint(code)}
	for range 3 {
		code, out := p.interlock(p.work(s.args...)...)
		codes = append(codes, fmt.Sprint(code))
		if slices.Contains(s.codes, code) {
			break
		}
		if len(codes) == 4 {
			t.Fatalf("exit codes %s\n%s", codes, out)
		}
	}
	p.dead()
	s.check(p)
	s.kept(p)
	t.Logf("%s: exits %s", point, strings.Join(codes, " "))
}

// kept demands that the very commit of the first session is part of the work in the end, and that
// the engine's repository is whole.
func (s scenario) kept(p *project) {
	p.t.Helper()
	repos, err := filepath.Glob(filepath.Join(p.state, "repos", "*.git"))
	if err != nil || len(repos) != 1 {
		p.t.Fatalf("repositories %q: %v", repos, err)
	}
	if out := p.git("--git-dir", repos[0], "fsck", "--connectivity-only", "--no-dangling"); strings.Contains(out, "missing") {
		p.t.Errorf("objects are missing: %q", out)
	}
	if s.name == "park" {
		return
	}
	_, first, _ := strings.Cut(p.agentLog(), "STEP1 ")
	hash, _, ok := strings.Cut(first, "\n")
	if !ok {
		p.t.Fatalf("no commit in the agent's log:\n%s", p.agentLog())
	}
	p.git("--git-dir", repos[0], "merge-base", "--is-ancestor", hash, p.runs()[0].Head.Hash)
}
