package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"interlock/internal/agent/command"
	"interlock/internal/covered"
	"interlock/internal/sandbox"
	"interlock/internal/toolchain"
)

func TestMain(m *testing.M) {
	if code, handled := sandbox.Reenter(os.Args); handled {
		os.Exit(code)
	}
	covered.Children()
	os.Exit(m.Run())
}

// TestRunsInSandbox starts what Prepare says, for real, at each level this machine can give.
func TestRunsInSandbox(t *testing.T) {
	t.Parallel()
	facts := sandbox.Inspect(t.Context())
	for _, level := range []sandbox.Level{sandbox.None, sandbox.Full} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			if err := facts.Check(level); err != nil {
				if os.Getenv("INTERLOCK_CI") != "" {
					t.Fatalf("this may not be skipped in CI: %v", err)
				}
				t.Skipf("not tried: %v", err)
			}
			dir := place(t, "my agent's.sh")
			text := "#!/bin/sh\necho \"agent $1\" > made\n(echo x >> \"$0\") 2>/dev/null && echo changed itself\nls \"${0%/*}\"\nexit 7\n"
			if err := os.WriteFile(filepath.Join(dir, "my agent's.sh"), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "private"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			r := command.New(`"./my agent's.sh" "it's me" && echo not reached`)
			r.Path = os.Getenv("PATH")
			l, err := r.Prepare(t.Context(), dir, level)
			if err != nil {
				t.Fatal(err)
			}
			room, out, result := start(t, facts, level, l.Argv, l.Mounts)
			if result.Exit != 7 || strings.Contains(out, "not reached") {
				t.Errorf("result %+v, output %q", result, out)
			}
			if b, err := os.ReadFile(filepath.Join(room.Tree(), "made")); err != nil || string(b) != "agent it's me\n" {
				t.Errorf("made: %q, %v", b, err)
			}
			if level != sandbox.Full {
				return
			}
			if b, err := os.ReadFile(filepath.Join(dir, "my agent's.sh")); err != nil || string(b) != text {
				t.Errorf("the agent changed itself: %q, %v", b, err)
			}
			if out != "my agent's.sh\n" { // and nothing of what lies beside it
				t.Errorf("output %q", out)
			}
		})
	}
}

// start runs a command in a room of its own and returns what it printed.
func start(t *testing.T, facts sandbox.Facts, level sandbox.Level, argv []string, mounts []sandbox.Mount) (sandbox.Room, string, sandbox.Result) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	room, err := sandbox.NewRoom(filepath.Join(base, "room"))
	if err != nil {
		t.Fatal(err)
	}
	tools, path := toolchain.Find(t.Context(), os.Environ())
	log := filepath.Join(base, "log")
	s, err := sandbox.Prepare(t.Context(), facts, sandbox.Spec{
		Session: "command-test",
		Policy: sandbox.Policy{
			Level: level, Network: "host", Tools: tools, Home: room.Home(), Temp: room.Temp(), Dir: room.Tree(), Argv: argv,
			Mounts: append([]sandbox.Mount{{Source: room.Tree(), Target: sandbox.WorkspaceInside, Write: true}}, mounts...),
			Env:    toolchain.Env(os.Environ(), level, room, path),
		},
		Limits: sandbox.Limits{Total: time.Minute},
		Log:    log,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	result, err := s.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return room, string(out), result
}
