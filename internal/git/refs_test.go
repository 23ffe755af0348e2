package git_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"interlock/internal/git"
)

func TestUpdateRefsIsOneTransaction(t *testing.T) {
	t.Parallel()
	dir, head := project(t)
	p := find(t).At(dir)
	a := newCommit(t, p, "a")
	b := newCommit(t, p, "b", a)
	ctx := t.Context()
	if err := p.UpdateRefs(ctx, git.Update{Ref: "refs/interlock/x", New: a}, git.Update{Ref: "refs/interlock/y", New: a}); err != nil {
		t.Fatal(err)
	}
	for i, updates := range [][]git.Update{
		{{Ref: "refs/interlock/x", New: b, Old: a}, {Ref: "refs/interlock/y", New: b, Old: head}},
		{{Ref: "refs/interlock/x", New: b, Old: a}, {Ref: "refs/interlock/y", New: b}},
		{{Ref: "refs/interlock/x", New: b, Old: a}, {Ref: "refs/interlock/z", New: b, Old: a}},
		{{Ref: "refs/interlock/x", New: b, Old: a}, {Ref: "refs/interlock/z", Old: a}},
		{{Ref: "refs/interlock/x", New: b, Old: a}, {Ref: "refs/interlock/y", New: b, Old: b}},
	} {
		if err := p.UpdateRefs(ctx, updates...); !errors.Is(err, git.ErrStaleRef) {
			t.Errorf("%d: %v", i, err)
		}
		refs, err := p.Refs(ctx, "refs/interlock/")
		if err != nil || len(refs) != 2 || refs["refs/interlock/x"] != a || refs["refs/interlock/y"] != a {
			t.Fatalf("%d: something was moved: %v, %v", i, refs, err)
		}
	}
	if err := p.UpdateRefs(ctx, git.Update{Ref: "refs/interlock/x", New: b, Old: a}, git.Update{Ref: "refs/interlock/y", Old: a}); err != nil {
		t.Fatal(err)
	}
	if refs, err := p.Refs(ctx, "refs/interlock"); err != nil || len(refs) != 1 || refs["refs/interlock/x"] != b {
		t.Fatalf("%v, %v", refs, err)
	}
	if err := p.UpdateRefs(ctx, git.Update{Ref: "refs/interlock/x/below", New: b}); !errors.Is(err, git.ErrRefused) {
		t.Errorf("a ref below a ref: %v", err)
	}
}

func TestUpdateRefsRunsNoHook(t *testing.T) {
	t.Parallel()
	dir, _ := project(t)
	marker := filepath.Join(t.TempDir(), "marker")
	script(t, filepath.Join(dir, ".git/hooks/reference-transaction"), "touch "+marker)
	p := find(t).At(dir)
	if err := p.UpdateRefs(t.Context(), git.Update{Ref: "refs/interlock/x", New: newCommit(t, p, "a")}); err != nil {
		t.Fatal(err)
	}
	if exists(marker) {
		t.Fatal("the hook ran")
	}
}

func TestUpdateRefsRefusesNames(t *testing.T) {
	t.Parallel()
	dir, head := project(t)
	p := find(t).At(dir)
	for _, u := range []git.Update{
		{Ref: "HEAD", New: head}, {Ref: "refs/x y", New: head}, {Ref: "refs/x\nupdate refs/heads/main", New: head},
		{Ref: "refs/x", New: "main"}, {Ref: "refs/x", New: head, Old: "--stdin"}, {Ref: "refs/x"},
		{Ref: "refs/x", New: strings.Repeat("0", 40)},
	} {
		if err := p.UpdateRefs(t.Context(), u); !errors.Is(err, git.ErrInvalid) {
			t.Errorf("%+v: %v", u, err)
		}
	}
	twice := git.Update{Ref: "refs/x", New: head}
	if err := p.UpdateRefs(t.Context(), twice, twice); !errors.Is(err, git.ErrInvalid) {
		t.Errorf("twice: %v", err)
	}
}

