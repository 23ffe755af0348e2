package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"interlock/internal/agent"
	"interlock/internal/agent/command"
	"interlock/internal/covered"
	"interlock/internal/engine"
	"interlock/internal/forge"
	"interlock/internal/forge/local"
	"interlock/internal/git"
	"interlock/internal/lease"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/snapshot"
	"interlock/internal/store"
	"interlock/internal/store/sqlite"
	"interlock/internal/storetest"
)

func TestMain(m *testing.M) {
	if code, handled := sandbox.Reenter(os.Args); handled {
		os.Exit(code)
	}
	if code, handled := snapshot.Reenter(os.Args[1:]); handled {
		os.Exit(code)
	}
	covered.Children()
	os.Exit(m.Run())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// site is an engine with real parts: git, a SQLite store with a clock that the test moves, the
// embedded forge, and shell scripts as agents. Something can be made to happen in the world in the
// very moment of a notice, while the engine waits.
type site struct {
	t      *testing.T
	repo   string
	store  *sqlite.Store
	clock  *storetest.Clock
	forge  *local.Forge
	engine *engine.Engine

	mu      sync.Mutex
	at      map[string]func() // by the kind of the notice; done once
	notices []engine.Notice

	ready func() error // nil: there is always room for a session
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, repo: filepath.Join(t.TempDir(), "repo"), clock: storetest.NewClock(t), at: map[string]func(){}}
	s.git("init", "-q", "-b", "main", s.repo)
	must(t, os.WriteFile(filepath.Join(s.repo, "answer"), []byte("wrong\n"), 0o600))
	s.git("-C", s.repo, "add", "-A")
	s.commit("first")
	g, err := git.Find(t.Context())
	must(t, err)
	s.forge, err = local.Open(t.Context(), g, s.repo)
	must(t, err)
	_, err = s.forge.NewIssue(t.Context(), "The answer is wrong", "", nil, "person")
	must(t, err)
	state := filepath.Join(t.TempDir(), "state")
	s.store, err = sqlite.Open(t.Context(), state, sqlite.Options{Clock: s.clock})
	must(t, err)
	t.Cleanup(func() { must(t, s.store.Close()) })
	self, err := lease.Self(t.Context(), s.store)
	must(t, err)
	at := s.forge.Location()
	s.engine, err = engine.New(t.Context(), engine.Config{
		State: state, Store: s.store, Clock: s.clock, Git: g, Forge: s.forge, RepoKey: at.Key, RepoPath: s.repo, Worktree: at.Worktree,
		Facts: sandbox.Inspect(t.Context()), Env: os.Environ(), Holder: self, Login: "interlock", Notify: s.notice,
		Ready: func(context.Context) error {
			if s.ready == nil {
				return nil
			}
			return s.ready()
		},
		Runtime: func(line string) agent.Runtime { return &command.Runtime{Line: line, Path: os.Getenv("PATH")} },
	})
	must(t, err)
	return s
}

