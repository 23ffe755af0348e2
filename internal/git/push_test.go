package git_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"interlock/internal/git"
)

func push(t *testing.T, r *git.Repo, remote string, updates ...git.Update) (git.PushReport, error) {
	t.Helper()
	return r.Push(t.Context(), git.PushSpec{Remote: remote, Updates: updates})
}

func TestPushCreatesMovesAndDeletes(t *testing.T) {
	t.Parallel()
	g := find(t)
	r, remote := engine(t, g), bareRemote(t)
	const ref = "refs/interlock/claims/1"
	first := newCommit(t, r.Plumb, "first")
	second := newCommit(t, r.Plumb, "second", first)
	at := func(want string) {
		t.Helper()
		refs, err := g.LsRemote(t.Context(), remote, ref)
		if err != nil || refs[ref] != want {
			t.Fatalf("ref is at %q, %v; want %q", refs[ref], err, want)
		}
	}
	steps := []struct {
		new, old string
		want     error
		at       string
	}{
		{first, second, git.ErrStaleRef, ""},
		{first, "", nil, first},
		{second, "", git.ErrStaleRef, first},
		{first, "", git.ErrStaleRef, first},
		{second, first, nil, second},
		{"", first, git.ErrStaleRef, second},
		{"", second, nil, ""},
	}
	for i, s := range steps {
		_, err := push(t, r, remote, git.Update{Ref: ref, New: s.new, Old: s.old})
		if !errors.Is(err, s.want) {
			t.Fatalf("step %d: %v, want %v", i, err, s.want)
		}
		at(s.at)
	}
	if _, err := push(t, r, remote, git.Update{Ref: ref, New: first, Old: first}); !errors.Is(err, git.ErrInvalid) {
		t.Fatalf("a push of nothing: %v", err)
	}
}

func TestPushAtomicWithAStaleClaimMovesNothing(t *testing.T) {
	t.Parallel()
	g := find(t)
	r, remote := engine(t, g), bareRemote(t)
	claim := newCommit(t, r.Plumb, "claim")
	taken := newCommit(t, r.Plumb, "taken", claim)
	mine := newCommit(t, r.Plumb, "mine", claim)
	work := newCommit(t, r.Plumb, "work")
	if _, err := push(t, r, remote, git.Update{Ref: "refs/interlock/claims/1", New: taken}); err != nil {
		t.Fatal(err)
	}
	_, err := push(t, r, remote,
		git.Update{Ref: "refs/interlock/claims/1", New: mine, Old: claim},
		git.Update{Ref: "refs/heads/interlock/1", New: work})
	if !errors.Is(err, git.ErrStaleRef) {
		t.Fatal(err)
	}
	refs, err := g.LsRemote(t.Context(), remote)
	if err != nil || len(refs) != 1 || refs["refs/interlock/claims/1"] != taken {
		t.Fatalf("refs: %v, %v", refs, err)
	}
}

func TestPushRunsTheRemotesOwnHooksAndReportsThem(t *testing.T) {
	t.Parallel()
	g := find(t)
	r, remote := engine(t, g), bareRemote(t)
	marks := t.TempDir()
	for _, hook := range []string{"pre-receive", "update", "post-receive", "reference-transaction"} {
		script(t, filepath.Join(remote, "hooks", hook), "echo hook "+hook+"; printf 'bell\\007\\n'; touch "+filepath.Join(marks, hook))
	}
	report, err := push(t, r, remote, git.Update{Ref: "refs/heads/a", New: newCommit(t, r.Plumb, "a")})
	if err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"pre-receive", "update", "post-receive"} {
		if !exists(filepath.Join(marks, hook)) || !strings.Contains(report.Remote, "hook "+hook) {
			t.Errorf("%s did not run or was not reported: %q", hook, report.Remote)
		}
	}
	if strings.Contains(report.Remote, "\a") || !strings.Contains(report.Remote, `\x07`) {
		t.Errorf("not escaped: %q", report.Remote)
	}
	script(t, filepath.Join(remote, "hooks/pre-receive"), "echo 'no: \033[31mpolicy'; exit 1")
	_, err = push(t, r, remote, git.Update{Ref: "refs/heads/b", New: newCommit(t, r.Plumb, "b")})
	if !errors.Is(err, git.ErrRefused) || !strings.Contains(err.Error(), `no: \x1b[31mpolicy`) {
		t.Fatalf("a refusing hook: %v", err)
	}
	if raw(t, remote, "for-each-ref", "refs/heads/b") != "" {
		t.Fatal("the refused ref is there")
	}
	script(t, filepath.Join(remote, "hooks/pre-receive"), "exit 0")
	script(t, filepath.Join(remote, "hooks/update"), `test "$1" != refs/heads/c`)
	_, err = push(t, r, remote,
		git.Update{Ref: "refs/heads/c", New: newCommit(t, r.Plumb, "c")},
		git.Update{Ref: "refs/heads/d", New: newCommit(t, r.Plumb, "d")})
	if !errors.Is(err, git.ErrRefused) || raw(t, remote, "for-each-ref", "refs/heads/d") != "" {
		t.Fatalf("one of two refused: %v", err)
	}
}

