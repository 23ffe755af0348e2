package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"interlock/internal/forge"
	"interlock/internal/forge/local"
	"interlock/internal/forgetest"
	"interlock/internal/git"
)

// place is an operator's repository in a test.
type place struct {
	testing.TB
	git *git.Git
	dir string
}

// repository makes one with one commit on main, which has a file "text".
func repository(t testing.TB, bare bool) place {
	t.Helper()
	g, err := git.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "repo")
	if bare {
		dir += ".git"
	}
	p := place{TB: t, git: g, dir: dir}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	args := []string{"init", "--quiet", "--initial-branch=main"}
	if bare {
		args = append(args, "--bare")
	}
	p.run(args...)
	hash, err := g.At(dir).WriteCommit(t.Context(), git.CommitSpec{
		Files: map[string][]byte{"text": []byte("base\n"), ".gitignore": []byte("ignored\n")}, Message: "begin\n"})
	p.must(err)
	p.must(g.At(dir).UpdateRefs(t.Context(), git.Update{Ref: "refs/heads/main", New: hash}))
	if !bare {
		p.run("reset", "--quiet", "--hard")
	}
	return p
}

func (p place) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// run runs git in the repository and returns what it printed.
func (p place) run(args ...string) string {
	p.Helper()
	out, err := p.git.Run(p.Context(), git.Command{Dir: p.dir, Args: args})
	p.must(err)
	return strings.TrimSpace(string(out.Stdout))
}

func (p place) open() *local.Forge {
	p.Helper()
	f, err := local.Open(p.Context(), p.git, p.dir)
	p.must(err)
	return f
}

// branch puts a branch at a new commit with these files on top of from.
func (p place) branch(name, from string, files map[string]string) string {
	p.Helper()
	tree := map[string][]byte{".gitignore": []byte("ignored\n")}
	for file, text := range files {
		tree[file] = []byte(text)
	}
	at := p.git.At(p.dir)
	parent, err := at.Resolve(p.Context(), from)
	p.must(err)
	hash, err := at.WriteCommit(p.Context(), git.CommitSpec{Files: tree, Parents: []string{parent.Hash}, Message: "work\n"})
	p.must(err)
	refs, err := at.Refs(p.Context(), "refs/heads/"+name)
	p.must(err)
	p.must(at.UpdateRefs(p.Context(), git.Update{Ref: "refs/heads/" + name, New: hash, Old: refs["refs/heads/"+name]}))
	return hash
}

func (p place) at(rev string) string {
	p.Helper()
	c, err := p.git.At(p.dir).Resolve(p.Context(), rev)
	p.must(err)
	return c.Hash
}

func (p place) hook(name, script string) (undo func()) {
	p.Helper()
	common := p.run("rev-parse", "--path-format=absolute", "--git-common-dir")
	file := filepath.Join(common, "hooks", name)
	p.must(os.MkdirAll(filepath.Dir(file), 0o700))
	p.must(os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	return func() { p.must(os.Remove(file)) }
}

// TestConformance leaves out the claims, which know nothing of a driver: internal/forge runs them.
func TestConformance(t *testing.T) {
	t.Parallel()
	forgetest.RunForge(t, func(t *testing.T) forgetest.Fixture { return fixture(repository(t, false)) })
}

// The remote of an operator's repository takes claims and branches, but never the branch that is
// checked out in it.
func TestClaimsOnWorkTree(t *testing.T) {
	t.Parallel()
	p := repository(t, false)
	repo, err := p.git.Engine(t.Context(), filepath.Join(t.TempDir(), "engine.git"))
	p.must(err)
	c := &forge.Claims{Repo: repo, Remote: p.open().Remote(), Installation: "here", Git: p.git}
	cl, err := c.Take(t.Context(), 1, "nonce", "host")
	p.must(err)
	base, err := repo.FetchBranch(t.Context(), c.Remote, "main", "refs/interlock/base")
	p.must(err)
	head, err := repo.WriteCommit(t.Context(), git.CommitSpec{Parents: []string{base.Hash}, Message: "work\n"})
	p.must(err)
	_, _, err = c.PushWith(t.Context(), cl, "host", git.Update{Ref: "refs/heads/main", New: head, Old: base.Hash})
	if !errors.Is(err, forge.ErrDenied) || p.at("main") != base.Hash || p.at(cl.Ref) != cl.Hash {
		t.Errorf("push to the branch that is checked out: %v; main is at %s", err, p.at("main"))
	}
	next, _, err := c.PushWith(t.Context(), cl, "host", git.Update{Ref: "refs/heads/work", New: head})
	if err != nil || p.at("work") != head || p.at(cl.Ref) != next.Hash {
		t.Errorf("push: %v", err)
	}
}

func fixture(p place) forgetest.Fixture {
	first := p.open()
	return forgetest.Fixture{
		Git: p.git, Remote: first.Remote(), Base: "main",
		Open: func(testing.TB) forge.Forge { return p.open() },
		NewIssue: func(t testing.TB, title, body string, labels ...string) int64 {
			i, err := first.NewIssue(t.Context(), title, body, labels, "")
			p.must(err)
			return i.Number
		},
		CloseIssue: func(t testing.TB, n int64) {
			_, err := first.CloseIssue(t.Context(), n)
			p.must(err)
		},
		Hook: func(_ testing.TB, name, script string) func() { return p.hook(name, script) },
	}
}