func TestUpdateRefsNamesAStaleLockFile(t *testing.T) {
	t.Parallel()
	dir, head := project(t)
	p := find(t).At(dir)
	for _, name := range []string{"refs/heads/topic.lock", "packed-refs.lock"} {
		lock := filepath.Join(dir, ".git", name)
		write(t, lock, "")
		update := git.Update{Ref: "refs/heads/topic", New: head}
		if name == "packed-refs.lock" {
			raw(t, dir, "update-ref", "refs/heads/topic", head)
			update = git.Update{Ref: "refs/heads/topic", Old: head}
		}
		err := p.UpdateRefs(t.Context(), update)
		var locked *git.LockedError
		if !errors.As(err, &locked) || locked.File != lock || !exists(lock) || !errors.Is(err, git.ErrLocked) {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Remove(lock); err != nil {
			t.Fatal(err)
		}
	}
}

// TestALockThatIsGivenBackIsWaitedFor: git itself waits for a tenth of a second.
func TestALockThatIsGivenBackIsWaitedFor(t *testing.T) {
	t.Parallel()
	g := find(t)
	dir, head := project(t)
	r, _ := fetched(t, g, dir)
	lock := filepath.Join(dir, ".git/refs/heads/topic.lock")
	for what, f := range map[string]func(old string) error{
		"UpdateRefs": func(old string) error {
			return g.At(dir).UpdateRefs(t.Context(), git.Update{Ref: "refs/heads/topic", New: head, Old: old})
		},
		"Push": func(old string) error {
			new := newCommit(t, r.Plumb, "new", head)
			_, err := push(t, r, dir, git.Update{Ref: "refs/heads/topic", New: new, Old: old})
			return err
		},
	} {
		old, _ := tryRaw(t, dir, "rev-parse", "--quiet", "--verify", "refs/heads/topic")
		write(t, lock, "")
		release := time.AfterFunc(400*time.Millisecond, func() { _ = os.Remove(lock) })
		if err := f(strings.TrimSpace(old)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		release.Stop()
	}
}

// TestUpdateRefsLosesNothing: 16 writers count in one ref by compare-and-set.
func TestUpdateRefsLosesNothing(t *testing.T) {
	t.Parallel()
	dir, _ := project(t)
	p := find(t).At(dir)
	const ref, writers, each = "refs/interlock/counter", 16, 3
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				if err := count(t, p, ref); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	message, _, err := p.Message(t.Context(), ref)
	if err != nil || strings.TrimSpace(message) != fmt.Sprint(writers*each) {
		t.Fatalf("counted %q, %v", message, err)
	}
}

func count(t *testing.T, p *git.Plumb, ref string) error {
	for {
		refs, err := p.Refs(t.Context(), ref)
		if err != nil {
			return err
		}
		spec, old := git.CommitSpec{Message: "1"}, refs[ref]
		if old != "" {
			message, _, err := p.Message(t.Context(), old)
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(strings.TrimSpace(message))
			if err != nil {
				return err
			}
			spec.Message, spec.Parents = strconv.Itoa(n+1), []string{old}
		}
		new, err := p.WriteCommit(t.Context(), spec)
		if err != nil {
			return err
		}
		err = p.UpdateRefs(t.Context(), git.Update{Ref: ref, New: new, Old: old})
		if !errors.Is(err, git.ErrStaleRef) {
			return err
		}
		time.Sleep(rand.N(100 * time.Millisecond))
	}
}

func TestWriteCommitIsReadBackByGit(t *testing.T) {
	t.Parallel()
	dir, head := project(t)
	p := find(t).At(dir)
	big := strings.Repeat("0123456789abcdef", 5000)
	when := time.Unix(1_700_000_000, 0)
	hash, err := p.WriteCommit(t.Context(), git.CommitSpec{
		Files: map[string][]byte{"b": []byte(big), "a-": []byte("x"), "a": nil, "c": []byte(big[:65535]), "ä\n": []byte("odd")},
		When:  when, Parents: []string{head}, Message: "subject\n\nbody"})
	if err != nil {
		t.Fatal(err)
	}
	if got := raw(t, dir, "log", "-1", "--format=%an <%ae> %ct %P%n%B", hash); got != "Interlock <interlock@localhost> 1700000000 "+head+"\nsubject\n\nbody\n" {
		t.Errorf("%q", got)
	}
	raw(t, dir, "fsck", "--strict", "--no-dangling")
	blob, err := p.Blob(t.Context(), hash+":b", 1<<20)
	if err != nil || string(blob) != big {
		t.Errorf("%d bytes, %v", len(blob), err)
	}
	if _, err := p.Blob(t.Context(), hash+":b", 79999); !errors.Is(err, git.ErrTooBig) {
		t.Errorf("a big blob: %v", err)
	}
	if blob, err := p.Blob(t.Context(), hash+":b", 80000); err != nil || len(blob) != 80000 {
		t.Errorf("a blob of the exact bound: %v", err)
	}
	if blob, err := p.Blob(t.Context(), hash+":a", 10); err != nil || len(blob) != 0 {
		t.Errorf("an empty blob: %v", err)
	}
	if _, err := p.Blob(t.Context(), hash+":d", 10); !errors.Is(err, git.ErrNoRef) {
		t.Errorf("no such file: %v", err)
	}
	empty, err := p.WriteCommit(t.Context(), git.CommitSpec{Message: "claim"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Resolve(t.Context(), empty)
	if err != nil || c.Tree != "4b825dc642cb6eb9a060e54bf8d69288fbee4904" || len(c.Parents) != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestWriteCommitRefuses(t *testing.T) {
	t.Parallel()
	dir, _ := project(t)
	p := find(t).At(dir)
	for _, name := range []string{"", ".", "..", "a/b", "a\x00b", ".git", ".GIT"} {
		if _, err := p.WriteCommit(t.Context(), git.CommitSpec{Files: map[string][]byte{name: nil}}); err == nil {
			t.Errorf("a file called %q was accepted", name)
		}
	}
	if _, err := p.WriteCommit(t.Context(), git.CommitSpec{Parents: []string{strings.Repeat("1", 40)}}); err == nil {
		t.Error("a parent that is not there was accepted")
	}
	if _, err := p.WriteCommit(t.Context(), git.CommitSpec{Parents: []string{"HEAD"}}); !errors.Is(err, git.ErrInvalid) {
		t.Error("a parent that is no hash was accepted")
	}
}
