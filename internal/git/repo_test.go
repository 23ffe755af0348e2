package git_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"interlock/internal/git"
)

func TestEngineRepository(t *testing.T) {
	t.Parallel()
	g := find(t)
	r := engine(t, g)
	info, err := os.Stat(r.Dir())
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	for key, want := range map[string]string{"gc.auto": "0", "maintenance.auto": "false", "transfer.fsckobjects": "true", "core.bare": "true"} {
		if got := raw(t, r.Dir(), "config", key); got != want {
			t.Errorf("%s is %q", key, got)
		}
	}
	hash := newCommit(t, r.Plumb, "kept")
	if err := r.Pin(t.Context(), "refs/interlock/kept", hash); err != nil {
		t.Fatal(err)
	}
	again, err := g.Engine(t.Context(), r.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if c, err := again.Resolve(t.Context(), "refs/interlock/kept"); err != nil || c.Hash != hash {
		t.Errorf("%+v, %v", c, err)
	}
	if err := r.Pin(t.Context(), "refs/interlock/kept", newCommit(t, r.Plumb, "other")); err != nil {
		t.Errorf("a pin that moves: %v", err)
	}
	if err := r.Pin(t.Context(), "refs/interlock/kept", strings.Repeat("1", 40)); !errors.Is(err, git.ErrNoCommit) {
		t.Errorf("a pin on nothing: %v", err)
	}
}

func TestEngineRecoversFromAKilledCreation(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir := filepath.Join(t.TempDir(), "engine.git")
	raw(t, "/", "init", "-q", "--bare", dir)
	write(t, filepath.Join(dir, "config.lock"), "")
	r, err := g.Engine(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := raw(t, r.Dir(), "config", "gc.auto"); got != "0" {
		t.Errorf("gc.auto is %q", got)
	}
}

func TestLockIsExclusiveAndWaits(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, _ := project(t)
	r, base := fetched(t, g, dir)
	unlock, err := r.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tree := t.TempDir()
	for what, f := range map[string]func(context.Context) error{
		"Lock": func(ctx context.Context) error { _, err := r.Lock(ctx); return err },
		"FetchBranch": func(ctx context.Context) error {
			_, err := r.FetchBranch(ctx, dir, "main", "refs/interlock/base/1")
			return err
		},
		"Workspace": func(ctx context.Context) error {
			return r.Workspace(ctx, git.WorkspaceSpec{Dir: filepath.Join(tree, "x"), Commit: base.Hash})
		},
		"Import": func(ctx context.Context) error {
			_, err := r.Import(ctx, git.ImportSpec{Source: dir, Into: "refs/interlock/import/1"})
			return err
		},
	} {
		short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if err := f(short); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "held by another") {
			t.Errorf("%s beside the lock: %v", what, err)
		}
		cancel()
	}
	// Nothing that is not git's own can be removed to let a second one in.
	left, err := filepath.Glob(filepath.Join(r.Dir(), "interlock-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range left {
		must(t, os.RemoveAll(path))
	}
	again, cancelAgain := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancelAgain()
	if _, err := r.Lock(again); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("locked twice: %v", err)
	}
	got := make(chan error, 1)
	go func() {
		free, err := r.Lock(t.Context())
		if err == nil {
			free()
		}
		got <- err
	}()
	unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestFetch(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, first := project(t)
	r, c := fetched(t, g, dir)
	if c.Hash != first || c.Tree != raw(t, dir, "rev-parse", "HEAD^{tree}") {
		t.Errorf("%+v", c)
	}
	raw(t, dir, "commit", "-q", "--amend", "-m", "forced")
	forced := raw(t, dir, "rev-parse", "HEAD")
	if c, err := r.FetchBranch(t.Context(), dir, "main", "refs/interlock/base/1"); err != nil || c.Hash != forced {
		t.Errorf("a forced base: %+v, %v", c, err)
	}
	if _, err := r.FetchBranch(t.Context(), dir, "absent", "refs/interlock/base/1"); !errors.Is(err, git.ErrNoRef) {
		t.Errorf("no such branch: %v", err)
	}
	if refs, err := r.Refs(t.Context(), "refs/"); err != nil || len(refs) != 1 || refs["refs/interlock/base/1"] != forced {
		t.Errorf("%v, %v", refs, err)
	}
	for _, remote := range []string{t.TempDir(), "/absent"} {
		if _, err := r.FetchBranch(t.Context(), remote, "main", "refs/interlock/base/1"); !errors.Is(err, git.ErrRefused) {
			t.Errorf("no repository: %v", err)
		}
	}
	for _, remote := range []string{"relative", "host:path", "ssh://host/x", "ext::sh", "--upload-pack=x", ""} {
		if _, err := r.FetchBranch(t.Context(), remote, "main", "refs/interlock/base/1"); !errors.Is(err, git.ErrInvalid) {
			t.Errorf("%q: %v", remote, err)
		}
	}
	odd := filepath.Join(t.TempDir(), "odd %41 name '$(touch x)' ä\\")
	raw(t, "/", "clone", "-q", dir, odd)
	if c, err := r.FetchBranch(t.Context(), odd, "main", "refs/interlock/base/2"); err != nil || c.Hash != forced {
		t.Errorf("an odd path: %+v, %v", c, err)
	}
}

func TestFetchFromAShallowRepository(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, _ := project(t)
	commitAll(t, dir, "second")
	shallow := filepath.Join(t.TempDir(), "shallow")
	raw(t, "/", "clone", "-q", "--depth=1", "file://"+dir, shallow)
	r := engine(t, g)
	_, err := r.FetchBranch(t.Context(), shallow, "main", "refs/interlock/base/1")
	if !errors.Is(err, git.ErrRefused) || !strings.Contains(err.Error(), "--unshallow") {
		t.Fatal(err)
	}
	if refs, err := r.Refs(t.Context(), "refs/"); err != nil || len(refs) != 0 {
		t.Errorf("%v, %v", refs, err)
	}
}

func TestLsRemote(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, head := project(t)
	raw(t, dir, "tag", "-a", "-m", "x", "v1")
	for _, ref := range []string{"refs/interlock/claims/1", "refs/interlock/claims/12", "refs/other/refs/interlock/claims/1"} {
		raw(t, dir, "update-ref", ref, head)
	}
	all, err := g.LsRemote(t.Context(), dir)
	if err != nil || len(all) != 5 {
		t.Errorf("%v, %v", all, err)
	}
	for _, pattern := range []string{"refs/interlock/claims/", "refs/interlock/claims/*"} {
		if refs, err := g.LsRemote(t.Context(), dir, pattern); err != nil || len(refs) != 2 {
			t.Errorf("%s: %v, %v", pattern, refs, err)
		}
	}
	refs, err := g.LsRemote(t.Context(), dir, "refs/interlock/claims/1", "refs/heads/absent")
	if err != nil || len(refs) != 1 || refs["refs/interlock/claims/1"] != head {
		t.Errorf("%v, %v", refs, err)
	}
}
