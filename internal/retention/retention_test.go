package retention_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"interlock/internal/covered"
	"interlock/internal/git"
	"interlock/internal/lease"
	"interlock/internal/retention"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/snapshot"
	"interlock/internal/store"
	"interlock/internal/store/sqlite"
	"interlock/internal/workspace"
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

// state is a state directory with one run, whose attempts are made as the engine makes them.
type state struct {
	t     *testing.T
	dir   string
	store *sqlite.Store
	keep  *retention.Keeper
	host  *workspace.Host
	repo  *git.Repo
	base  git.Commit
	run   run.Run
	lease run.Lease
	tips  []string // what is on the forge
	said  []string
}

func newState(t *testing.T) *state {
	t.Helper()
	s := &state{t: t, dir: filepath.Join(t.TempDir(), "state")}
	var err error
	s.store, err = sqlite.Open(t.Context(), s.dir, sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, s.store.Close()) })
	self, err := lease.Self(t.Context(), s.store)
	must(t, err)
	g, err := git.Find(t.Context())
	must(t, err)
	s.repo, err = g.Engine(t.Context(), workspace.RepoDir(s.dir, "local:1"))
	must(t, err)
	project := filepath.Join(t.TempDir(), "project")
	s.git("init", "-q", "-b", "main", project)
	must(t, os.WriteFile(filepath.Join(project, ".gitignore"), []byte("ignored\n"), 0o600))
	s.git("-C", project, "add", "-A")
	s.git("-C", project, "-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "-q", "-m", "first")
	s.base, err = s.repo.FetchBranch(t.Context(), project, "main", "refs/interlock/runs/1-a/base")
	must(t, err)
	s.host = &workspace.Host{State: s.dir, Repo: s.repo, Facts: sandbox.Inspect(t.Context()), Env: os.Environ(), Path: os.Getenv("PATH"), Now: time.Now}
	s.keep = &retention.Keeper{
		State: s.dir, Store: s.store, Clock: later{s.store.Clock()}, Git: g, Facts: sandbox.Inspect, Env: os.Environ(), Self: self,
		Limits:   retention.Limits{Workspaces: time.Hour, Logs: time.Hour},
		Branches: func(context.Context, run.Run) ([]string, error) { return s.tips, nil },
		Say:      func(line string) { s.said = append(s.said, line) },
	}
	s.lease, s.run, err = s.store.Claim(t.Context(), self, run.Run{
		ID: "1-a", Repo: "local:1", RepoPath: project, Issue: 1, State: run.Implementing, Branch: "interlock/issue-1",
		Base: run.Base{Branch: "main", Commit: run.Commit{Hash: s.base.Hash, Tree: s.base.Tree}},
		Plan: run.Plan{Sandbox: string(sandbox.None), AgentTotal: time.Minute},
	}, time.Minute)
	must(t, err)
	return s
}

