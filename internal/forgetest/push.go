package forgetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"interlock/internal/forge"
	"interlock/internal/git"
)

const workRef = "refs/heads/interlock/1-work"

// pushWith: claim and branch move together; again with the same arguments adopts.
func pushWith(t *testing.T, r *room) {
	c := r.claims("here")
	cl, err := c.Take(r.ctx, 1, "nonce", "host")
	r.must(err)
	head := r.commit(c.Repo, "one")
	next, _, err := c.PushWith(r.ctx, cl, "host", git.Update{Ref: workRef, New: head})
	r.must(err)
	refs := r.refs(cl.Ref, workRef)
	if refs[workRef] != head || refs[cl.Ref] != next.Hash || next.Generation != 2 {
		t.Errorf("pushed %+v, refs %v", next, refs)
	}
	again, _, err := c.PushWith(r.ctx, cl, "host", git.Update{Ref: workRef, New: head}) // killed before it saved
	r.must(err)
	refs = r.refs(cl.Ref, workRef)
	if refs[workRef] != head || refs[cl.Ref] != again.Hash || again.Generation != 3 {
		t.Errorf("pushed again %+v, refs %v", again, refs)
	}
	two := r.commit(c.Repo, "two")
	last, _, err := c.PushWith(r.ctx, again, "host", git.Update{Ref: workRef, New: two, Old: head})
	r.must(err)
	if refs = r.refs(cl.Ref, workRef); refs[workRef] != two || refs[cl.Ref] != last.Hash {
		t.Errorf("moved on %+v, refs %v", last, refs)
	}
	if _, _, err := c.PushWith(r.ctx, last, "host", git.Update{Ref: "refs/interlock/claims/2", New: two}); !errors.Is(err, forge.ErrInvalid) {
		t.Errorf("a ref that is no branch: %v", err)
	}
}

// pushWithStale: whoever lost the claim moves nothing; a branch that others moved is left alone.
func pushWithStale(t *testing.T, r *room) {
	a, b := r.claims("a"), r.claims("b")
	mine, err := a.Take(r.ctx, 1, "nonce-a", "host a")
	r.must(err)
	r.must(a.Release(r.ctx, mine))
	theirs, err := b.Take(r.ctx, 1, "nonce-b", "host b")
	r.must(err)
	head := r.commit(a.Repo, "a")
	if _, _, err := a.PushWith(r.ctx, mine, "host a", git.Update{Ref: workRef, New: head}); !errors.Is(err, forge.ErrLost) {
		t.Errorf("pushed with a lost claim: %v", err)
	}
	if refs := r.refs(mine.Ref, workRef); refs[workRef] != "" || refs[mine.Ref] != theirs.Hash {
		t.Errorf("a lost claim moved something: %v", refs)
	}
	foreign := r.branch(strings.TrimPrefix(workRef, "refs/heads/"), "a person's")
	head = r.commit(b.Repo, "b")
	if _, _, err := b.PushWith(r.ctx, theirs, "host b", git.Update{Ref: workRef, New: head}); !errors.Is(err, git.ErrStaleRef) {
		t.Errorf("pushed over a person's branch: %v", err)
	}
	if refs := r.refs(mine.Ref, workRef); refs[workRef] != foreign || refs[mine.Ref] != theirs.Hash {
		t.Errorf("refs %v", refs)
	}
}

// pushWithRace: the claim, or the branch, is moved while our push is already on its way: the other
// side refuses all of it.
func pushWithRace(t *testing.T, r *room) {
	a, b := r.claims("a"), r.claims("b")
	for i, what := range []string{"claim", "branch"} {
		issue := int64(i + 1)
		mine, err := a.Take(r.ctx, issue, "nonce-a", "host a")
		r.must(err)
		// What the other installation will have pushed: a child of our claim, or a branch.
		foreign := r.commit(b.Repo, "foreign "+what)
		branch := fmt.Sprintf("%s-%d", workRef, issue)
		ref, want := branch, git.ErrStaleRef
		if what == "claim" {
			ref, want = mine.Ref, forge.ErrLost
		}
		r.force(b.Repo, "refs/heads/parked", foreign)
		// In the hook refs cannot be updated while what is pushed is in quarantine; foreign is not.
		undo := r.hook("pre-receive", once(t, "unset GIT_QUARANTINE_PATH\ngit update-ref '"+ref+"' "+foreign))
		_, _, err = a.PushWith(r.ctx, mine, "host a", git.Update{Ref: branch, New: r.commit(a.Repo, "mine")})
		undo()
		if !errors.Is(err, want) {
			t.Errorf("%s moved meanwhile: %v, want %v", what, err, want)
		}
		refs := r.refs(mine.Ref, branch)
		if refs[ref] != foreign || what == "claim" && refs[branch] != "" || what == "branch" && refs[mine.Ref] != mine.Hash {
			t.Errorf("%s moved meanwhile: refs %v", what, refs)
		}
	}
}

// pushWithAnswerLost: the other side dies before or after it moved the refs.
func pushWithAnswerLost(t *testing.T, r *room) {
	c := r.claims("here")
	cl, err := c.Take(r.ctx, 1, "nonce", "host")
	r.must(err)
	old := ""
	for name, hook := range lostAnswers {
		head := r.commit(c.Repo, name)
		undo := r.hook(hook.name, hook.head+once(t, "kill -9 $PPID"))
		next, _, err := c.PushWith(r.ctx, cl, "host", git.Update{Ref: workRef, New: head, Old: old})
		r.must(err)
		undo()
		if refs := r.refs(cl.Ref, workRef); refs[workRef] != head || refs[cl.Ref] != next.Hash {
			t.Errorf("%s: %+v, refs %v", name, next, refs)
		}
		cl, old = next, head
	}
}

// refused: a remote that will not have it is a denial with its own words, made harmless.
func refused(t *testing.T, r *room) {
	c := r.claims("here")
	cl, err := c.Take(r.ctx, 1, "nonce", "host")
	r.must(err)
	head := r.commit(c.Repo, "x")
	defer r.hook("pre-receive", `printf 'frozen for \033[31mrelease\033[0m\n' >&2; exit 1`)()
	denied := func(name string, err error) {
		t.Helper()
		if !errors.Is(err, forge.ErrDenied) || !errors.Is(err, git.ErrRefused) {
			t.Errorf("%s: %v", name, err)
			return
		}
		if text := err.Error(); strings.Contains(text, "\x1b") || !strings.Contains(text, "frozen for ") {
			t.Errorf("%s: %q", name, text)
		}
	}
	_, err = c.Take(r.ctx, 2, "nonce", "host")
	denied("take", err)
	_, err = c.Renew(r.ctx, cl, "host")
	denied("renew", err)
	_, _, err = c.PushWith(r.ctx, cl, "host", git.Update{Ref: workRef, New: head})
	denied("push", err)
	denied("release", c.Release(r.ctx, cl))
	if refs := r.refs("refs/interlock/claims/", workRef); len(refs) != 1 || refs[cl.Ref] != cl.Hash {
		t.Errorf("refs %v", refs)
	}
}
