package cli_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"interlock/internal/cli"
	"interlock/internal/covered"
	"interlock/internal/sandbox"
)

// TestMain makes this test binary serve as interlock itself: for the scripts, and for what the
// engine starts its own binary for.
func TestMain(m *testing.M) {
	if code, handled := cli.Reenter(os.Args[1:]); handled {
		os.Exit(code)
	}
	const program = "interlock"
	if filepath.Base(os.Args[0]) != program {
		covered.Children()
	}
	testscript.Main(m, map[string]func(){program: func() { os.Exit(cli.Process(os.Args[1:])) }})
}

// TestScripts runs whole commands, each in a process of its own.
func TestScripts(t *testing.T) {
	t.Parallel()
	level := sandboxLevel(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", home)
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			e.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			e.Setenv("LEVEL", level)
			for _, name := range []string{"GOCACHE", "GOMODCACHE"} { // cold caches would make the tests slow
				out, err := exec.Command("go", "env", name).Output()
				if err != nil {
					return err
				}
				e.Setenv(name, string(out[:len(out)-1]))
			}
			return os.Mkdir(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"repo":  makeRepository,
		},
	})
}

// exits CODE COMMAND ARGS... demands an exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// repo DIR puts a directory under git, with all that is in it committed on main.
func makeRepository(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: repo DIR")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	who := []string{"-c", "user.name=Test", "-c", "user.email=test@localhost"}
	ts.Check(ts.Exec("git", "init", "-q", "-b", "main", dir))
	ts.Check(ts.Exec("git", "-C", dir, "add", "-A"))
	ts.Check(ts.Exec("git", append(who, "-C", dir, "commit", "-q", "--allow-empty", "-m", "first")...))
}

// sandboxLevel is full where it can be had; elsewhere the commands are tested without it.
func sandboxLevel(t *testing.T) string {
	t.Helper()
	if err := sandbox.Inspect(t.Context()).Check(sandbox.Full); err != nil {
		if os.Getenv("INTERLOCK_CI") != "" {
			t.Fatalf("level full is needed here: %v", err)
		}
		t.Logf("at level none, because %v", err)
		return string(sandbox.None)
	}
	return string(sandbox.Full)
}
