package check_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"interlock/internal/check"
	"interlock/internal/covered"
	"interlock/internal/git"
	"interlock/internal/run"
	"interlock/internal/sandbox"
)

func TestMain(m *testing.M) {
	if code, handled := sandbox.Reenter(os.Args); handled {
		os.Exit(code)
	}
	covered.Children()
	os.Exit(m.Run())
}

var facts = sync.OnceValue(func() sandbox.Facts { return sandbox.Inspect(context.Background()) })

// atLevels runs a test at each level this machine can give, and says which it cannot.
func atLevels(t *testing.T, f func(t *testing.T, level sandbox.Level)) {
	for _, level := range []sandbox.Level{sandbox.None, sandbox.Full} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			need(t, level)
			f(t, level)
		})
	}
}

func need(t *testing.T, level sandbox.Level) {
	t.Helper()
	if err := facts().Check(level); err != nil {
		if os.Getenv("INTERLOCK_CI") != "" {
			t.Fatalf("this may not be skipped in CI: %v", err)
		}
		t.Skipf("not tried: %v", err)
	}
}

// fixture is an engine's repository that holds one commit.
type fixture struct {
	repo *git.Repo
	head run.Commit
	base string // a directory of the test's own
}

// newFixture puts files into a commit. A name that ends in "*" is executable.
func newFixture(t *testing.T, files map[string]string) fixture {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	src := filepath.Join(base, "src")
	runGit(t, base, "init", "-q", "-b", "main", src)
	for name, text := range files {
		name, executable := strings.CutSuffix(name, "*")
		path := filepath.Join(src, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if executable {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	runGit(t, src, "add", "-A")
	runGit(t, src, "commit", "-q", "--allow-empty", "-m", "first")
	// What is only in somebody's work tree must never be in a checkout.
	if err := os.WriteFile(filepath.Join(src, "untracked"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	g, err := git.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	repo, err := g.Engine(t.Context(), filepath.Join(base, "engine"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := repo.FetchBranch(t.Context(), src, "main", "refs/interlock/test/head")
	if err != nil {
		t.Fatal(err)
	}
	return fixture{repo, run.Commit{Hash: c.Hash, Tree: c.Tree}, base}
}

func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@localhost", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@localhost"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// request is a request for these commands; the environment is the test's own.
func (f fixture) request(level sandbox.Level, commands ...string) check.Request {
	return check.Request{
		Repo: f.repo, Facts: facts(), Level: level, Head: f.head, Base: strings.Repeat("b", 40), Commands: commands,
		Room: filepath.Join(f.base, "room"), Log: filepath.Join(f.base, "log"), Env: os.Environ(),
	}
}

// verify runs a request that must give a verdict and leave no room behind.
func (f fixture) verify(t *testing.T, req check.Request) run.Verdict {
	t.Helper()
	v, err := check.Run(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	f.noRoom(t)
	return v
}

func (f fixture) noRoom(t *testing.T) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(f.base, "room")); !os.IsNotExist(err) {
		t.Errorf("the room is still there (%v)", err)
	}
}

func (f fixture) log(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(f.base, "log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
