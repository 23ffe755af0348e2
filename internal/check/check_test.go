package check_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"interlock/internal/check"
	"interlock/internal/git"
	"interlock/internal/run"
	"interlock/internal/sandbox"
)

func TestVerdict(t *testing.T) {
	t.Parallel()
	atLevels(t, func(t *testing.T, level sandbox.Level) {
		f := newFixture(t, map[string]string{"a.txt": "a\n", "sub/run.sh*": "#!/bin/sh\necho from the tree\n"})
		var began, ended []sandbox.Identity
		var lines []string
		req := f.request(level, "./sub/run.sh && cat a.txt", "echo second >&2")
		req.OnSession = func(id sandbox.Identity) error { began = append(began, id); return nil }
		req.OnEnd = func(id sandbox.Identity) error { ended = append(ended, id); return nil }
		req.Progress = func(line string) { lines = append(lines, line) }
		v := f.verify(t, req)
		if !v.Passed || v.Head != f.head || v.Base != req.Base || v.Tests != nil || v.Why != "" || v.Sandbox != string(level) {
			t.Errorf("verdict %+v", v)
		}
		if len(v.Commands) != 2 {
			t.Fatalf("commands %+v", v.Commands)
		}
		for i, want := range []string{"from the tree\na", "second"} {
			if c := v.Commands[i]; c.Line != req.Commands[i] || c.Exit != 0 || c.Output != want || c.Why != "" || c.Tests != nil || c.Duration <= 0 {
				t.Errorf("command %d: %+v", i, c)
			}
		}
		if len(began) != 2 || !slices.Equal(began, ended) || began[0].Session == began[1].Session {
			t.Errorf("began %+v, ended %+v", began, ended)
		}
		if want := "$ ./sub/run.sh && cat a.txt\nfrom the tree\na\n$ echo second >&2\nsecond\n"; f.log(t) != want {
			t.Errorf("log %q, want %q", f.log(t), want)
		}
		if info, err := os.Stat(req.Log); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("log: %v, %v", info, err)
		}
		if len(lines) != 4 || lines[0] != "check 1 of 2: ./sub/run.sh && cat a.txt" || !strings.HasPrefix(lines[1], "check 1 of 2: passed after ") {
			t.Errorf("progress %q", lines)
		}
	})
}

// TestCleanTree: the checkout is the commit and nothing else, and so are home and temporary
// directory: nothing of another tree, and nothing of an earlier check.
func TestCleanTree(t *testing.T) {
	t.Parallel()
	atLevels(t, func(t *testing.T, level sandbox.Level) {
		f := newFixture(t, map[string]string{"a.txt": "a\n", ".gitignore": "*.out\n", "b.sh*": "#!/bin/sh\n"})
		line := `set -e
test "$(git rev-parse HEAD)" = ` + f.head.Hash + `
test "$(git rev-parse 'HEAD^{tree}')" = ` + f.head.Tree + `
! git symbolic-ref -q HEAD
test -z "$(git status --porcelain --ignored)"
test -z "$(git remote)"
test "$(ls -A | sort | tr '\n' ' ')" = ".git .gitignore a.txt b.sh "
test -x b.sh
test -z "$(ls -A "$HOME")"
test -z "$(ls -A "$TMPDIR")"
touch left.out untracked "$HOME/left" "$TMPDIR/left"`
		for range 2 {
			if v := f.verify(t, f.request(level, line)); !v.Passed {
				t.Fatalf("verdict %+v\n%s", v, f.log(t))
			}
		}
	})
}

// TestEnvironment: little of the operator's environment is passed on, and no cache.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	atLevels(t, func(t *testing.T, level sandbox.Level) {
		f := newFixture(t, nil)
		req := f.request(level, "env", "go env GOCACHE GOFLAGS")
		planted := filepath.Join(f.base, "planted")
		req.Env = append(req.Env, "FORGE_TOKEN=sesame", "GOCACHE="+planted, "XDG_CACHE_HOME="+planted, "GOFLAGS=-mod=mod")
		v := f.verify(t, req)
		if !v.Passed {
			t.Fatalf("verdict %+v", v)
		}
		if strings.Contains(f.log(t), "sesame") || strings.Contains(f.log(t), planted) {
			t.Errorf("environment:\n%s", f.log(t))
		}
		home := filepath.Join(f.base, "room", "2", "home")
		if level == sandbox.Full {
			home = sandbox.HomeInside
		}
		if want := home + "/.cache/go-build\n-mod=mod"; v.Commands[1].Output != want {
			t.Errorf("go env: %q, want %q", v.Commands[1].Output, want)
		}
	})
}

