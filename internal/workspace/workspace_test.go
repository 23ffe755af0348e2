package workspace_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"interlock/internal/covered"
	"interlock/internal/git"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/snapshot"
	"interlock/internal/store"
	"interlock/internal/toolchain"
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

// place is what an engine has: its repository with a base commit, and a run that starts from it.
type place struct {
	host     *workspace.Host
	run      run.Run
	recorded []store.Session
}

func newPlace(t *testing.T, level sandbox.Level) *place {
	t.Helper()
	facts := sandbox.Inspect(t.Context())
	if err := facts.Check(level); err != nil {
		if os.Getenv("INTERLOCK_CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	g, err := git.Find(t.Context())
	must(t, err)
	repo, err := g.Engine(t.Context(), filepath.Join(t.TempDir(), "engine.git"))
	must(t, err)
	project := filepath.Join(t.TempDir(), "project")
	for _, args := range [][]string{
		{"init", "-q", "-b", "main", project},
		{"-C", project, "-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "-q", "--allow-empty", "-m", "first"},
	} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	base, err := repo.FetchBranch(t.Context(), project, "main", "refs/interlock/runs/1-a/base")
	must(t, err)
	tools, path := toolchain.Find(t.Context(), os.Environ())
	return &place{
		host: &workspace.Host{State: t.TempDir(), Repo: repo, Facts: facts, Env: os.Environ(), Tools: tools, Path: path, Now: time.Now},
		run: run.Run{
			ID: "1-a", Issue: 1, Branch: "interlock/issue-1", Base: run.Base{Branch: "main", Commit: run.Commit{Hash: base.Hash, Tree: base.Tree}},
			Plan: run.Plan{Sandbox: string(level), AgentTotal: 5 * time.Minute},
		},
	}
}

func (p *place) record(s store.Session) error {
	p.recorded = append(p.recorded, s)
	return nil
}

// agent makes the next attempt's workspace and has a shell script work in it.
func (p *place) agent(t *testing.T, script string) (sandbox.Room, sandbox.Result, error) {
	t.Helper()
	room, err := p.host.Make(t.Context(), p.run, "the prompt\n")
	must(t, err)
	p.run.Attempt++
	res, err := p.host.Agent(t.Context(), p.run, room, workspace.Command{Argv: []string{"/bin/sh", "-c", script}, Env: []string{"OF_THE_COMMAND=yes"}},
		p.record, func(s *sandbox.Session) (sandbox.Result, error) { return s.Wait(t.Context()) })
	return room, res, err
}

func levels(t *testing.T, do func(t *testing.T, level sandbox.Level)) {
	t.Parallel()
	for _, level := range []sandbox.Level{sandbox.None, sandbox.Landlock, sandbox.Full} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			do(t, level)
		})
	}
}

// TestAnAttempt: an agent finds its prompt, its variables and the base; what it commits comes in,
// and what it leaves uncommitted comes in as one commit on top. Each session is recorded before it
// starts and when it is gone.
func TestAnAttempt(t *testing.T) {
	levels(t, func(t *testing.T, level sandbox.Level) {
		p := newPlace(t, level)
		room, res, err := p.agent(t, `set -e; test "$(cat "$INTERLOCK_PROMPT_FILE")" = "the prompt"; test "$(cat)" = "the prompt"
test "$INTERLOCK_ISSUE $INTERLOCK_RUN $INTERLOCK_ATTEMPT $OF_THE_COMMAND" = "1 1-a 1 yes"
test "$(git symbolic-ref --short HEAD)" = interlock/issue-1; mkdir -p "$HOME/.cache/x"; touch "$TMPDIR/x"
echo one > one; git add one; git commit -qm one; echo two > two`)
		if err != nil || res.Exit != 0 || res.Why != "exit" {
			log, _ := os.ReadFile(p.recorded[0].Log)
			t.Fatalf("%+v, %v\n%s", res, err, log)
		}
		committed, err := p.host.Commits(t.Context(), p.run, room)
		must(t, err)
		head, extra, err := p.host.BringIn(t.Context(), p.run, room, p.record)
		if err != nil || !extra || len(head.Parents) != 1 || head.Parents[0] != committed.Hash || committed.Parents[0] != p.run.Base.Commit.Hash {
			t.Fatalf("%+v on %+v, extra %t, %v", head, committed, extra, err)
		}
		two, err := p.host.Repo.Blob(t.Context(), head.Hash+":two", 100)
		message, _, merr := p.host.Repo.Message(t.Context(), head.Hash)
		if err != nil || merr != nil || string(two) != "two\n" || !strings.Contains(message, "issue 1") || !strings.Contains(message, "attempt 1") {
			t.Errorf("%q, %v; %q, %v", two, err, message, merr)
		}
		var life []string
		for _, s := range p.recorded {
			life = append(life, fmt.Sprintf("%s %t %t", s.Kind, s.Handle != "", s.Ended))
		}
		if got := strings.Join(life, ", "); got != "agent true false, agent true true, snapshot true false, snapshot true true" {
			t.Errorf("recorded: %s", got)
		}
		must(t, workspace.Clear(room))
		for path, there := range map[string]bool{room.Temp(): false, filepath.Join(room.Home(), ".cache"): false, filepath.Join(room.Tree(), "two"): true} {
			if _, err := os.Stat(path); (err == nil) != there {
				t.Errorf("after the end %s: %v", path, err)
			}
		}
		p.run.Tip = head.Hash // the next attempt goes on from it, and has nothing to add
		room, res, err = p.agent(t, "test -f one && test -f two")
		if err != nil || res.Exit != 0 {
			t.Fatalf("%+v, %v", res, err)
		}
		if again, extra, err := p.host.BringIn(t.Context(), p.run, room, p.record); err != nil || extra || again.Hash != head.Hash {
			t.Errorf("%+v, %t, %v", again, extra, err)
		}
	})
}

