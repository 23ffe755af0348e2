package snapshot_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"interlock/internal/git"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Person", "GIT_AUTHOR_EMAIL=person@example.org",
		"GIT_COMMITTER_NAME=Person", "GIT_COMMITTER_EMAIL=person@example.org"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v in %s: %v: %s", args, dir, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
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

func fetched(t *testing.T, g *git.Git, dir string) (*git.Repo, git.Commit) {
	t.Helper()
	r, err := g.Engine(t.Context(), filepath.Join(t.TempDir(), "engine.git"))
	must(t, err)
	c, err := r.FetchBranch(t.Context(), dir, "main", "refs/interlock/base/1")
	must(t, err)
	return r, c
}

func workspace(t *testing.T, r *git.Repo, commit string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	if err := r.Workspace(t.Context(), git.WorkspaceSpec{Dir: dir, Commit: commit, Branch: "interlock/1"}); err != nil {
		t.Fatal(err)
	}
	return dir
}
