package command_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"interlock/internal/agent"
	"interlock/internal/agent/command"
	"interlock/internal/sandbox"
)

var _ agent.Runtime = (*command.Runtime)(nil)

const script = "#!/bin/sh\necho agent \"$@\"\n"

// place makes a directory with an agent at each of these relative paths and returns it, free of
// symbolic links itself.
func place(t *testing.T, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		path := filepath.Join(dir, n)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// TestFirstWordFile: lines that begin with a file of the operator's. FILE in want stands for the
// quoted path of that file.
func TestFirstWordFile(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ line, file, want string }{
		{`./agent.sh`, "agent.sh", `FILE`},
		{`./agent.sh --x 'a b' | tee log`, "agent.sh", `FILE --x 'a b' | tee log`},
		{"  \t./agent.sh; true", "agent.sh", "  \tFILE; true"},
		{`./agent.sh&&true`, "agent.sh", `FILE&&true`},
		{`./agent.sh<in >out`, "agent.sh", `FILE<in >out`},
		{"./agent.sh\nls", "agent.sh", "FILE\nls"},
		{`sub/agent.sh x`, "sub/agent.sh", `FILE x`},
		{`sub/../agent.sh`, "agent.sh", `FILE`},
		{`'./my agent.sh' x`, "my agent.sh", `FILE x`},
		{`"./my agent.sh" x`, "my agent.sh", `FILE x`},
		{`./my\ agent.sh x`, "my agent.sh", `FILE x`},
		{`./"my "agent.sh x`, "my agent.sh", `FILE x`},
		{`./it\'s.sh`, "it's.sh", `FILE`},
		{`"./it's.sh"`, "it's.sh", `FILE`},
		{`"./\$x.sh" y`, "$x.sh", `FILE y`},
		{`'./$x.sh' y`, "$x.sh", `FILE y`},
		{`./a=b.sh`, "a=b.sh", `FILE`},
		{`"./back\\slash.sh"`, `back\slash.sh`, `FILE`},
		{"./age\\\nnt.sh x", "agent.sh", `FILE x`},
		{`./agent.sh "$HOME" $(pwd)`, "agent.sh", `FILE "$HOME" $(pwd)`},
		{`./1 x`, "1", `FILE x`},
	} {
		t.Run(tc.line, func(t *testing.T) {
			t.Parallel()
			dir := place(t, tc.file, "sub/other")
			path := filepath.Join(dir, tc.file)
			inside := command.Inside + "/" + filepath.Base(tc.file)

			r := command.New(tc.line)
			got, err := r.Prepare(t.Context(), dir, sandbox.Full)
			if err != nil {
				t.Fatal(err)
			}
			want := agent.Launch{
				Argv:   []string{"/bin/sh", "-c", strings.Replace(tc.want, "FILE", quoted(inside), 1)},
				Mounts: []sandbox.Mount{{Source: path, Target: inside}},
				Digest: digest(script),
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("full: %s", d)
			}

			got, err = r.Prepare(t.Context(), dir, sandbox.None)
			if err != nil {
				t.Fatal(err)
			}
			want = agent.Launch{
				Argv:   []string{"/bin/sh", "-c", strings.Replace(tc.want, "FILE", quoted(path), 1)},
				Digest: digest(script),
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("none: %s", d)
			}
			if out, err := exec.Command("/bin/sh", "-n", "-c", got.Argv[2]).CombinedOutput(); err != nil {
				t.Errorf("the shell refuses %q: %s", got.Argv[2], out)
			}
		})
	}
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// TestLeftToShell: lines whose first word is not a file of the operator's, or only perhaps.
func TestLeftToShell(t *testing.T) {
	t.Parallel()
	dir := place(t, "agent.sh", "bin/tool")
	for _, line := range []string{
		"echo hi", "exec ./agent.sh", ". ./agent.sh", "A=1 ./agent.sh", "PATH=./x:$PATH tool", "(./agent.sh)", "{ ./agent.sh; }",
		"! ./agent.sh", "if ./agent.sh; then :; fi", "while :; do break; done", "f() { :; }; f", "./f () { :; }",
		"$HOME/agent.sh", "`echo ./agent.sh`", "./agent*.sh", "./agent?.sh", "./[a]gent.sh", "~/agent.sh", "~root/x", `~"/x"`,
		"\"$X/agent.sh\" a", "./a$X", "# ./agent.sh", "<in ./agent.sh", "2>log ./agent.sh", ">./log echo", "'./unbalanced",
		`"./unbalanced`, `./end\`, "tool x", "'tool' x", "'no such tool'", "/bin/sh ./agent.sh", "/usr/bin/env x", "[ -x ./agent.sh ]",
		"./agent{,2}.sh", "cd sub && ./agent.sh", "&& x", "cat <<E\n./agent.sh\nE",
	} {
		for _, level := range []sandbox.Level{sandbox.Full, sandbox.None} {
			r := command.New(line)
			r.Path = filepath.Join(dir, "bin") + ":/usr/bin:/bin"
			got, err := r.Prepare(t.Context(), dir, level)
			if err != nil {
				t.Errorf("%q at %s: %v", line, level, err)
				continue
			}
			if d := cmp.Diff(agent.Launch{Argv: []string{"/bin/sh", "-c", line}}, got); d != "" {
				t.Errorf("%q at %s: %s", line, level, d)
			}
		}
	}
}

func TestSymlinkedAgent(t *testing.T) {
	t.Parallel()
	dir := place(t, "real/agent-v2.sh")
	if err := os.Symlink("real/agent-v2.sh", filepath.Join(dir, "agent")); err != nil {
		t.Fatal(err)
	}
	got, err := command.New("./agent x").Prepare(t.Context(), dir, sandbox.Full)
	if err != nil {
		t.Fatal(err)
	}
	want := agent.Launch{
		Argv:   []string{"/bin/sh", "-c", "'" + command.Inside + "/agent' x"},
		Mounts: []sandbox.Mount{{Source: filepath.Join(dir, "real/agent-v2.sh"), Target: command.Inside + "/agent"}},
		Digest: digest(script),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestHomeAgent(t *testing.T) {
	t.Parallel()
	home := place(t, "bin/agent.sh")
	r := command.New("~/bin/agent.sh x")
	r.Home = home
	got, err := r.Prepare(t.Context(), "/", sandbox.None)
	if err != nil {
		t.Fatal(err)
	}
	if want := quoted(filepath.Join(home, "bin/agent.sh")) + " x"; got.Argv[2] != want {
		t.Errorf("line %q, want %q", got.Argv[2], want)
	}
}

func TestDigestFollowsContent(t *testing.T) {
	t.Parallel()
	dir := place(t, "agent.sh")
	r := command.New("./agent.sh")
	before, err := r.Prepare(t.Context(), dir, sandbox.Full)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "agent.sh"), []byte(script+"#"), 0o755); err != nil {
		t.Fatal(err)
	}
	after, err := r.Prepare(t.Context(), dir, sandbox.Full)
	if err != nil {
		t.Fatal(err)
	}
	if before.Digest == after.Digest || after.Digest != digest(script+"#") {
		t.Errorf("digests %s and %s", before.Digest, after.Digest)
	}
}

func TestMissingAgent(t *testing.T) {
	t.Parallel()
	dir := place(t, "ok.sh", "plain.sh", "sub/x")
	if err := os.Chmod(filepath.Join(dir, "plain.sh"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, l := range [][2]string{{"nowhere", "broken"}, {"loop", "loop"}} {
		if err := os.Symlink(l[0], filepath.Join(dir, l[1])); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]string{
		"":                   "empty",
		" \t\n":              "empty",
		"./agent.sh --x":     filepath.Join(dir, "agent.sh"),
		"/no/such/agent x":   "/no/such/agent",
		"./ok.sh/agent":      filepath.Join(dir, "ok.sh/agent"),
		"./plain.sh":         filepath.Join(dir, "plain.sh") + "\" cannot be executed",
		"./sub":              "a directory",
		"./fifo":             "a named pipe",
		"/dev/null":          "a device",
		"./broken":           filepath.Join(dir, "broken"),
		"./loop":             "cannot be reached",
		"no-such-agent -x":   `no program "no-such-agent" in PATH`,
		"ok.sh":              "type ./ok.sh",
		"plain.sh":           "type ./plain.sh",
		"./a\x00b":           "NUL",
		`'./no such' x`:      filepath.Join(dir, "no such"),
		"./agent.sh || true": filepath.Join(dir, "agent.sh"),
	} {
		for _, level := range []sandbox.Level{sandbox.Full, sandbox.None} {
			r := command.New(line)
			r.Path = filepath.Join(dir, "sub") + ":/usr/bin:/bin"
			got, err := r.Prepare(t.Context(), dir, level)
			if !errors.Is(err, agent.ErrMissing) {
				t.Errorf("%q at %s: error %v, launch %v", line, level, err, got)
			} else if !strings.Contains(err.Error(), want) {
				t.Errorf("%q at %s: error %q does not say %q", line, level, err, want)
			}
		}
	}
}

func TestPrepareStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := command.New("true").Prepare(ctx, "/", sandbox.None); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// FuzzPrepare: whatever the line, what is started differs from it in the first word only, and a
// real shell reads that word as the file that was meant.
func FuzzPrepare(f *testing.F) {
	for _, s := range []string{"./agent.sh x", `"./a\"b"`, `./a\ b`, "'./x'y z", "A=./x y", "~/x", `./\`, "./a\\\nb", "\"./a\\\nb\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		dir := t.TempDir()
		r := command.New(line)
		r.Home = dir
		l, err := r.Prepare(t.Context(), dir, sandbox.None)
		if err != nil {
			if !errors.Is(err, agent.ErrMissing) {
				t.Fatalf("%q: %v", line, err)
			}
			return
		}
		if len(l.Argv) != 3 || l.Argv[2] != line && !strings.Contains(l.Argv[2], "'/") {
			t.Fatalf("%q became %q", line, l.Argv)
		}
	})
}