// TestWhatCannotComeIn: a workspace that is none any more is refused by its content, so nobody tries
// it again for ever.
func TestWhatCannotComeIn(t *testing.T) {
	levels(t, func(t *testing.T, level sandbox.Level) {
		p := newPlace(t, level)
		room, _, err := p.agent(t, "rm -rf .git; echo x > x")
		must(t, err)
		if head, _, err := p.host.BringIn(t.Context(), p.run, room, p.record); !workspace.OfContent(err) || head.Hash != "" {
			t.Errorf("without a git directory: %+v, %v", head, err)
		}
	})
	for err, ofContent := range map[error]bool{nil: false, context.Canceled: false, fs.ErrNotExist: false, git.ErrTooBig: true, snapshot.ErrContent: true} {
		if workspace.OfContent(err) != ofContent {
			t.Errorf("%v", err)
		}
	}
}

// TestNothingRunsUnrecorded: when the session cannot be recorded nothing of the agent runs, and
// nothing of it is left.
func TestNothingRunsUnrecorded(t *testing.T) {
	levels(t, func(t *testing.T, level sandbox.Level) {
		p := newPlace(t, level)
		room, err := p.host.Make(t.Context(), p.run, "")
		must(t, err)
		lost := errors.New("the lease is lost")
		begun := false
		_, err = p.host.Agent(t.Context(), p.run, room, workspace.Command{Argv: []string{"/bin/sh", "-c", "touch ran"}},
			func(store.Session) error { return lost }, func(s *sandbox.Session) (sandbox.Result, error) {
				begun = true
				return s.Wait(t.Context())
			})
		if _, serr := os.Stat(filepath.Join(room.Tree(), "ran")); !errors.Is(err, lost) || begun || serr == nil {
			t.Errorf("%v; begun %t, ran %v", err, begun, serr)
		}
	})
}

// TestEndSessions: whoever takes a run over ends what a dead holder left, and has it proved; without
// a proof it is an error. What is recorded as ended is left alone.
func TestEndSessions(t *testing.T) {
	levels(t, func(t *testing.T, level sandbox.Level) {
		p := newPlace(t, level)
		room, err := p.host.Make(t.Context(), p.run, "")
		must(t, err)
		var proof string
		_, err = p.host.Agent(t.Context(), p.run, room, workspace.Command{Argv: []string{"/bin/sh", "-c", "touch begun; sleep 600"}}, p.record,
			func(s *sandbox.Session) (sandbox.Result, error) {
				for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
					if _, err := os.Stat(filepath.Join(room.Tree(), "begun")); err == nil {
						break
					}
					if time.Now().After(deadline) {
						t.Error("the agent does not begin")
						break
					}
				}
				var err error
				if proof, err = workspace.EndSessions(t.Context(), p.recorded[:1]); err != nil {
					t.Error(err)
				}
				return s.Wait(t.Context())
			})
		if err != nil || !strings.Contains(proof, "proved gone (1)") {
			t.Errorf("%q, %v", proof, err)
		}
	})
	t.Run("records", func(t *testing.T) {
		if proof, err := workspace.EndSessions(t.Context(), []store.Session{{ID: "s", Handle: "not looked at", Ended: true}}); err != nil || proof != "no session of it was left" {
			t.Errorf("%q, %v", proof, err)
		}
		if _, err := workspace.EndSessions(t.Context(), []store.Session{{ID: "s", Handle: "{"}}); err == nil {
			t.Error("a record that cannot be read proves an end")
		}
		if _, err := workspace.EndSessions(t.Context(), []store.Session{{ID: "s", Handle: "{}"}}); !errors.Is(err, sandbox.ErrNotProved) {
			t.Errorf("of an empty record: %v", err)
		}
	})
}

// TestFreeDir: what a dead attempt left is never written over.
func TestFreeDir(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "a", "b")
	var names bytes.Buffer
	for range 3 {
		dir, err := workspace.FreeDir(parent, "1")
		must(t, err)
		must(t, os.Mkdir(dir, 0o700))
		fmt.Fprintln(&names, filepath.Base(dir))
	}
	if names.String() != "1\n1.2\n1.3\n" {
		t.Errorf("%q", names.String())
	}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if dir, err := workspace.FreeDir(file, "1"); err == nil {
		t.Errorf("below a file: %s", dir)
	}
}
