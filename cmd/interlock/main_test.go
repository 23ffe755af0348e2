package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"interlock/internal/cli"
	"interlock/internal/covered"
)

// serve makes this test binary be interlock.
const serve = "INTERLOCK_TEST_SERVE"

func TestMain(m *testing.M) {
	if code, handled := cli.Reenter(os.Args[1:]); handled {
		os.Exit(code)
	}
	if os.Getenv(serve) != "" {
		os.Exit(cli.Process(os.Args[1:]))
	}
	covered.Children()
	os.Exit(m.Run())
}

// site is a repository with one issue, and a state directory.
type site struct {
	t                *testing.T
	repo, state, pid string // pid: the file in which the agent leaves its process id
}

func newSite(t *testing.T) site {
	t.Helper()
	dir := t.TempDir()
	s := site{t: t, repo: filepath.Join(dir, "repo"), state: filepath.Join(dir, "state"), pid: filepath.Join(dir, "pid")}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main", s.repo},
		{"-C", s.repo, "-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "-q", "--allow-empty", "-m", "first"},
	} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	if code, _, errs := s.run("issue", "new", "--repo", s.repo, "--title", "T"); code != 0 {
		t.Fatalf("issue new: %d\n%s", code, errs)
	}
	return s
}

func (s site) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"--state-dir", s.state}, args...)...)
	cmd.Env = append(os.Environ(), serve+"=1")
	cmd.WaitDelay = time.Minute
	return cmd
}

func (s site) run(args ...string) (code int, out, errs string) {
	s.t.Helper()
	cmd := s.command(args...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// work is the command line of the run. Its agent commits nothing and sleeps in its first attempt;
// what signals do is the same at every level, so it needs no bubblewrap.
func (s site) work() []string {
	agent := "echo work > answer; echo $$ > " + s.pid + "; if test $INTERLOCK_ATTEMPT = 1; then sleep 600; fi"
	return []string{"run", "--repo", s.repo, "--issue", "1", "--command", agent, "--checks", "test -s answer", "--allow-no-tests", "--sandbox", "none"}
}

// begin starts the run and returns when its agent runs, with the agent's process id.
func (s site) begin() (*exec.Cmd, *bytes.Buffer, int) {
	s.t.Helper()
	cmd := s.command(s.work()...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = cmd.Process.Kill() })
	for range 600 {
		data, err := os.ReadFile(s.pid)
		if pid, perr := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && perr == nil {
			return cmd, &errs, pid
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.t.Fatalf("the agent did not start\n%s", &errs)
	return nil, nil, 0
}

func (s site) gone(pid int) {
	s.t.Helper()
	for range 200 {
		if err := syscall.Kill(pid, 0); err == syscall.ESRCH {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.t.Errorf("process %d of the session is still there", pid)
}

func send(t *testing.T, cmd *exec.Cmd, sig syscall.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// TestStoppedOnce: the first signal stops cleanly. The session is gone, its work is kept, its
// attempt is not counted, and the same command goes on.
func TestStoppedOnce(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			cmd, errs, pid := s.begin()
			send(t, cmd, sig)
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 130 {
				t.Errorf("exit code %d, want 130", code)
			}
			for _, want := range []string{"stopping, everything is kept", "\n  safe: ", "\n  next: "} {
				if !strings.Contains(errs.String(), want) {
					t.Errorf("%q is not said:\n%s", want, errs)
				}
			}
			s.gone(pid)
			code, out, told := s.run(append(s.work(), "--json")...)
			if code != 0 {
				t.Fatalf("going on: exit code %d\n%s%s", code, out, told)
			}
			s.delivered(out)
		})
	}
}

// delivered demands one change of one run that needed a second session and spent one attempt.
func (s site) delivered(out string) {
	s.t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var last struct {
		Result *struct {
			State    string
			Change   int64
			Head     string
			Attempts int
			Checks   struct{ Passed bool }
		}
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Result == nil {
		s.t.Fatalf("the last line is no result: %v\n%s", err, out)
	}
	if r := last.Result; r.State != "in review" || r.Change != 1 || len(r.Head) != 40 || r.Attempts != 2 || !r.Checks.Passed {
		s.t.Errorf("result %+v", *r)
	}
	_, out, _ = s.run("runs", "--json")
	var runs []struct{ Spent int }
	if err := json.Unmarshal([]byte(out), &runs); err != nil || len(runs) != 1 || runs[0].Spent != 1 {
		s.t.Errorf("runs: %v, %+v\n%s", err, runs, out)
	}
}

// TestStoppedTwice: the second signal ends the process at once, and the session with it.
func TestStoppedTwice(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cmd, errs, pid := s.begin()
	send(t, cmd, syscall.SIGINT)
	for range 20 { // two signals that are pending together are one
		time.Sleep(60 * time.Millisecond)
		_ = cmd.Process.Signal(syscall.SIGINT)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if strings.Contains(errs.String(), "  next: ") {
		t.Errorf("it did not stop at once, but cleanly:\n%s", errs)
	}
	s.gone(pid)
	if code, out, told := s.run(append(s.work(), "--json")...); code != 0 {
		t.Errorf("going on: exit code %d\n%s%s", code, out, told)
	}
}

// TestHiddenCommandsAreNotForPeople: what Interlock starts itself for is in no help.
func TestHiddenCommandsAreNotForPeople(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	code, out, _ := s.run("--help")
	if code != 0 || strings.Contains(out, "__") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if code, _, errs := s.run("__nosuch"); code != 2 || !strings.Contains(errs, "unknown command") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// TestBinary builds the program itself and runs it: it answers, and its code is the exit code.
func TestBinary(t *testing.T) {
	t.Parallel()
	args := []string{"build", "-o", filepath.Join(t.TempDir(), "interlock")}
	if testing.CoverMode() != "" {
		args = append(args, "-cover", "-coverpkg=interlock/cmd/interlock")
	}
	build := exec.Command("go", append(args, ".")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for word, code := range map[string]int{"version": 0, "no-such-command": 2} {
		cmd := exec.Command(args[2], word)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code || !strings.Contains(string(out), "interlock") {
			t.Errorf("interlock %s: %v, want exit %d\n%s", word, err, code, out)
		}
	}
}
