package git_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"interlock/internal/git"
)

func importFrom(t *testing.T, r *git.Repo, tree string) (git.Commit, error) {
	t.Helper()
	return r.Import(t.Context(), git.ImportSpec{Source: tree, Into: "refs/interlock/import/1"})
}

// untouched fails when r has another ref than its base, or anything left in quarantine.
func untouched(t *testing.T, r *git.Repo) {
	t.Helper()
	refs, err := r.Refs(t.Context(), "refs/")
	if err != nil || len(refs) != 1 {
		t.Errorf("refs: %v, %v", refs, err)
	}
	if left, _ := filepath.Glob(filepath.Join(r.Dir(), "interlock-incoming", "*")); len(left) > 0 {
		t.Errorf("left in quarantine: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(r.Objects(), "pack", "tmp_*")); len(left) > 0 {
		t.Errorf("left in the objects: %v", left)
	}
}

func TestImport(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, head := project(t)
	r, _ := fetched(t, g, dir)
	tree := workspace(t, r, head)
	if c, err := importFrom(t, r, tree); err != nil || c.Hash != head {
		t.Fatalf("nothing new: %+v, %v", c, err)
	}
	write(t, filepath.Join(tree, "a.txt"), "agent\n")
	work := commitAll(t, tree, "work")
	if _, err := importFrom(t, r, tree); !errors.Is(err, git.ErrStaleRef) {
		t.Fatalf("into a ref that is there: %v", err)
	}
	spec := git.ImportSpec{Source: tree, Rev: "refs/heads/interlock/1", Into: "refs/interlock/import/2"}
	c, err := r.Import(t.Context(), spec)
	if err != nil || c.Hash != work || len(c.Parents) != 1 || c.Parents[0] != head {
		t.Fatalf("%+v, %v", c, err)
	}
	if err := os.RemoveAll(tree); err != nil {
		t.Fatal(err)
	}
	raw(t, r.Dir(), "fsck", "--strict", "--no-dangling", "--connectivity-only")
	if blob, err := r.Blob(t.Context(), work+":a.txt", 100); err != nil || string(blob) != "agent\n" {
		t.Errorf("%q, %v", blob, err)
	}
	if refs, err := r.Refs(t.Context(), "refs/"); err != nil || len(refs) != 3 {
		t.Errorf("%v, %v", refs, err)
	}
}

func TestImportThroughAnUploadPackThatAloneKnowsThePath(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, head := project(t)
	r, _ := fetched(t, g, dir)
	tree := workspace(t, r, head)
	work := commitAll(t, tree, "work")
	wrapper := filepath.Join(t.TempDir(), "wrap it.sh")
	seen := filepath.Join(t.TempDir(), "seen")
	script(t, wrapper, `printf %s "$2" > `+seen+"; exec git -c safe.directory='*' upload-pack "+tree)
	spec := git.ImportSpec{Source: "/only/inside the 'sandbox'", UploadPack: "'" + wrapper + "' arg", Into: "refs/interlock/import/1"}
	c, err := r.Import(t.Context(), spec)
	if err != nil || c.Hash != work {
		t.Fatalf("%+v, %v", c, err)
	}
	if got, err := os.ReadFile(seen); err != nil || string(got) != spec.Source {
		t.Errorf("the other side saw %q, %v", got, err)
	}
}

func TestImportBoundsThePack(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, head := project(t)
	r, _ := fetched(t, g, dir)
	tree := workspace(t, r, head)
	noise := make([]byte, 3<<20)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(tree, "noise"), string(noise))
	commitAll(t, tree, "much")
	spec := git.ImportSpec{Source: tree, Into: "refs/interlock/import/1", MaxPack: 2 << 20}
	if _, err := r.Import(t.Context(), spec); !errors.Is(err, git.ErrTooBig) {
		t.Fatal(err)
	}
	untouched(t, r)
	spec.MaxPack = 4 << 20
	if _, err := r.Import(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}

// TestImportBoundsTheMemory: a pack of a few kilobytes unpacks to much more. The other side is not
// bounded by it.
func TestImportBoundsTheMemory(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, head := project(t)
	r, _ := fetched(t, g, dir)
	tree := workspace(t, r, head)
	write(t, filepath.Join(tree, "zeros"), strings.Repeat("\x00", 30<<20))
	commitAll(t, tree, "bomb")
	limits := filepath.Join(t.TempDir(), "limits")
	spec := git.ImportSpec{Source: tree, Into: "refs/interlock/import/1", MaxPack: 1 << 20, MaxMemory: 24 << 20,
		UploadPack: "(ulimit -S -f; ulimit -S -d) > " + limits + "; git -c safe.directory='*' upload-pack"}
	if _, err := r.Import(t.Context(), spec); !errors.Is(err, git.ErrTooBig) {
		t.Fatal(err)
	}
	untouched(t, r)
	if text, err := os.ReadFile(limits); err != nil || strings.Contains(string(text), fmt.Sprint(24<<10)) || strings.Contains(string(text), fmt.Sprint(2<<10)) {
		t.Errorf("the other side's limits: %q, %v", text, err)
	}
	spec.MaxMemory = 0
	if _, err := r.Import(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}

func TestImportHasADeadline(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, head := project(t)
	r, _ := fetched(t, g, dir)
	tree := workspace(t, r, head)
	if err := os.Remove(filepath.Join(tree, ".git/config")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(tree, ".git/config"), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err := r.Import(t.Context(), git.ImportSpec{Source: tree, Into: "refs/interlock/import/1", Timeout: time.Second})
	var failed *git.Error
	if !errors.Is(err, git.ErrRefused) || !errors.As(err, &failed) || !failed.Timeout || time.Since(began) > 20*time.Second {
		t.Fatalf("%v after %v", err, time.Since(began))
	}
	untouched(t, r)
	// The lock was given back.
	if _, err := r.FetchBranch(t.Context(), dir, "main", "refs/interlock/base/1"); err != nil {
		t.Error(err)
	}
}

// TestImportOfATrap: what a hostile workspace can do by its content and its own configuration. What
// makes git on the other side read elsewhere (gitfile, commondir, alternates, links) is for the
// sandbox to stop; here nothing may run on this side, and nothing incomplete may come in.
func TestImportOfATrap(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, head := project(t)
	second := commitAll(t, dir, "second")
	marker := filepath.Join(t.TempDir(), "marker")
	run := "touch " + marker
	traps := map[string]struct {
		set  func(tree string)
		want error // nil: it comes in as if nothing were
	}{
		"shallow": {func(tree string) {
			write(t, filepath.Join(tree, ".git/shallow"), commitAll(t, tree, "x")+"\n")
		}, git.ErrNoRef},
		"no head": {func(tree string) { raw(t, tree, "symbolic-ref", "HEAD", "refs/heads/none") }, git.ErrNoRef},
		"head is a tree": {func(tree string) {
			write(t, filepath.Join(tree, ".git/HEAD"), raw(t, tree, "rev-parse", "HEAD^{tree}")+"\n")
		}, git.ErrNoRef},
		"no repository": {func(tree string) { os.RemoveAll(filepath.Join(tree, ".git")) }, git.ErrRefused},
		"a commit that is missing": {func(tree string) {
			write(t, filepath.Join(tree, ".git/refs/heads/interlock/1"), strings.Repeat("1", 40)+"\n")
		}, git.ErrRefused},
		"a tree that is missing": {func(tree string) {
			write(t, filepath.Join(tree, "gone/file"), "lost")
			commitAll(t, tree, "x")
			tree40 := raw(t, tree, "rev-parse", "HEAD:gone")
			os.Remove(filepath.Join(tree, ".git/objects", tree40[:2], tree40[2:]))
		}, git.ErrRefused},
		"a name that is forbidden": {func(tree string) { forbidden(t, tree) }, git.ErrRefused},
		"programs in the configuration": {func(tree string) {
			for _, key := range []string{"core.fsmonitor", "uploadpack.packObjectsHook", "core.sshCommand", "credential.helper",
				"gpg.program", "core.pager", "diff.external", "core.gitProxy", "core.alternateRefsCommand", "sequence.editor"} {
				raw(t, tree, "config", key, run)
			}
			script(t, filepath.Join(tree, ".git/hooks/post-checkout"), run)
			script(t, filepath.Join(tree, ".git/hooks/reference-transaction"), run)
		}, nil},
		"a promisor": {func(tree string) {
			raw(t, tree, "config", "extensions.partialClone", "evil")
			raw(t, tree, "config", "remote.evil.promisor", "true")
			raw(t, tree, "config", "remote.evil.url", "ext::sh -c "+strings.ReplaceAll(run, " ", "% "))
			raw(t, tree, "config", "protocol.ext.allow", "always")
			write(t, filepath.Join(tree, "gone/file"), "lost")
			commitAll(t, tree, "x")
			tree40 := raw(t, tree, "rev-parse", "HEAD:gone")
			os.Remove(filepath.Join(tree, ".git/objects", tree40[:2], tree40[2:]))
		}, git.ErrRefused},
		"a replace ref": {func(tree string) { raw(t, tree, "replace", "HEAD", head) }, nil},
		"an unknown extension": {func(tree string) {
			raw(t, tree, "config", "core.repositoryFormatVersion", "1")
			raw(t, tree, "config", "extensions.evil", "true")
		}, git.ErrRefused},
	}
	for name, trap := range traps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := fetched(t, g, dir)
			tree := workspace(t, r, second)
			trap.set(tree)
			c, err := importFrom(t, r, tree)
			if !errors.Is(err, trap.want) || err != nil && trap.want == nil {
				t.Fatalf("%v, want %v", err, trap.want)
			}
			if err == nil && c.Hash != second {
				t.Errorf("another commit: %+v", c)
			}
			if err != nil {
				untouched(t, r)
			}
			if exists(marker) {
				t.Error("something ran")
			}
		})
	}
}