func TestFailedCommands(t *testing.T) {
	t.Parallel()
	files := map[string]string{"plain.sh": "#!/bin/sh\n"}
	for name, tc := range map[string]struct {
		line, why string
		exit      int
	}{
		"exit":       {"echo seen; exit 3", "exit code 3", 3},
		"missing":    {"no-such-program-here", "exit code 127: a program was not found", 127},
		"plain file": {"./plain.sh", "exit code 126: a program was found that cannot be executed", 126},
		"signal":     {"kill -s KILL $$", "ended by signal ", -1},
		"limit":      {"echo begun; sleep 600", "ended by the time limit of 2s", -1},
		"no shell":   {"if", "exit code 2", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atLevels(t, func(t *testing.T, level sandbox.Level) {
				f := newFixture(t, files)
				req := f.request(level, "true", tc.line, "touch ran-after", "true")
				if name == "limit" {
					req.Total = 2 * time.Second
				}
				v := f.verify(t, req)
				if v.Passed || len(v.Commands) != 4 || v.Commands[0].Why != "" {
					t.Fatalf("verdict %+v", v)
				}
				c := v.Commands[1]
				if !strings.HasPrefix(c.Why, tc.why) || c.Exit != tc.exit {
					t.Errorf("why %q, exit %d; want %q, %d", c.Why, c.Exit, tc.why, tc.exit)
				}
				if c.Duration > 20*time.Second {
					t.Errorf("it took %s", c.Duration)
				}
				if want := fmt.Sprintf("check 2 of 4 (`%s`): %s", tc.line, c.Why); v.Why != want {
					t.Errorf("why %q, want %q", v.Why, want)
				}
				for _, c := range v.Commands[2:] {
					if c.Why != run.NotRun || c.Exit != -1 {
						t.Errorf("after the failure: %+v", c)
					}
				}
				if strings.Contains(f.log(t), "ran-after") {
					t.Errorf("log %q", f.log(t))
				}
				found := v.Findings()
				if !strings.Contains(found, c.Why) || !strings.Contains(found, "Check `true` was not run") || strings.Contains(found, "`true` failed") {
					t.Errorf("findings:\n%s", found)
				}
			})
		})
	}
}

// TestNothingIsLeftBehind: what a check leaves running ends with it, and does not hold it up.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	atLevels(t, func(t *testing.T, level sandbox.Level) {
		f := newFixture(t, nil)
		v := f.verify(t, f.request(level, "setsid sleep 600 & echo $!", "cat /proc/[0-9]*/comm 2>/dev/null || true"))
		if !v.Passed || v.Commands[0].Duration > 20*time.Second {
			t.Fatalf("verdict %+v", v)
		}
		pid := v.Commands[0].Output
		if level == sandbox.Full {
			if strings.Contains(v.Commands[1].Output, "sleep") {
				t.Errorf("in the next check runs:\n%s", v.Commands[1].Output)
			}
			return
		}
		if b, err := os.ReadFile("/proc/" + pid + "/comm"); err == nil && string(b) == "sleep\n" {
			t.Errorf("process %s still runs", pid)
		}
	})
}

// goPrints is a line with a `go test` whose go is a function that prints these events.
func goPrints(exit int, events ...string) string {
	return fmt.Sprintf("go() { cat <<'E'\n%sE\nreturn %d; }; go test ./...", strings.Join(events, ""), exit)
}

