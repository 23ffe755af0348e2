//go:build failpoint

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// scenario is one way a command may go. Every point that it passes is a place to be killed, and
// every write one to be told a failure of.
type scenario struct {
	name  string
	group string // points are tried once in a group; "" for that of `interlock run`
	agent string
	// begin brings a project to where the scenario begins; it may return another installation's.
	begin   func(*project) *project
	command func(*project) []string
	env     []string       // of the first command
	codes   []int          // how the command ends: without a crash, and when it is typed again after one
	crashed func(*project) // what has to hold right after the crash; nil: nothing more than that it can go on
	check   func(*project)
	long    bool // the session takes so long that what it holds is renewed
	first   bool // the first session has made a commit by then, which must be part of the work
}

// row is one line of the table: a point, and what became of it.
type row struct {
	scenario, point, exits string
	tally                  tally
	ran, failed            bool
}

// matrix has a row for each point that was tried.
type matrix struct{ rows []*row }

// print writes the table, in the order in which the points were found.
func (m *matrix) print(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "%-12s %-42s %-9s %s\n", "scenario", "point", "exits", tallyHead)
	done, of, all := map[string]int{}, []string{}, 0
	for _, r := range m.rows {
		if !r.ran {
			continue // not asked for
		}
		verdict := "ok"
		if r.failed {
			verdict = "FAILED"
		}
		fmt.Fprintf(&b, "%-12s %-42s %-9s %s  %s\n", r.scenario, r.point, r.exits, r.tally, verdict)
		if done[r.scenario] == 0 {
			of = append(of, r.scenario)
		}
		done[r.scenario]++
		all++
	}
	for _, name := range of {
		fmt.Fprintf(&b, "%-12s %3d points\n", name, done[name])
	}
	fmt.Fprintf(&b, "%-12s %3d points in all", "", all)
	t.Logf("the crash matrix\n%s", &b)
}

// TestCrash kills the engine with SIGKILL before and after each effect, each save and each other
// write, and has each write fail though it was persisted; then the command is typed again. In the
// end there has to be what there is without a crash: nothing twice, nothing lost.
func TestCrash(t *testing.T) {
	inMemory(t)
	seen, m, ran := map[string]bool{}, new(matrix), 0
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			ran++
			points, want := s.trace(t)
			for _, point := range points {
				if seen[s.group+" "+point] {
					continue
				}
				seen[s.group+" "+point] = true
				r := &row{scenario: s.name, point: point, exits: "-"}
				m.rows = append(m.rows, r)
				t.Run(point, func(t *testing.T) {
					t.Parallel()
					r.ran = true
					defer func() { r.failed = t.Failed() }()
					s.crash(t, r, want)
				})
			}
		})
	}
	m.print(t)
	if ran == len(scenarios()) && len(m.rows) < leastPoints {
		t.Errorf("only %d points in all, there were %d at least", len(m.rows), leastPoints)
	}
}

// start makes a project that is where the scenario begins.
func (s scenario) start(t *testing.T) *project {
	t.Helper()
	p := newProject(t, s.agent, "Please answer.")
	if s.begin != nil {
		p = s.begin(p)
	}
	return p
}

// trace lets the scenario go its way once. It returns its points, and what there is in the end.
func (s scenario) trace(t *testing.T) (points []string, want tally) {
	t.Helper()
	p := s.start(t)
	file := filepath.Join(t.TempDir(), "trace")
	cmd, out := p.command(append(s.env, "INTERLOCK_FAILPOINT_TRACE="+file), s.command(p)...)
	if code := p.end(cmd, cmd.Run()); code != s.codes[0] {
		t.Fatalf("%s without a crash: exit %d\n%s", s.name, code, out)
	}
	p.dead()
	s.check(p)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	points = strings.Split(strings.TrimSpace(string(data)), "\n")
	if !s.long {
		points = slices.DeleteFunc(points, inTime)
	}
	return points, p.counts()
}

// inTime reports whether a point is passed only where a session takes long enough.
func inTime(point string) bool {
	return strings.HasSuffix(point, "agent-running") || strings.HasSuffix(point, " renew")
}

// crash has one crash or fault at a point, types the command again until it is done, and counts.
func (s scenario) crash(t *testing.T, r *row, want tally) {
	p := s.start(t)
	how, name, _ := strings.Cut(r.point, " ")
	variable := map[string]string{"kill": "INTERLOCK_FAILPOINT=", "fault": "INTERLOCK_FAULT="}[how]
	cmd, out := p.command(append(s.env, variable+name), s.command(p)...)
	code := p.end(cmd, cmd.Run())
	r.exits = fmt.Sprint(code)
	if how == "kill" && code != -int(syscall.SIGKILL) {
		t.Fatalf("not killed: exit %d\n%s", code, out)
	}
	if s.crashed != nil {
		s.crashed(p) // first: other commands would make anew what is missing
	}
	p.dead()
	for try := 1; ; try++ {
		again, text := p.interlock(s.command(p)...)
		r.exits += fmt.Sprintf(" %d", again)
		if slices.Contains(s.codes, again) {
			break
		}
		if try == 3 {
			t.Fatalf("exits %s\n%s\nthe last time:\n%s", r.exits, out, text)
		}
	}
	p.dead()
	s.check(p)
	if r.tally = p.counts(); r.tally != want {
		t.Errorf("in the end there is\n%s\n%s, and without a crash\n%s\nthe first time:\n%s", tallyHead, r.tally, want, out)
	}
	s.kept(p)
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
	if !s.first {
		return
	}
	_, first, _ := strings.Cut(p.agentLog(), "STEP1 ")
	hash, _, ok := strings.Cut(first, "\n")
	if !ok {
		p.t.Fatalf("no commit in the agent's log:\n%s", p.agentLog())
	}
	p.git("--git-dir", repos[0], "merge-base", "--is-ancestor", hash, p.runs()[0].Tip)
}