func (s *site) git(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("git", args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (s *site) commit(message string) {
	s.t.Helper()
	s.git("-C", s.repo, "-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "-q", "--allow-empty", "-m", message)
}

func (s *site) notice(n engine.Notice) {
	s.mu.Lock()
	s.notices = append(s.notices, n)
	do := s.at[n.Kind]
	delete(s.at, n.Kind)
	s.mu.Unlock()
	if do != nil {
		do()
	}
}

func (s *site) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, n := range s.notices {
		fmt.Fprintf(&b, "%s: %s\n", n.Kind, n.Text)
	}
	return b.String()
}

// work works issue 1 with a shell line as the agent, without a sandbox.
func (s *site) work(ctx context.Context, agent string) (run.Run, error) {
	return s.engine.Work(ctx, engine.Request{Issue: 1, Cwd: s.repo, Plan: run.Plan{
		Lane: run.LanePropose, Command: agent, Checks: []string{"grep -qx fixed answer"}, AllowNoTests: true, Attempts: 2, Sandbox: string(sandbox.None),
		AgentTotal: run.AgentTotal, AgentIdle: run.AgentIdle, CheckTotal: run.CheckTotal,
	}})
}

const fixes = "echo fixed > answer"

// refused demands a refusal with this exit code, and that it says something.
func (s *site) refused(err error, exit int, says string) {
	s.t.Helper()
	var refusal *engine.Refusal
	again := exit == run.ExitInterrupted || exit == run.ExitUnknown // the same command goes on
	if !errors.As(err, &refusal) || refusal.Exit != exit || !strings.Contains(refusal.What, says) || refusal.Safe == "" || refusal.Next == "" && !again {
		s.t.Errorf("%+v (%v), want exit %d and %q\n%s", refusal, err, exit, says, s.said())
	}
}

func (s *site) refs(prefix string) string {
	s.t.Helper()
	return s.git("-C", s.repo, "for-each-ref", "--format=%(refname)", prefix)
}

// propose opens a change of a person's.
func (s *site) propose(branch string) {
	s.t.Helper()
	if _, err := s.forge.Propose(s.t.Context(), forge.Change{
		Issue: 1, Title: "by hand", Head: branch, HeadAt: s.git("-C", s.repo, "rev-parse", branch), Base: "main", BaseAt: s.git("-C", s.repo, "rev-parse", "main"), Author: "person",
	}); err != nil {
		s.t.Error(err)
	}
}

// closeIssue is what a person does who wants no more work on it.
func (s *site) closeIssue() {
	s.t.Helper()
	if _, err := s.forge.CloseIssue(s.t.Context(), 1); err != nil {
		s.t.Error(err)
	}
}

// wipeIssue is what a mirror push does to the repository; what was wiped is put back.
func (s *site) wipeIssue() {
	s.t.Helper()
	for _, ref := range strings.Fields(s.refs("refs/interlock/issues/")) {
		s.git("-C", s.repo, "update-ref", "-d", ref)
	}
}

// TestFromClaimToChange is the plain way, with what it must leave.
func TestFromClaimToChange(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r, err := s.work(t.Context(), fixes)
	if err != nil || r.State != run.InReview || r.Change != 1 {
		t.Fatalf("%+v, %v\n%s", r, err, s.said())
	}
	if got := s.git("-C", s.repo, "show", r.Branch+":answer"); got != "fixed" || s.git("-C", s.repo, "rev-parse", r.Branch) != r.Head.Hash {
		t.Errorf("the branch holds %q", got)
	}
}

// TestTheWorldMovesMeanwhile: what people do to issue, branches and base while a run is under way is
// seen before the next effect, and nothing of it is overwritten or published against it.
func TestTheWorldMovesMeanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at    string
		do    func(s *site)
		state run.State
		exit  int
		says  string
	}{
		"a change of a person while it is claimed": {"claimed", func(s *site) {
			s.git("-C", s.repo, "checkout", "-q", "-b", "by-hand")
			s.commit("by hand")
			s.propose("by-hand")
		}, run.Canceled, run.ExitRefused, "was opened while it was being claimed"},
		"the issue is closed while it is claimed": {"claimed", (*site).closeIssue, run.Canceled, run.ExitRefused, "closed or removed while it was being claimed"},
		"the issue is closed before the push":     {"verified", (*site).closeIssue, run.Parked, run.ExitRefused, "closed or removed before its work was published"},
		"the issue is closed after the push":      {"pushed", (*site).closeIssue, run.Parked, run.ExitRefused, "closed or removed before its work was published"},
		"the issue is wiped while it is claimed":  {"claimed", (*site).wipeIssue, run.InReview, 0, ""},
		"the issue is wiped before the push":      {"verified", (*site).wipeIssue, run.InReview, 0, ""},
		"the issue is wiped after the push":       {"pushed", (*site).wipeIssue, run.InReview, 0, ""},
		"an issue that is none any more": {"claimed", func(s *site) {
			s.git("-C", s.repo, "update-ref", strings.Fields(s.refs("refs/interlock/issues/"))[0], "main")
		}, run.Parked, run.ExitRefused, "the forge refuses the mark"},
		"no base any more": {"verified", func(s *site) {
			s.git("-C", s.repo, "checkout", "-q", "-b", "other")
			s.git("-C", s.repo, "branch", "-D", "main")
		}, run.Parked, run.ExitRefused, "base branch main is gone"},
		"a change of a person for the branch":   {"pushed", func(s *site) { s.propose("interlock/issue-1") }, run.InReview, 0, ""},
		"a branch that leaves no room for ours": {"verified", func(s *site) { s.git("-C", s.repo, "branch", "interlock") }, run.InReview, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.at[c.at] = func() { c.do(s) }
			r, err := s.work(t.Context(), fixes)
			if r.State != c.state {
				t.Errorf("it is %s (%s), want %s\n%s", r.State, r.Reason, c.state, s.said())
			}
			if c.exit == 0 && err != nil {
				t.Errorf("%v\n%s", err, s.said())
			}
			if c.exit != 0 {
				s.refused(err, c.exit, c.says)
			}
			if branches := s.refs("refs/heads/interlock/"); c.exit != 0 && c.at != "pushed" && branches != "" {
				t.Errorf("it was published all the same: %q", branches)
			}
			if changes := strings.Fields(s.refs("refs/interlock/changes/")); c.state == run.InReview && len(changes) != 1 {
				t.Errorf("changes: %q, want one", changes)
			}
		})
	}
}