// forbidden commits a tree with an entry called ".git", which only broken programs write.
func forbidden(t *testing.T, tree string) {
	t.Helper()
	blob := raw(t, tree, "rev-parse", "HEAD:a.txt")
	odd := filepath.Join(t.TempDir(), "tree")
	bytes := make([]byte, 20)
	for i := range bytes {
		fmt.Sscanf(blob[2*i:2*i+2], "%02x", &bytes[i])
	}
	write(t, odd, "100644 .git\x00"+string(bytes))
	hash := raw(t, tree, "hash-object", "-w", "--literally", "-t", "tree", odd)
	commit := raw(t, tree, "commit-tree", "-m", "x", "-p", "HEAD", hash)
	raw(t, tree, "update-ref", "HEAD", commit)
}

func TestImportEscapesWhatTheOtherSideSays(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, _ := project(t)
	r, _ := fetched(t, g, dir)
	spec := git.ImportSpec{Source: "/inside", Into: "refs/interlock/import/1",
		UploadPack: `printf 'secret \033[2J\302\233 \342\200\256' >&2; exit 3; #`}
	_, err := r.Import(t.Context(), spec)
	if !errors.Is(err, git.ErrRefused) || !strings.Contains(err.Error(), `secret \x1b[2J\u{9b} \u{202e}`) {
		t.Fatalf("%q", err)
	}
}

func TestQuarantineOfAKilledImportIsSwept(t *testing.T) {
	t.Parallel()
	g := find(t)
	r := engine(t, g)
	left := filepath.Join(r.Dir(), "interlock-incoming", "left")
	write(t, filepath.Join(left, "objects/pack/tmp_pack_x"), "x")
	if _, err := g.Engine(t.Context(), r.Dir()); err != nil || exists(left) {
		t.Fatalf("%v, still there: %t", err, exists(left))
	}
}