func (s *state) git(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("git", args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (s *state) record(session store.Session) error {
	return s.store.PutSession(s.t.Context(), s.lease, session)
}

// attempt has a shell script work in the next workspace.
func (s *state) attempt(script string) sandbox.Room {
	s.t.Helper()
	room, err := s.host.Make(s.t.Context(), s.run, "task")
	must(s.t, err)
	s.run.Attempt++
	who := "export GIT_AUTHOR_NAME=T GIT_AUTHOR_EMAIL=t@localhost GIT_COMMITTER_NAME=T GIT_COMMITTER_EMAIL=t@localhost; set -e\n"
	res, err := s.host.Agent(s.t.Context(), s.run, room, workspace.Command{Argv: []string{"/bin/sh", "-c", who + script}}, s.record,
		func(live *sandbox.Session) (sandbox.Result, error) { return live.Wait(s.t.Context()) })
	if err != nil || res.Exit != 0 {
		s.t.Fatalf("the agent: %+v, %v", res, err)
	}
	return room
}

// worked is an attempt whose work is imported.
func (s *state) worked(script string) (sandbox.Room, string) {
	s.t.Helper()
	room := s.attempt(script)
	head, _, err := s.host.BringIn(s.t.Context(), s.run, room, s.record)
	must(s.t, err)
	return room, head.Hash
}

// later is two hours after what is done in the tests.
type later struct{ store.Clock }

func (c later) Wall() time.Time { return c.Clock.Wall().Add(2 * time.Hour) }

// rest lets the run come to rest, with this hash pushed.
func (s *state) rest(state run.State, pushed string) {
	s.t.Helper()
	s.run.State, s.run.Pushed = state, pushed
	var err error
	s.run, err = s.store.Save(s.t.Context(), s.lease, s.run)
	must(s.t, err)
	must(s.t, s.store.Release(s.t.Context(), s.lease))
}

// works are the workspaces of the run by what their work is.
func (s *state) works() (list []string, all []retention.Workspace) {
	s.t.Helper()
	all, err := s.keep.List(s.t.Context(), "1-a")
	must(s.t, err)
	for _, w := range all {
		list = append(list, w.Name+" "+string(w.Work))
	}
	return list, all
}

func (s *state) sweep(h retention.Hint) retention.Swept {
	s.t.Helper()
	swept, err := s.keep.Sweep(s.t.Context(), h)
	must(s.t, err)
	return swept
}

// refused demands a refusal with this exit code that says this.
func (s *state) refused(err error, exit int, says string) {
	s.t.Helper()
	var r *retention.RefusedError
	if !errors.As(err, &r) || r.Exit != exit || !strings.Contains(r.What, says) || r.Safe == "" {
		s.t.Errorf("%+v (%v), want exit %d and %q", r, err, exit, says)
	}
}

const commits = "echo one > one; git add one; git commit -qm one; echo two > two"

// unpin takes away the refs of what was imported: of the snapshot of what was uncommitted, or all.
func unpin(snapshot bool) func(s *state, room sandbox.Room) {
	return func(s *state, room sandbox.Room) {
		rec, _, err := workspace.ReadImported(room)
		must(s.t, err)
		refs, err := s.repo.Refs(s.t.Context(), "refs/interlock/runs/1-a/")
		must(s.t, err)
		for ref, hash := range refs {
			if !strings.HasSuffix(ref, "/base") && (hash == rec.Head || !snapshot) {
				must(s.t, s.repo.UpdateRefs(s.t.Context(), git.Update{Ref: ref, Old: hash}))
			}
		}
	}
}

// TestWhatIsSafe: each way in which work can be nowhere else keeps a workspace from every sweep and
// every drop; only what was imported whole, and is as it was then, is safe.
func TestWhatIsSafe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		after  func(s *state, room sandbox.Room)
		work   retention.Work
		why    string
	}{
		"imported":                         {commits, nil, retention.Imported, "in Interlock's own repository"},
		"nothing was changed":              {"true", nil, retention.None, "changed nothing"},
		"only what the repository ignores": {"echo x > ignored", nil, retention.None, "changed nothing"},
		"another branch": {"git checkout -q -b other; " + commits + "; git add two; git commit -qm two; git checkout -q interlock/issue-1",
			nil, retention.Open, "commits of refs/heads/other in it were not imported"},
		"a packed branch": {"git checkout -q -b other; " + commits + "; git add two; git commit -qm two; git checkout -q interlock/issue-1; git pack-refs --all",
			nil, retention.Open, "commits of refs/heads/other in it were not imported"},
		"a stash": {"echo x >> .gitignore; git stash -q", nil, retention.Open, "commits of refs/stash"},
		"a stash below a stash": {"for i in 1 2; do echo $i >> .gitignore; git stash -q; done; git update-ref -d refs/stash --no-deref 2>/dev/null; mkdir -p .git/logs/refs; printf 'a\\nb\\n' > .git/logs/refs/stash",
			nil, retention.Open, "stash below the newest"},
		"a file in a submodule": {"git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),lib; git commit -qm lib; mkdir -p lib/deep; echo x > lib/deep/work",
			nil, retention.Open, "what lies in the submodule lib was not imported"},
		"a repository in it":    {commits + "; git init -q sub/own; git -C sub/own commit -q --allow-empty -m own", nil, retention.Open, "a git repository of its own, which no import takes: sub/own"},
		"a work tree beside it": {commits + "; git worktree add -q \"$HOME/beside\"", nil, retention.Open, ".git/worktrees"},
		"refs elsewhere":        {commits + "; touch .git/commondir", nil, retention.Open, ""},
		"a ref that is no file": {commits, func(s *state, room sandbox.Room) {
			must(s.t, syscall.Mkfifo(filepath.Join(room.Tree(), ".git", "refs", "heads", "x"), 0o600))
		}, retention.Open, "changed after it was imported"},
		"a person worked in it": {commits, func(s *state, room sandbox.Room) {
			must(s.t, os.WriteFile(filepath.Join(room.Tree(), "mine"), nil, 0o600))
		}, retention.Open, "changed after it was imported"},
		"the record is damaged": {commits, func(s *state, room sandbox.Room) {
			must(s.t, os.WriteFile(filepath.Join(room.Root, "imported.json"), []byte("{}"), 0o600))
		}, retention.Open, "cannot be read"},
		"the pin of its branch is gone":           {commits, unpin(false), retention.Open, "commits of refs/heads/interlock/issue-1 in it were not imported"},
		"the pin of what was uncommitted is gone": {commits, unpin(true), retention.Open, "is gone from the engine's repository"},
		"the engine's repository is gone":         {commits, func(s *state, _ sandbox.Room) { must(s.t, os.RemoveAll(s.repo.Dir())) }, retention.Open, "is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newState(t)
			room := s.attempt(c.script)
			if _, _, err := s.host.BringIn(t.Context(), s.run, room, s.record); err != nil && c.why != "" {
				t.Fatal(err)
			}
			if c.after != nil {
				c.after(s, room)
			}
			s.rest(run.Parked, "")
			_, all := s.works()
			if len(all) != 1 || all[0].Work != c.work || !strings.Contains(all[0].Why, c.why) {
				t.Fatalf("%+v, want %q %q", all, c.work, c.why)
			}
			if c.work != retention.Open {
				return
			}
			if swept := s.sweep(retention.Hint{AnyAge: true, Imported: true}); len(swept.Workspaces) != 0 {
				t.Errorf("swept: %+v", swept)
			}
			_, err := s.keep.Drop(t.Context(), "1-a", nil)
			s.refused(err, run.ExitRefused, "it may hold work that is nowhere else: workspace 1: ")
			if _, err := os.Stat(room.Tree()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAnotherPath: a state that is reached by another path than when the work was done holds the same work.
func TestAnotherPath(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.attempt(commits)
	s.rest(run.Parked, "")
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(s.dir, link))
	s.keep.State = link
	if list, all := s.works(); !slices.Equal(list, []string{"1 " + string(retention.Open)}) {
		t.Errorf("%q: %+v", list, all)
	}
	if swept := s.sweep(retention.Hint{AnyAge: true, Imported: true}); len(swept.Workspaces) != 0 {
		t.Errorf("swept: %+v", swept)
	}
}

// TestNoRecordNoLoss: what was never imported, and what an agent's log speaks of though the state does
// not, is not taken for empty.
func TestNoRecordNoLoss(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.attempt(commits)
	_, err := s.host.Make(t.Context(), s.run, "made, and nothing began") // 2
	must(t, err)
	for _, dir := range []string{"2-check/1/tree", "3", "mine"} {
		must(t, os.MkdirAll(filepath.Join(s.dir, "work", "1-a", dir), 0o700))
	}
	must(t, os.WriteFile(filepath.Join(s.dir, "logs", "1-a", "3-agent.log"), nil, 0o600))
	s.rest(run.Canceled, "")
	list, _ := s.works()
	if want := []string{"mine not imported", "1 not imported", "2 none", "2-check none", "3 not imported"}; !slices.Equal(list, want) {
		t.Errorf("%q, want %q", list, want)
	}
	if swept := s.sweep(retention.Hint{}); len(swept.Workspaces) != 2 {
		t.Errorf("%+v", swept)
	}
	if _, err := s.keep.Drop(t.Context(), "1-a", []string{"mine", "1", "3"}); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Join(s.dir, "work")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestReadBackFromTheForge: work that was pushed goes only while the forge has it at this moment.
func TestReadBackFromTheForge(t *testing.T) {
	t.Parallel()
	s := newState(t)
	_, head := s.worked(commits)
	s.rest(run.InReview, head)
	if list, _ := s.works(); !slices.Equal(list, []string{"1 pushed"}) {
		t.Fatalf("%q", list)
	}
	s.tips = []string{s.base.Hash, strings.Repeat("1", 40)}
	if swept := s.sweep(retention.Hint{}); len(swept.Workspaces) != 0 || len(swept.Left) != 1 || !strings.Contains(swept.Left[0], "is not on the branch") {
		t.Errorf("%+v", swept)
	}
	s.keep.Branches = func(context.Context, run.Run) ([]string, error) { return nil, errors.New("it was moved") }
	if swept := s.sweep(retention.Hint{AnyAge: true}); len(swept.Workspaces) != 0 || len(swept.Left) != 1 || !strings.Contains(swept.Left[0], "it was moved") {
		t.Errorf("%+v", swept)
	}
	s.keep.Branches = func(context.Context, run.Run) ([]string, error) { return []string{head}, nil }
	s.keep.Limits.Workspaces = 3 * time.Hour
	if swept := s.sweep(retention.Hint{}); len(swept.Workspaces) != 0 {
		t.Errorf("too early: %+v", swept)
	}
	s.keep.Limits.Workspaces = 0
	if swept := s.sweep(retention.Hint{}); len(swept.Workspaces) != 0 {
		t.Errorf("never by time: %+v", swept)
	}
	s.keep.Limits.Workspaces = time.Hour
	swept := s.sweep(retention.Hint{})
	if len(swept.Workspaces) != 1 || swept.Bytes < 1 || swept.Logs != 1 {
		t.Errorf("%+v", swept)
	}
	if _, err := s.repo.Resolve(t.Context(), head); err != nil {
		t.Errorf("the engine's repository lost it: %v", err)
	}
}

// TestInUse: nothing of a run that is driven, that has something left to do, or of which a process may
// live, is touched.
func TestInUse(t *testing.T) {
	t.Parallel()
	s := newState(t)
	room, head := s.worked(commits)
	s.tips = []string{head}
	untouched := func(says string) {
		t.Helper()
		if swept := s.sweep(retention.Hint{AnyAge: true, Imported: true}); len(swept.Workspaces) != 0 {
			t.Errorf("%s: swept", says)
		}
		_, err := s.keep.Drop(t.Context(), "1-a", nil)
		s.refused(err, run.ExitRefused, says)
		_, err = s.keep.Export(t.Context(), "1-a", filepath.Join(t.TempDir(), "x"))
		s.refused(err, run.ExitRefused, says)
		if _, err := os.Stat(room.Tree()); err != nil {
			t.Error(err)
		}
	}
	untouched("its run is implementing")
	var err error
	s.run.State, s.run.Pushed, s.run.Effects = run.InReview, head, []run.Effect{{Kind: run.EffectRelease, Key: "release:1"}}
	s.run, err = s.store.Save(t.Context(), s.lease, s.run)
	must(t, err)
	untouched("something is still to be done for its run (release)")
	s.run.Effects = nil
	s.run, err = s.store.Save(t.Context(), s.lease, s.run)
	must(t, err)
	untouched("holds its run") // this process has the lease
	must(t, s.store.Release(t.Context(), s.lease))
	if d, err := s.keep.Drop(t.Context(), "1-a", nil); err != nil || len(d.Workspaces) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestLeftSession: a session that a killed export has left recorded is ended and proved gone by the
// next command of a person; a sweep leaves it alone.
func TestLeftSession(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.worked(commits)
	must(t, s.record(store.Session{ID: "left", Run: "1-a", Attempt: 1, Kind: "snapshot", Handle: `{"boot":"of another boot","pid":1,"start":1}`, Started: time.Now()}))
	s.rest(run.Parked, "")
	if swept := s.sweep(retention.Hint{AnyAge: true, Imported: true}); len(swept.Workspaces) != 0 {
		t.Errorf("%+v", swept)
	}
	if _, err := s.keep.Drop(t.Context(), "1-a", nil); err != nil {
		t.Error(err)
	}
	h, err := s.store.History(t.Context(), "1-a")
	if err != nil || slices.ContainsFunc(h.Sessions, func(x store.Session) bool { return !x.Ended }) {
		t.Errorf("%+v, %v", h.Sessions, err)
	}
}

// TestKeepIsDurable: what a person keeps stays, also for a person's own drop; a record that was damaged
// keeps too.
func TestKeepIsDurable(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.worked("true")
	s.rest(run.Done, "")
	for range 2 {
		if _, err := s.keep.Keep(t.Context(), "1-a", true); err != nil {
			t.Fatal(err)
		}
	}
	_, all := s.works()
	if !all[0].Kept || all[0].Goes != nil || all[0].Work != retention.None {
		t.Errorf("%+v", all)
	}
	if swept := s.sweep(retention.Hint{AnyAge: true, Imported: true}); len(swept.Workspaces) != 0 {
		t.Errorf("%+v", swept)
	}
	_, err := s.keep.Drop(t.Context(), "1-a", []string{"1"})
	s.refused(err, run.ExitRefused, "are kept")
	must(t, os.WriteFile(filepath.Join(s.dir, "work", "1-a", "kept.json"), []byte("half"), 0o600))
	if swept := s.sweep(retention.Hint{AnyAge: true, Imported: true}); len(swept.Workspaces) != 0 {
		t.Errorf("%+v", swept)
	}
	if changed, err := s.keep.Keep(t.Context(), "1-a", false); err != nil || !changed {
		t.Error(changed, err)
	}
	if swept := s.sweep(retention.Hint{}); len(swept.Workspaces) != 1 {
		t.Errorf("%+v", swept)
	}
	if changed, err := s.keep.Keep(t.Context(), "1-a", false); err != nil || changed {
		t.Error(changed, err)
	}
}
