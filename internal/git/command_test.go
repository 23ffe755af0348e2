package git_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"interlock/internal/git"
)

// shell makes a command of git that runs a line of shell below it, as a hook would.
func shell(line string) []string { return []string{"-c", "alias.probe=!" + line, "probe"} }

func TestFindRefusesOldVersions(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if _, err := git.Find(t.Context()); !errors.Is(err, git.ErrUnfit) {
		t.Errorf("no git: %v", err)
	}
	for version, floor := range map[string]string{
		"2.39.4": "", "2.39.5": "", "2.40.2": "", "2.41.1": "", "2.42.2": "", "2.43.4": "", "2.44.1": "", "2.45.1": "", "2.45.2.windows.1": "",
		"2.46.0": "", "2.51.0.rc1": "", "3.0.0": "", "2.46": "", "2.47.0 (Apple Git-1)": "",
		"2.39.3": "2.39.4", "2.40.1": "2.40.2", "2.41.0": "2.41.1", "2.42.1": "2.42.2", "2.43.3": "2.43.4", "2.44.0": "2.44.1",
		"2.45.0": "2.45.1", "2.45": "2.45.1", "2.38.5": "2.39.4", "2.4.9": "2.39.4", "1.9.1": "2.39.4", "1.46.0": "2.39.4", "none": "version",
	} {
		script(t, filepath.Join(dir, "git"), "echo git version '"+version+"'")
		g, err := git.Find(t.Context())
		switch {
		case floor == "" && (err != nil || !strings.HasPrefix(version, g.Version())):
			t.Errorf("%s: %v", version, err)
		case floor != "" && (!errors.Is(err, git.ErrUnfit) || !strings.Contains(err.Error(), floor)):
			t.Errorf("%s: %v", version, err)
		}
	}
}

func TestTheEnvironmentIsClosed(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, ".gitconfig"), "[alias]\n\tx = !echo x\n[core]\n\tfsmonitor = touch x\n")
	for name, value := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": home, "GIT_DIR": "/elsewhere", "SSH_AUTH_SOCK": "/agent",
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "evil", "GIT_TRACE": "1",
		"GITHUB_TOKEN": "secret", "GIT_SSH_COMMAND": "evil", "GIT_EXTERNAL_DIFF": "evil", "GIT_CONFIG_SYSTEM": home} {
		t.Setenv(name, value)
	}
	g := find(t)
	out, err := g.Run(t.Context(), git.Command{Args: shell("env"), Env: []string{"EXTRA=1"}})
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Split(string(out.Stdout), "\n")
	for _, line := range env {
		name, value, _ := strings.Cut(line, "=")
		for _, bad := range []string{"secret", "evil", "/elsewhere", "/agent", home} {
			if strings.Contains(value, bad) {
				t.Errorf("it got through: %s", line)
			}
		}
		if name == "GIT_TRACE" || strings.HasPrefix(name, "XDG") || strings.HasPrefix(name, "GIT_CONFIG_KEY") {
			t.Errorf("it got through: %s", line)
		}
	}
	for _, line := range []string{"HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=/bin/false", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "LC_ALL=C",
		"GIT_PROTOCOL_FROM_USER=0", "EXTRA=1"} {
		if !slices.Contains(env, line) {
			t.Errorf("%s is missing", line)
		}
	}
	if _, err := g.Run(t.Context(), git.Command{Args: []string{"x"}}); err == nil {
		t.Error("an alias of the user's configuration was known")
	}
	if _, err := g.Run(t.Context(), git.Command{Args: []string{"ls-remote", "ext::sh -c touch% /nonexistent/x"}}); err == nil || !strings.Contains(err.Error(), "not allowed") {
		t.Errorf("a transport that runs commands: %v", err)
	}
}

// gone waits until the process whose number is in file has ended.
func gone(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Since(began) > 10*time.Second {
			t.Fatalf("process %d still lives", pid)
		}
	}
}

func TestTheWholeGroupEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	g := find(t)
	for _, how := range []string{"deadline", "context", "too much output"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			pid := filepath.Join(t.TempDir(), "pid")
			c := git.Command{Args: shell("sleep 300 & echo $! >" + pid + "; "), Timeout: time.Minute}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			want := context.DeadlineExceeded
			switch how {
			case "deadline":
				c.Timeout = time.Second
				c.Args[1] += "wait"
			case "context":
				time.AfterFunc(time.Second, cancel)
				want = context.Canceled
				c.Args[1] += "wait"
			default:
				want = git.ErrTooBig
				c.MaxOutput = 1000
				c.Args[1] += "while :; do echo more; done"
			}
			began := time.Now()
			_, err := g.Run(ctx, c)
			var failed *git.Error
			if !errors.As(err, &failed) || !errors.Is(err, want) || failed.Timeout == (want == git.ErrTooBig) || failed.Truncated == failed.Timeout {
				t.Errorf("%v, %+v", err, failed)
			}
			if time.Since(began) > 20*time.Second {
				t.Errorf("it took %v", time.Since(began))
			}
			gone(t, pid)
		})
	}
}

func TestAnInheritedPipeHangsNobody(t *testing.T) {
	t.Parallel()
	g := find(t)
	pid := filepath.Join(t.TempDir(), "pid")
	began := time.Now()
	out, err := g.Run(t.Context(), git.Command{Args: shell("setsid sh -c 'echo $$ >" + pid + "; exec sleep 300' & while ! test -s " + pid + "; do :; done; echo done")})
	if err != nil || string(out.Stdout) != "done\n" || time.Since(began) > 20*time.Second {
		t.Errorf("%q, %v after %v", out.Stdout, err, time.Since(began))
	}
	text, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && n > 1 {
		_ = syscall.Kill(n, syscall.SIGKILL)
	}
}

func TestNoDescriptorIsInherited(t *testing.T) {
	t.Parallel()
	g := find(t)
	r := engine(t, g)
	unlock, err := r.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	out, err := g.Run(t.Context(), git.Command{Args: shell("for f in /proc/$$/fd/*; do readlink $f; done; :")})
	if err != nil || strings.Contains(string(out.Stdout), r.Dir()) || !strings.Contains(string(out.Stdout), "pipe:") {
		t.Errorf("%s, %v", out.Stdout, err)
	}
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	g := find(t)
	out, err := g.Run(t.Context(), git.Command{Args: shell("printf 12345"), MaxOutput: 5})
	if err != nil || string(out.Stdout) != "12345" {
		t.Errorf("at the bound: %q, %v", out.Stdout, err)
	}
	out, err = g.Run(t.Context(), git.Command{Args: shell("printf 123456"), MaxOutput: 5})
	if !errors.Is(err, git.ErrTooBig) || len(out.Stdout) > 5 {
		t.Errorf("over the bound: %q, %v", out.Stdout, err)
	}
	_, err = g.Run(t.Context(), git.Command{Args: shell("yes 0123456789012345678901234567890123456789 >&2")})
	var failed *git.Error
	if !errors.As(err, &failed) || !failed.Truncated || len(failed.Stderr) > 5000 {
		t.Errorf("standard error: %d bytes, %v", len(failed.Stderr), failed.Truncated)
	}
}

func TestErrorsAreEscapedAndTellTheCode(t *testing.T) {
	t.Parallel()
	g := find(t)
	_, err := g.Run(t.Context(), git.Command{Args: shell(`printf 'a\033]0;x\007b\r\nc \377\342\200\256\n' >&2; exit 7`)})
	var failed *git.Error
	if !errors.As(err, &failed) || failed.Code != 7 || failed.Op != "probe" || failed.Timeout || failed.Truncated {
		t.Fatalf("%+v", failed)
	}
	if failed.Stderr != "a\\x1b]0;x\\x07b\nc \\xff\\u{202e}" || !strings.Contains(err.Error(), "exit code 7") {
		t.Errorf("%q", failed.Stderr)
	}
	out, err := g.Run(t.Context(), git.Command{Args: shell("cat"), Stdin: []byte("in\x00put")})
	if err != nil || string(out.Stdout) != "in\x00put" {
		t.Errorf("%q, %v", out.Stdout, err)
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a\x1b\r\n\xff\u202e")
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range git.Escape(text) {
			if r != '\n' && r != '\t' && !strconv.IsPrint(r) {
				t.Fatalf("%q let %U through", text, r)
			}
		}
	})
}