func TestTestsAreCounted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	v := f.verify(t, f.request(sandbox.None, "true",
		goPrints(0, ev("pass", "p", "TestA", ""), ev("pass", "p", "TestB", ""), ev("skip", "p", "TestC", "")),
		goPrints(0, ev("pass", "q", "TestA", ""))))
	if !v.Passed || v.Tests == nil || *v.Tests != 3 {
		t.Fatalf("verdict %+v", v)
	}
	if c := v.Commands; c[0].Tests != nil || *c[1].Tests != 2 || *c[2].Tests != 1 {
		t.Errorf("commands %+v", c)
	}
}

func TestNoTestRan(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line, why string
	}{
		"nothing":     {goPrints(0), "no test ran"},
		"no files":    {goPrints(0, ev("output", "p", "", "?   \tp\t[no test files]\n"), ev("skip", "p", "", "")), "no test ran"},
		"one skipped": {goPrints(0, ev("skip", "p", "TestA", ""), ev("pass", "p", "", "")), "no test ran; one was skipped"},
		"skipped":     {goPrints(0, ev("skip", "p", "TestA", ""), ev("skip", "p", "TestB", "")), "no test ran; 2 were skipped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			req := f.request(sandbox.None, tc.line, "true")
			v := f.verify(t, req)
			if v.Passed || !strings.HasPrefix(v.Commands[0].Why, tc.why) || v.Tests == nil || *v.Tests != 0 || v.Commands[1].Why != run.NotRun {
				t.Errorf("verdict %+v", v)
			}
			req.AllowNoTests = true
			if v := f.verify(t, req); !v.Passed || *v.Tests != 0 {
				t.Errorf("allowed: verdict %+v", v)
			}
		})
	}
	t.Run("failed for another reason", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, nil)
		if v := f.verify(t, f.request(sandbox.None, goPrints(2))); v.Commands[0].Why != "exit code 2" {
			t.Errorf("verdict %+v", v)
		}
	})
}

// TestRealGo runs the real go with an empty cache: tests are counted, a failure is readable, and
// go vet in the same line still fails where it finds something (with -json it would not).
func TestRealGo(t *testing.T) {
	t.Parallel()
	level := sandbox.Full
	if facts().Check(level) != nil {
		level = sandbox.None
		t.Logf("at level none: %v", facts().Check(sandbox.Full))
	}
	f := newFixture(t, map[string]string{
		"go.mod":      "module example.org/m\n\ngo 1.21\n",
		"a/a.go":      "package a\n\nfunc Sum(x, y int) int { return x + y }\n",
		"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tt.Run(\"small\", func(t *testing.T) {\n\t\tif Sum(1, 2) != 3 {\n\t\t\tt.Fatal()\n\t\t}\n\t})\n}\n\nfunc TestLater(t *testing.T) { t.Skip() }\n",
		"b/b_test.go": "package b\n\nimport \"testing\"\n\nfunc TestGood(t *testing.T) { t.Log(\"chatter\") }\n\nfunc TestBad(t *testing.T) { t.Error(\"got 3, want 4\") }\n",
		"c/c.go":      "package c\n\nfunc C() { return; println() }\n",
	})
	v := f.verify(t, f.request(level, "go test ./a", "! go vet ./c && go test ./a ./b"))
	if v.Passed || len(v.Commands) != 2 || v.Commands[0].Why != "" || v.Commands[0].Tests == nil || *v.Commands[0].Tests != 2 {
		t.Fatalf("verdict %+v", v)
	}
	c := v.Commands[1]
	if c.Why != "exit code 1" || c.Tests == nil || *c.Tests != 4 || !strings.Contains(c.Output, "b_test.go:7: got 3, want 4\n") ||
		strings.Contains(c.Output, "chatter") || strings.Contains(c.Output, `{"`) || !strings.Contains(c.Output, "unreachable code") || !strings.Contains(c.Output, "FAIL\texample.org/m/b") {
		t.Errorf("command %+v", c)
	}
}