// TestPeopleStopIt: an interrupt and a cancel take effect in each phase; an interrupted run goes on
// where it was, a canceled one never.
func TestPeopleStopIt(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"claimed", "marked", "agent", "verifying", "check", "verified"} {
		t.Run("interrupt at "+at, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			ctx, stop := context.WithCancel(t.Context())
			s.at[at] = stop
			_, err := s.work(ctx, fixes)
			s.refused(err, run.ExitInterrupted, "interrupted")
			if r, err := s.work(t.Context(), fixes); err != nil || r.State != run.InReview || len(strings.Fields(s.refs("refs/heads/interlock/"))) != 1 {
				t.Errorf("%s, %v\n%s", r.State, err, s.said())
			}
		})
		t.Run("cancel at "+at, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.at[at] = func() {
				runs, err := s.store.List(t.Context(), store.Filter{Limit: 1})
				if err != nil || len(runs) != 1 || s.store.Controls().RequestCancel(t.Context(), runs[0].ID, "enough") != nil {
					t.Errorf("%+v, %v", runs, err)
				}
			}
			r, err := s.work(t.Context(), fixes)
			s.refused(err, run.ExitRefused, "enough")
			if r.State != run.Canceled || s.refs("refs/heads/interlock/") != "" || s.refs("refs/interlock/changes/") != "" {
				t.Errorf("%s; branches %q\n%s", r.State, s.refs("refs/heads/interlock/"), s.said())
			}
		})
	}
}

// TestHeldByAnother: an issue whose key another process holds is refused with that holder's name, and
// neither a run nor a claim is made.
func TestHeldByAnother(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, err := s.store.Acquire(t.Context(), run.Holder{ID: "x", PID: 4711, Host: "there"}, store.Key(s.forge.Location().Key, 1), run.LeaseTTL, 0)
	must(t, err)
	_, err = s.work(t.Context(), fixes)
	s.refused(err, run.ExitHeld, "4711")
	if runs, err := s.store.List(t.Context(), store.Filter{}); err != nil || len(runs) != 0 || s.refs("refs/interlock/claims/") != "" {
		t.Errorf("runs %+v, claims %q, %v", runs, s.refs("refs/interlock/claims/"), err)
	}
}

// TestLongStepRenewsTheClaim: while an agent works, lease and claim are renewed on their own clocks;
// a claim that somebody else took meanwhile ends the agent, and nothing is published.
func TestLongStepRenewsTheClaim(t *testing.T) {
	t.Parallel()
	for _, taken := range []bool{false, true} {
		t.Run(fmt.Sprintf("taken %t", taken), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			end := filepath.Join(t.TempDir(), "end")
			key, before := store.Key(s.forge.Location().Key, 1), ""
			claim := func() string { return s.git("-C", s.repo, "rev-parse", "refs/interlock/claims/1") }
			s.at["agent"] = func() {
				before = claim()
				if taken {
					tree, message := s.git("-C", s.repo, "rev-parse", before+"^{tree}"), s.git("-C", s.repo, "log", "-1", "--format=%B", before)
					s.git("-C", s.repo, "update-ref", "refs/interlock/claims/1", s.git("-C", s.repo, "-c", "user.name=T", "-c", "user.email=t@localhost",
						"commit-tree", tree, "-m", strings.Replace(message, `"nonce":"`, `"nonce":"0`, 1)))
				}
				go s.pass(run.ClaimRenew+run.LeaseRenew, key, func() bool { return taken || claim() != before }, end)
			}
			r, err := s.work(t.Context(), "while ! test -e "+end+"; do sleep 0.1; done; "+fixes)
			if taken {
				s.refused(err, run.ExitLost, "lost its authority")
				if s.refs("refs/heads/interlock/") != "" {
					t.Errorf("branches: %q", s.refs("refs/heads/interlock/"))
				}
				return
			}
			if err != nil || r.State != run.InReview {
				t.Errorf("%s, %v\n%s", r.State, err, s.said())
			}
		})
	}
}

// pass lets time pass in steps, each only after the lease was renewed for the last one, then waits
// for a condition and writes a file.
func (s *site) pass(long time.Duration, key string, until func() bool, file string) {
	wait := func(is func() bool) bool {
		for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				return false
			}
		}
		return true
	}
	for passed := time.Duration(0); passed < long; passed += run.LeaseRenew {
		s.clock.Advance(run.LeaseRenew)
		now := s.clock.Now()
		if !wait(func() bool {
			l, ok, err := s.store.Controls().Lease(s.t.Context(), key)
			return err != nil || !ok || l.Expires >= now+run.LeaseTTL-run.LeaseRenew/2
		}) {
			s.t.Error("the lease is not renewed")
			break
		}
	}
	if !wait(until) {
		s.t.Error("the claim is not renewed")
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		s.t.Error(err)
	}
}
