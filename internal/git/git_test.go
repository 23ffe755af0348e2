package git_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"interlock/internal/git"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rounds is how often a race is run: a few times, unless the environment says more (make races).
func rounds(t *testing.T, few int) int {
	t.Helper()
	text := os.Getenv("INTERLOCK_ROUNDS")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return max(few, n/10)
}

func find(t *testing.T) *git.Git {
	t.Helper()
	g, err := git.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// raw runs git as an ordinary person would, in dir, and fails the test when git does.
func raw(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := tryRaw(t, dir, args...)
	if err != nil {
		t.Fatalf("git %v in %s: %v: %s", args, dir, err, out)
	}
	return strings.TrimSuffix(out, "\n")
}

func tryRaw(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Person", "GIT_AUTHOR_EMAIL=person@example.org",
		"GIT_COMMITTER_NAME=Person", "GIT_COMMITTER_EMAIL=person@example.org"}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out) + stderr.String(), err
	}
	return string(out), nil
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func script(t *testing.T, path, body string) {
	t.Helper()
	write(t, path, "#!/bin/sh\n"+body+"\n")
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// project makes a repository with one commit on main and returns its path and that commit.
func project(t *testing.T) (dir, head string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "project")
	write(t, filepath.Join(dir, "a.txt"), "one\n")
	write(t, filepath.Join(dir, "sub/b.txt"), "two\n")
	raw(t, dir, "init", "-q", "-b", "main")
	return dir, commitAll(t, dir, "first")
}

func commitAll(t *testing.T, dir, message string) string {
	t.Helper()
	raw(t, dir, "add", "-A")
	raw(t, dir, "commit", "-q", "--allow-empty", "-m", message)
	return raw(t, dir, "rev-parse", "HEAD")
}

func bareRemote(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "remote.git")
	raw(t, "/", "init", "-q", "--bare", "-b", "main", dir)
	return dir
}

func engine(t *testing.T, g *git.Git) *git.Repo {
	t.Helper()
	r, err := g.Engine(t.Context(), filepath.Join(t.TempDir(), "engine.git"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newCommit(t *testing.T, p *git.Plumb, message string, parents ...string) string {
	t.Helper()
	hash, err := p.WriteCommit(t.Context(), git.CommitSpec{Message: message, Parents: parents})
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
		t.Errorf("got\n%s\nwant\n%s", a, b)
	}
}