// TestCheckCannotChangeCommit: a check that rewrites its tree, its history, its home and its
// temporary directory changes nothing of what was verified, nor of what the next check sees.
func TestCheckCannotChangeCommit(t *testing.T) {
	t.Parallel()
	atLevels(t, func(t *testing.T, level sandbox.Level) {
		f := newFixture(t, map[string]string{"a.txt": "a\n", "sub/b.txt": "b\n"})
		before := runGit(t, f.base, "--git-dir", f.repo.Dir(), "for-each-ref")
		v := f.verify(t, f.request(level, `set -e
echo changed > a.txt; rm -r sub; git add -A; git commit -q --amend -m other
git update-ref refs/interlock/test/head HEAD; git tag x; git branch main; git reflog expire --expire=now --all; git gc -q --prune=now
touch "$HOME/left" "$TMPDIR/left"; test ! -e sub`,
			`test -e sub/b.txt && grep -qx a a.txt && test ! -e "$HOME/left" && test ! -e "$TMPDIR/left"`))
		if !v.Passed || v.Head != f.head {
			t.Fatalf("verdict %+v", v)
		}
		if after := runGit(t, f.base, "--git-dir", f.repo.Dir(), "for-each-ref"); after != before {
			t.Errorf("refs were\n%s\nand are\n%s", before, after)
		}
		runGit(t, f.base, "--git-dir", f.repo.Dir(), "fsck", "--full", "--strict")
		if got := runGit(t, f.base, "--git-dir", f.repo.Dir(), "show", f.head.Hash+":a.txt"); got != "a" {
			t.Errorf("a.txt is %q", got)
		}
	})
}

// TestConfinedCheckWritesNothingOutside: neither the borrowed objects nor anything else of the
// host's, by the path inside or by the host's own.
func TestConfinedCheckWritesNothingOutside(t *testing.T) {
	t.Parallel()
	need(t, sandbox.Full)
	f := newFixture(t, nil)
	victim := filepath.Join(f.base, "victim")
	if err := os.WriteFile(victim, []byte("whole"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`touch "$(cat .git/objects/info/alternates)/planted"`,
		`rm -rf "$(cat .git/objects/info/alternates)"/*`,
		"chmod 700 " + sandbox.ObjectsInside,
		"touch " + f.repo.Objects() + "/planted",
		"echo broken > " + victim,
		"cat " + victim,
		"touch /usr/planted", "touch /planted", "touch /interlock/planted", "touch /etc/planted",
	} {
		v := f.verify(t, f.request(sandbox.Full, line))
		if v.Passed || v.Commands[0].Exit == 0 {
			t.Errorf("%s: verdict %+v", line, v)
		}
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "whole" {
		t.Errorf("the victim holds %q, %v", b, err)
	}
	if _, err := os.Lstat(f.repo.Objects() + "/planted"); err == nil {
		t.Error("an object was planted")
	}
	runGit(t, f.base, "--git-dir", f.repo.Dir(), "fsck", "--full", "--strict")
}

func TestNetworkNone(t *testing.T) {
	t.Parallel()
	need(t, sandbox.Full)
	f := newFixture(t, nil)
	req := f.request(sandbox.Full, `test "$(tail -n +3 /proc/net/dev | grep -vc ' lo:')" = 0`)
	req.Network = "none"
	if v := f.verify(t, req); !v.Passed {
		t.Errorf("verdict %+v", v)
	}
}

func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	f := newFixture(t, map[string]string{"a": "a"})
	var unfit *sandbox.UnfitError
	for name, tc := range map[string]struct {
		spoil func(*check.Request)
		want  error
	}{
		"no checks":    {func(r *check.Request) { r.Commands = nil }, check.ErrNoChecks},
		"blank check":  {func(r *check.Request) { r.Commands = []string{"true", " \t"} }, check.ErrNoChecks},
		"NUL":          {func(r *check.Request) { r.Commands = []string{"true\x00"} }, nil},
		"no commit":    {func(r *check.Request) { r.Head.Hash = strings.Repeat("a", 40) }, git.ErrNoCommit},
		"a ref":        {func(r *check.Request) { r.Head.Hash = "refs/interlock/test/head" }, nil},
		"another tree": {func(r *check.Request) { r.Head.Tree = strings.Repeat("a", 40) }, nil},
		"no tree":      {func(r *check.Request) { r.Head.Tree = "" }, nil},
		"no room":      {func(r *check.Request) { r.Room = "" }, nil},
		"root as room": {func(r *check.Request) { r.Room = "/" }, nil},
		"no log":       {func(r *check.Request) { r.Log = "log" }, nil},
		"log nowhere":  {func(r *check.Request) { r.Log = filepath.Join(f.base, "no", "log") }, os.ErrNotExist},
		"level":        {func(r *check.Request) { r.Level = "half" }, nil},
		"network":      {func(r *check.Request) { r.Network = "none" }, nil}, // cannot be had at level none
	} {
		req := f.request(sandbox.None, "echo ran")
		tc.spoil(&req)
		v, err := check.Run(t.Context(), req)
		if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%s: error %v, verdict %+v", name, err, v)
		}
		if (name == "level" || name == "network") && !errors.As(err, &unfit) {
			t.Errorf("%s: error %v does not say that the machine is not fit", name, err)
		}
		f.noRoom(t)
	}
	if b, err := os.ReadFile(filepath.Join(f.base, "log")); err == nil && strings.Contains(string(b), "ran") {
		t.Errorf("log %q", b)
	}
}

