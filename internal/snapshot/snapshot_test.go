package snapshot_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"interlock/internal/git"
	"interlock/internal/snapshot"
)

// agentTree makes a workspace with a base commit that has files of every kind.
func agentTree(t *testing.T) (r *git.Repo, tree, base string) {
	t.Helper()
	g := find(t)
	dir, _ := project(t)
	write(t, filepath.Join(dir, ".gitignore"), "*.log\nbuild/\n")
	write(t, filepath.Join(dir, "dir/in.txt"), "in\n")
	write(t, filepath.Join(dir, "gone.txt"), "gone\n")
	write(t, filepath.Join(dir, "tool.sh"), "echo\n")
	write(t, filepath.Join(dir, ".gitattributes"), "*.bat text eol=crlf\n")
	write(t, filepath.Join(dir, "win.bat"), "rem\r\n")
	base = commitAll(t, dir, "base")
	r, _ = fetched(t, g, dir)
	return r, workspace(t, r, base), base
}

func take(t *testing.T, r *git.Repo, tree, parent string) (snapshot.Spec, string, bool) {
	t.Helper()
	spec := snapshot.Spec{GitDir: filepath.Join(t.TempDir(), "snapshot"), WorkTree: tree, Objects: r.Objects(),
		Parent: parent, Message: "uncommitted work"}
	hash, changed, err := snapshot.Take(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return spec, hash, changed
}

// brought imports a snapshot and returns what differs from parent, one line per path.
func brought(t *testing.T, r *git.Repo, spec snapshot.Spec, hash string) []string {
	t.Helper()
	c, err := r.Import(t.Context(), git.ImportSpec{Source: spec.GitDir, Rev: snapshot.Ref, Into: "refs/interlock/import/snapshot"})
	if err != nil || c.Hash != hash {
		t.Fatalf("%+v, %v; want %s", c, err, hash)
	}
	changes, err := r.Diff(t.Context(), spec.Parent, hash)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range changes {
		lines = append(lines, fmt.Sprintf("%c %s %s %q", c.Status, c.OldMode, c.NewMode, c.Path))
	}
	return lines
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
		t.Errorf("got\n%s\nwant\n%s", a, b)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSnapshotOfEveryKindOfChange(t *testing.T) {
	t.Parallel()
	r, tree, base := agentTree(t)
	write(t, filepath.Join(tree, "a.txt"), "changed\n")
	write(t, filepath.Join(tree, "new/deep/n.txt"), "new\n")
	write(t, filepath.Join(tree, "odd\nname"), "odd\n")
	write(t, filepath.Join(tree, "bytes\xff\xfe"), "bytes\n")
	write(t, filepath.Join(tree, "-option"), "x\n")
	write(t, filepath.Join(tree, "x.log"), "ignored\n")
	write(t, filepath.Join(tree, "build/out"), "ignored\n")
	must(t, os.Remove(filepath.Join(tree, "gone.txt")))
	must(t, os.Chmod(filepath.Join(tree, "tool.sh"), 0o700))
	must(t, os.Symlink("/etc/passwd", filepath.Join(tree, "link")))
	raw(t, tree, "add", "a.txt") // what the agent staged is not what counts
	write(t, filepath.Join(tree, "a.txt"), "changed again\n")
	spec, hash, changed := take(t, r, tree, base)
	if !changed || hash == base {
		t.Fatal("nothing was seen")
	}
	same(t, brought(t, r, spec, hash), []string{
		`A 000000 100644 "-option"`,
		`M 100644 100644 "a.txt"`,
		`A 000000 100644 "bytes\xff\xfe"`,
		`D 100644 000000 "gone.txt"`,
		`A 000000 120000 "link"`,
		`A 000000 100644 "new/deep/n.txt"`,
		`A 000000 100644 "odd\nname"`,
		`M 100644 100755 "tool.sh"`,
	})
	if blob, err := r.Blob(t.Context(), hash+":a.txt", 100); err != nil || string(blob) != "changed again\n" {
		t.Errorf("%q, %v", blob, err)
	}
	message, parents, err := r.Message(t.Context(), hash)
	if err != nil || message != "uncommitted work\n" || len(parents) != 1 || parents[0] != base {
		t.Errorf("%q, %v, %v", message, parents, err)
	}
	if raw(t, tree, "rev-parse", "HEAD") != base || !strings.Contains(raw(t, tree, "status", "--porcelain"), "MM a.txt") {
		t.Error("the workspace's own index or branch was moved")
	}
}

func TestSnapshotOfNothing(t *testing.T) {
	t.Parallel()
	r, tree, base := agentTree(t)
	write(t, filepath.Join(tree, "x.log"), "ignored\n")
	write(t, filepath.Join(tree, "a.txt"), "one\n") // the same, written anew
	if text, err := os.ReadFile(filepath.Join(tree, "win.bat")); err != nil || string(text) != "rem\r\n" {
		t.Errorf("the repository's own line ends: %q, %v", text, err)
	}
	spec, hash, changed := take(t, r, tree, base)
	if changed || hash != base {
		t.Fatalf("%s, %t", hash, changed)
	}
	same(t, brought(t, r, spec, base), nil)
	if _, _, err := snapshot.Take(t.Context(), spec); !errors.Is(err, git.ErrInvalid) {
		t.Errorf("a git directory that is used: %v", err)
	}
}

func TestSnapshotWhereKindsChange(t *testing.T) {
	t.Parallel()
	r, tree, base := agentTree(t)
	// A directory becomes a link to one with the same file, a file a directory, a directory a file.
	elsewhere := t.TempDir()
	write(t, filepath.Join(elsewhere, "in.txt"), "in\n")
	must(t, os.RemoveAll(filepath.Join(tree, "dir")))
	must(t, os.Symlink(elsewhere, filepath.Join(tree, "dir")))
	must(t, os.Remove(filepath.Join(tree, "gone.txt")))
	write(t, filepath.Join(tree, "gone.txt/inner"), "inner\n")
	must(t, os.RemoveAll(filepath.Join(tree, "sub")))
	write(t, filepath.Join(tree, "sub"), "file\n")
	must(t, os.Remove(filepath.Join(tree, "a.txt")))
	must(t, os.Mkdir(filepath.Join(tree, "a.txt"), 0o700))
	spec, hash, _ := take(t, r, tree, base)
	same(t, brought(t, r, spec, hash), []string{
		`D 100644 000000 "a.txt"`,
		`A 000000 120000 "dir"`,
		`D 100644 000000 "dir/in.txt"`,
		`D 100644 000000 "gone.txt"`,
		`A 000000 100644 "gone.txt/inner"`,
		`A 000000 100644 "sub"`,
		`D 100644 000000 "sub/b.txt"`,
	})
}

func TestSnapshotLeavesNestedRepositoriesAndPipesOut(t *testing.T) {
	t.Parallel()
	r, tree, base := agentTree(t)
	raw(t, tree, "init", "-q", "nested/empty")
	raw(t, tree, "init", "-q", "nested/full")
	write(t, filepath.Join(tree, "nested/full/f"), "f")
	commitAll(t, filepath.Join(tree, "nested/full"), "x")
	raw(t, tree, "init", "-q", "dir") // a repository where files are tracked: they go on being tracked
	write(t, filepath.Join(tree, "dir/in.txt"), "changed\n")
	must(t, os.Remove(filepath.Join(tree, "a.txt")))
	must(t, syscall.Mkfifo(filepath.Join(tree, "a.txt"), 0o600))
	must(t, syscall.Mkfifo(filepath.Join(tree, "pipe"), 0o600))
	write(t, filepath.Join(tree, "new"), "new\n")
	spec, hash, _ := take(t, r, tree, base)
	same(t, brought(t, r, spec, hash), []string{`M 100644 100644 "dir/in.txt"`, `A 000000 100644 "new"`})
	message, _, err := r.Message(t.Context(), hash)
	if err != nil || !strings.Contains(message, "Left out") || !strings.Contains(message, "  nested/full/\n") ||
		!strings.Contains(message, "  nested/empty/\n") || !strings.Contains(message, "  a.txt\n") {
		t.Errorf("%q, %v", message, err)
	}
}

func TestSnapshotRunsNothingOfTheWorkspace(t *testing.T) {
	t.Parallel()
	r, tree, base := agentTree(t)
	marker := filepath.Join(t.TempDir(), "marker")
	evil := filepath.Join(tree, "evil.sh")
	script(t, evil, "touch "+marker+"; cat")
	for _, key := range []string{"core.fsmonitor", "filter.evil.clean", "filter.evil.process", "diff.external",
		"gpg.program", "core.editor", "core.pager", "diff.evil.textconv"} {
		raw(t, tree, "config", key, evil)
	}
	raw(t, tree, "config", "commit.gpgSign", "true")
	raw(t, tree, "config", "core.hooksPath", filepath.Join(tree, "hooks"))
	for _, hook := range []string{"pre-commit", "post-commit", "reference-transaction", "post-index-change", "prepare-commit-msg"} {
		script(t, filepath.Join(tree, "hooks", hook), "touch "+marker)
		script(t, filepath.Join(tree, ".git/hooks", hook), "touch "+marker)
	}
	write(t, filepath.Join(tree, ".git/info/attributes"), "* filter=evil\n")
	write(t, filepath.Join(tree, ".gitattributes"), "*.bat text eol=crlf\n* filter=evil diff=evil\n")
	write(t, filepath.Join(tree, ".git/info/exclude"), "*\n")
	write(t, filepath.Join(tree, "a.txt"), "changed\n")
	spec, hash, changed := take(t, r, tree, base)
	if !changed || exists(marker) {
		t.Fatalf("changed %t, something ran: %t", changed, exists(marker))
	}
	if got := brought(t, r, spec, hash); len(got) != 8 {
		t.Errorf("%d changes: %s", len(got), strings.Join(got, "\n"))
	}
	if blob, err := r.Blob(t.Context(), hash+":a.txt", 100); err != nil || string(blob) != "changed\n" {
		t.Errorf("%q, %v", blob, err)
	}
	if exists(marker) {
		t.Error("something ran at the import")
	}
}

func TestSnapshotWithTheWorkspacesGitDirectoryAsATrap(t *testing.T) {
	t.Parallel()
	r, tree, base := agentTree(t)
	other, _ := project(t)
	must(t, os.RemoveAll(filepath.Join(tree, ".git")))
	write(t, filepath.Join(tree, ".git"), "gitdir: "+filepath.Join(other, ".git")+"\n")
	write(t, filepath.Join(tree, "new"), "new\n")
	before := raw(t, other, "for-each-ref") + raw(t, other, "status", "--porcelain")
	spec, hash, _ := take(t, r, tree, base)
	same(t, brought(t, r, spec, hash), []string{`A 000000 100644 "new"`})
	if raw(t, other, "for-each-ref")+raw(t, other, "status", "--porcelain") != before {
		t.Error("another repository was touched")
	}
}

func TestSnapshotKeepsSubmodules(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, _ := project(t)
	sub, at := project(t)
	raw(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+at+",module")
	raw(t, dir, "commit", "-q", "-m", "submodule")
	base := raw(t, dir, "rev-parse", "HEAD")
	r, _ := fetched(t, g, dir)
	tree := workspace(t, r, base)
	if _, hash, changed := take(t, r, tree, base); changed || hash != base {
		t.Error("an empty submodule was taken for a deleted one")
	}
	must(t, os.RemoveAll(filepath.Join(tree, "module")))
	raw(t, "/", "clone", "-q", sub, filepath.Join(tree, "module"))
	commitAll(t, filepath.Join(tree, "module"), "inner")
	if _, hash, changed := take(t, r, tree, base); changed || hash != base {
		t.Error("a submodule was moved to a commit that nobody has")
	}
	must(t, os.RemoveAll(filepath.Join(tree, "module")))
	spec, hash, _ := take(t, r, tree, base)
	same(t, brought(t, r, spec, hash), []string{`D 160000 000000 "module"`})
}