func TestPushIsUnknownWhenItIsCut(t *testing.T) {
	t.Parallel()
	g := find(t)
	r, remote := engine(t, g), bareRemote(t)
	script(t, filepath.Join(remote, "hooks/post-receive"), "sleep 60")
	new := newCommit(t, r.Plumb, "new")
	began := time.Now()
	_, err := r.Push(t.Context(), git.PushSpec{Remote: remote, Timeout: time.Second,
		Updates: []git.Update{{Ref: "refs/heads/a", New: new}}})
	if !errors.Is(err, git.ErrUnknown) || time.Since(began) > 20*time.Second {
		t.Fatalf("%v after %v", err, time.Since(began))
	}
	refs, err := g.LsRemote(t.Context(), remote, "refs/heads/a")
	if err != nil || refs["refs/heads/a"] != new {
		t.Fatalf("read back: %v, %v", refs, err)
	}
}

func TestPushIsUnknownWhateverAHookSaysBeforeItDies(t *testing.T) {
	t.Parallel()
	g := find(t)
	r := engine(t, g)
	new := newCommit(t, r.Plumb, "new")
	for hook, at := range map[string]string{"pre-receive": "", "post-receive": new} {
		remote := bareRemote(t)
		script(t, filepath.Join(remote, "hooks", hook),
			"echo \"fatal: 'x' does not appear to be a git repository\"; sleep 1; kill -9 $PPID")
		if _, err := push(t, r, remote, git.Update{Ref: "refs/heads/a", New: new}); !errors.Is(err, git.ErrUnknown) {
			t.Errorf("%s: %v", hook, err)
		}
		if refs, err := g.LsRemote(t.Context(), remote, "refs/heads/a"); err != nil || refs["refs/heads/a"] != at {
			t.Errorf("%s, read back: %v, %v", hook, refs, err)
		}
	}
}

func TestPushRefusals(t *testing.T) {
	t.Parallel()
	g := find(t)
	r := engine(t, g)
	new := newCommit(t, r.Plumb, "new")
	checkedOut, head := project(t)
	other := newCommit(t, r.Plumb, "other")
	if _, err := push(t, r, checkedOut, git.Update{Ref: "refs/heads/main", New: other, Old: head}); !errors.Is(err, git.ErrRefused) {
		t.Errorf("the branch that is checked out: %v", err)
	}
	if _, err := push(t, r, filepath.Join(t.TempDir(), "absent"), git.Update{Ref: "refs/heads/a", New: new}); !errors.Is(err, git.ErrRefused) {
		t.Errorf("no remote: %v", err)
	}
	if _, err := push(t, r, t.TempDir(), git.Update{Ref: "refs/heads/a", New: new}); !errors.Is(err, git.ErrRefused) {
		t.Errorf("no repository: %v", err)
	}
	if _, err := push(t, r, "ext::sh -c touch% x", git.Update{Ref: "refs/heads/a", New: new}); !errors.Is(err, git.ErrInvalid) {
		t.Errorf("a transport that runs commands: %v", err)
	}
	remote := bareRemote(t)
	if _, err := push(t, r, remote, git.Update{Ref: "refs/heads/a/b", New: new}); err != nil {
		t.Fatal(err)
	}
	if _, err := push(t, r, remote, git.Update{Ref: "refs/heads/a", New: new}); !errors.Is(err, git.ErrRefused) {
		t.Errorf("a ref where others are below: %v", err)
	}
	if _, err := push(t, r, remote, git.Update{Ref: "refs/heads/z", New: strings.Repeat("1", 40)}); !errors.Is(err, git.ErrNoCommit) {
		t.Errorf("a commit that is not here: %v", err)
	}
}

func TestPushNamesAStaleLockFileAndLeavesIt(t *testing.T) {
	t.Parallel()
	g := find(t)
	r, remote := engine(t, g), bareRemote(t)
	lock := filepath.Join(remote, "refs/heads/a.lock")
	write(t, lock, "")
	_, err := push(t, r, remote, git.Update{Ref: "refs/heads/a", New: newCommit(t, r.Plumb, "new")})
	if !errors.Is(err, git.ErrLocked) || !strings.Contains(err.Error(), lock) || !exists(lock) {
		t.Fatal(err)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
}

// TestPushRace: 16 pushers of one ref: created by each with its own commit, created by all with the
// same one, or moved from where it is by each.
func TestPushRace(t *testing.T) {
	t.Parallel()
	g := find(t)
	r, remote := engine(t, g), bareRemote(t)
	for round := range rounds(t, 2) {
		for _, how := range []string{"own", "same", "moved"} {
			ref := fmt.Sprintf("refs/interlock/claims/%d-%s", round, how)
			won := racePush(t, r, remote, ref, how)
			refs, err := g.LsRemote(t.Context(), remote, ref)
			if err != nil {
				t.Fatal(err)
			}
			if len(won) > 1 || how != "same" && len(won) != 1 {
				t.Fatalf("%s: %d winners", ref, len(won))
			}
			if len(won) == 1 && refs[ref] != won[0] || refs[ref] == "" {
				t.Fatalf("%s: winner %v, the remote has %q", ref, won, refs[ref])
			}
		}
	}
}

func racePush(t *testing.T, r *git.Repo, remote, ref, how string) (won []string) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	one, old := newCommit(t, r.Plumb, ref), ""
	if how == "moved" {
		old = one
		if _, err := push(t, r, remote, git.Update{Ref: ref, New: old}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 16 {
		new := one
		if how != "same" {
			new = newCommit(t, r.Plumb, fmt.Sprint(ref, i))
		}
		wg.Go(func() {
			_, err := r.Push(t.Context(), git.PushSpec{Remote: remote, Updates: []git.Update{{Ref: ref, New: new, Old: old}}})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, new)
			} else if !errors.Is(err, git.ErrStaleRef) {
				t.Errorf("a loser was told: %v", err)
			}
		})
	}
	wg.Wait()
	return won
}