func TestStopped(t *testing.T) {
	t.Parallel()
	atLevels(t, func(t *testing.T, level sandbox.Level) {
		f := newFixture(t, nil)
		because := errors.New("the lease was lost")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		req := f.request(level, "echo begun; sleep 600", "true")
		var began, ended int
		req.OnSession = func(sandbox.Identity) error {
			began++
			go func() {
				for range 600 {
					if b, _ := os.ReadFile(req.Log); strings.Contains(string(b), "\nbegun\n") {
						break
					}
					time.Sleep(50 * time.Millisecond)
				}
				cancel(because)
			}()
			return nil
		}
		req.OnEnd = func(sandbox.Identity) error { ended++; return nil }
		v, err := check.Run(ctx, req)
		if !errors.Is(err, because) || v.Passed || v.Commands != nil {
			t.Errorf("error %v, verdict %+v", err, v)
		}
		if began != 1 || ended != 1 || !strings.Contains(f.log(t), "begun") {
			t.Errorf("began %d, ended %d, log %q", began, ended, f.log(t))
		}
		f.noRoom(t)
	})
}

// TestUnrecordedSessionDoesNotStart: what could not be saved must not run.
func TestUnrecordedSessionDoesNotStart(t *testing.T) {
	t.Parallel()
	atLevels(t, func(t *testing.T, level sandbox.Level) {
		f := newFixture(t, nil)
		full := errors.New("disk full")
		req := f.request(level, "echo it ran")
		req.OnSession = func(id sandbox.Identity) error {
			if id.PID == 0 || id.Boot == "" {
				t.Errorf("identity %+v", id)
			}
			return full
		}
		if v, err := check.Run(t.Context(), req); !errors.Is(err, full) {
			t.Errorf("error %v, verdict %+v", err, v)
		}
		if strings.Count(f.log(t), "it ran") != 1 { // once as the line itself
			t.Errorf("log %q", f.log(t))
		}
		f.noRoom(t)
	})
}

func TestUnrecordedEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	full := errors.New("disk full")
	req := f.request(sandbox.None, "true")
	req.OnEnd = func(sandbox.Identity) error { return full }
	if v, err := check.Run(t.Context(), req); !errors.Is(err, full) {
		t.Errorf("error %v, verdict %+v", err, v)
	}
	f.noRoom(t)
}

// TestOutputIsEscaped: what a check prints cannot speak to a terminal, in the verdict or in
// progress.
func TestOutputIsEscaped(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	req := f.request(sandbox.None, "printf '\\033[2Jx\\007\\n'; exit 1 # \x1b[2J\n")
	var said []string
	req.Progress = func(line string) { said = append(said, line) }
	v := f.verify(t, req)
	all := v.Why + v.Commands[0].Output + strings.Join(said, "")
	if strings.ContainsAny(all, "\x1b\x07\n") || !strings.Contains(v.Commands[0].Output, `\x1b[2Jx\x07`) {
		t.Errorf("text %q", all)
	}
}
