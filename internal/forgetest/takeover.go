package forgetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"interlock/internal/forge"
	"interlock/internal/git"
)

// isHeld demands that a call was refused because of another one's claim.
func isHeld(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.As(err, new(*forge.HeldError)) {
		t.Errorf("%s: %v, want that it is held", what, err)
	}
}

func isLost(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, forge.ErrLost) {
		t.Errorf("%s: %v, want that it is lost", what, err)
	}
}

// claimTakeOver: only the very claim that was watched is taken over, as its child, and whoever had
// it can do nothing any more.
func claimTakeOver(t *testing.T, r *room) {
	a, b := r.claims("a"), r.claims("b")
	mine, err := a.Take(r.ctx, 1, "nonce-a", "host a")
	r.must(err)
	watched, _, err := b.Read(r.ctx, 1)
	r.must(err)
	moved, err := a.Renew(r.ctx, mine, "host a")
	r.must(err)
	_, err = b.TakeOver(r.ctx, watched, "nonce-b", "host b")
	isHeld(t, "it moved since", err)
	if now := r.refs(moved.Ref)[moved.Ref]; now != moved.Hash {
		t.Errorf("a living claim was moved to %s", now)
	}
	watched, _, err = b.Read(r.ctx, 1)
	r.must(err)
	theirs, err := b.TakeOver(r.ctx, watched, "nonce-b", "host b")
	r.must(err)
	if theirs.Generation != moved.Generation+1 || !r.follows(b.Repo, moved.Hash, theirs.Hash) {
		t.Errorf("took over %+v after %+v", theirs, moved)
	}
	prev, there, err := b.Previous(r.ctx, theirs)
	if err != nil || !there || prev.Nonce != "nonce-a" || prev.Released {
		t.Errorf("before it: %+v, %v, %v", prev, there, err)
	}
	_, err = a.Renew(r.ctx, moved, "host a")
	isLost(t, "renew", err)
	_, _, err = a.PushWith(r.ctx, moved, "host a", git.Update{Ref: workRef, New: r.commit(a.Repo, "late")})
	isLost(t, "push", err)
	isLost(t, "release", a.Release(r.ctx, moved))
	_, err = a.Restore(r.ctx, moved, "host a")
	isLost(t, "restore", err)
	if refs := r.refs(theirs.Ref, workRef); refs[theirs.Ref] != theirs.Hash || refs[workRef] != "" {
		t.Errorf("after the late ones: %v", refs)
	}
}

// claimSuccessor: of two processes of one installation with one nonce, the one whose place was
// taken can neither renew nor push, though all that is there carries its nonce.
func claimSuccessor(t *testing.T, r *room) {
	old, next := r.claims("a"), r.claims("a")
	old.Process, next.Process = "1.10.boot", "2.20.boot"
	mine, err := old.Take(r.ctx, 1, "nonce", "process 1")
	r.must(err)
	again, err := old.Renew(r.ctx, mine, "process 1")
	r.must(err)
	if _, err := old.Renew(r.ctx, mine, "process 1"); err != nil {
		t.Errorf("its own commit, which it did not save: %v", err)
	}
	_, err = next.Renew(r.ctx, again, "process 2")
	isLost(t, "renewed without taking the place", err)
	taken, err := next.Adopt(r.ctx, mine, "process 2")
	r.must(err)
	if taken.Generation != 4 || taken.Process != "2.20.boot" {
		t.Errorf("adopted %+v", taken)
	}
	_, err = old.Renew(r.ctx, again, "process 1")
	isLost(t, "renew", err)
	_, _, err = old.PushWith(r.ctx, again, "process 1", git.Update{Ref: workRef, New: r.commit(old.Repo, "late")})
	isLost(t, "push", err)
	if refs := r.refs(taken.Ref, workRef); refs[taken.Ref] != taken.Hash || refs[workRef] != "" {
		t.Errorf("after the late ones: %v", refs)
	}
}

// claimBreak: only what was looked at is broken; the same again is settled.
func claimBreak(t *testing.T, r *room) {
	a, b := r.claims("a"), r.claims("b")
	mine, err := a.Take(r.ctx, 1, "nonce-a", "host a")
	r.must(err)
	looked, _, err := b.Read(r.ctx, 1)
	r.must(err)
	moved, err := a.Renew(r.ctx, mine, "host a")
	r.must(err)
	_, err = b.Break(r.ctx, looked, "broken-1", "somebody")
	isHeld(t, "it moved since", err)
	looked, _, err = b.Read(r.ctx, 1)
	r.must(err)
	undo := r.hook("reference-transaction", "[ \"$1\" = committed ] || exit 0\n"+once(t, "kill -9 $PPID"))
	done, err := b.Break(r.ctx, looked, "broken-2", "somebody") // the answer is lost
	r.must(err)
	undo()
	again, err := b.Break(r.ctx, looked, "broken-2", "somebody")
	r.must(err)
	if done != again || !done.Free() || done.Generation != moved.Generation+1 {
		t.Errorf("broken %+v, again %+v", done, again)
	}
	_, err = a.Renew(r.ctx, moved, "host a")
	isLost(t, "renew", err)
	if next, err := b.Take(r.ctx, 1, "nonce-b", "host b"); err != nil || next.Generation != done.Generation+1 {
		t.Errorf("take after the break: %+v, %v", next, err)
	}
	hash := r.raw(a.Repo, "no commit", "hash-object", "-w", "--stdin")
	r.force(a.Repo, a.Ref(2), hash)
	looked, _, err = b.Read(r.ctx, 2)
	r.must(err)
	if done, err := b.Break(r.ctx, looked, "broken-3", "somebody"); err != nil || !done.Free() {
		t.Errorf("break what is no claim: %+v, %v", done, err)
	}
}

// claimWiped: what was seen held is not free because its ref is gone; its holder restores it, and
// no generation that anybody knows comes again.
func claimWiped(t *testing.T, r *room) {
	a, b := r.claims("a"), r.claims("b")
	mine, err := a.Take(r.ctx, 1, "nonce-a", "host a")
	r.must(err)
	seen, _, err := b.Read(r.ctx, 1)
	r.must(err)
	mine, err = a.Renew(r.ctx, mine, "host a") // b does not see this one
	r.must(err)
	r.force(a.Repo, mine.Ref, "")
	got, there, err := b.Read(r.ctx, 1)
	if err != nil || !there || !got.Wiped || got.Hash != seen.Hash || got.Free() {
		t.Errorf("after the wipe: %+v, %v, %v", got, there, err)
	}
	_, err = b.Take(r.ctx, 1, "nonce-b", "host b")
	isHeld(t, "wiped", err)
	_, err = b.TakeOver(r.ctx, seen, "nonce-b", "host b")
	isHeld(t, "what was watched was not the wiped one", err)
	back, err := a.Restore(r.ctx, mine, "host a")
	r.must(err)
	if back.Generation != mine.Generation+1 {
		t.Errorf("restored %+v after %+v", back, mine)
	}
	r.must(a.Release(r.ctx, back))
	free, _, err := b.Read(r.ctx, 1)
	r.must(err)
	r.force(a.Repo, mine.Ref, "")
	theirs, err := b.Take(r.ctx, 1, "nonce-b", "host b")
	if r.must(err); theirs.Generation != free.Generation+1 {
		t.Errorf("after a wipe %+v, seen was %+v", theirs, free)
	}
	r.must(b.Release(r.ctx, theirs))
	r.force(a.Repo, mine.Ref, "")
	stranger := r.claims("c") // it has seen nothing
	first, err := stranger.Take(r.ctx, 1, "nonce-c", "host c")
	r.must(err)
	r.must(stranger.Release(r.ctx, first))
	next, err := b.Take(r.ctx, 1, "nonce-d", "host b")
	if r.must(err); next.Generation <= theirs.Generation+1 {
		t.Errorf("a generation came again: %+v after %+v", next, theirs)
	}
	if read, _, err := r.claims("e").Read(r.ctx, 1); err != nil || read.Damage != "" || read.Generation != next.Generation {
		t.Errorf("others read %+v, %v", read, err)
	}
}

// onlyBranches refuses all but branches, and branches that are not moved forward.
const onlyBranches = `while read old new ref; do
	case $ref in refs/heads/*) ;; *) echo "only branches here" >&2; exit 1;; esac
	case $old in *[!0]*) git merge-base --is-ancestor "$old" "$new" || exit 1;; esac
done`

// claimFallback: a remote that takes only branches, moved forward only, is worked all the same.
func claimFallback(t *testing.T, r *room) {
	a, b := r.claims("a"), r.claims("b")
	before, err := a.Take(r.ctx, 1, "nonce-0", "host a")
	r.must(err)
	r.must(a.Release(r.ctx, before))
	undo := r.hook("pre-receive", onlyBranches)
	mine, err := a.Take(r.ctx, 1, "nonce-a", "host a")
	r.must(err)
	if mine.Ref != "refs/heads/interlock/claims/1" || mine.Generation != before.Generation+2 {
		t.Errorf("took %+v", mine)
	}
	if again, err := a.Take(r.ctx, 1, "nonce-a", "host a"); err != nil || again.Ref != mine.Ref {
		t.Errorf("adopted %+v, %v", again, err)
	} else {
		mine = again
	}
	_, err = b.Take(r.ctx, 1, "nonce-b", "host b")
	isHeld(t, "in the second namespace", err)
	head := r.commit(a.Repo, "one")
	mine, _, err = a.PushWith(r.ctx, mine, "host a", git.Update{Ref: "refs/heads/work", New: head})
	r.must(err)
	mine, err = a.Renew(r.ctx, mine, "host a")
	r.must(err)
	if refs := r.refs(mine.Ref, "refs/heads/work"); refs[mine.Ref] != mine.Hash || refs["refs/heads/work"] != head {
		t.Errorf("pushed: %v", refs)
	}
	undo()
	_, err = b.Take(r.ctx, 1, "nonce-b", "host b") // the first is accepted again; the second still excludes
	isHeld(t, "in the second namespace, the first is open", err)
	watched, _, err := b.Read(r.ctx, 1)
	r.must(err)
	theirs, err := b.TakeOver(r.ctx, watched, "nonce-b", "host b")
	if r.must(err); theirs.Generation != mine.Generation+1 {
		t.Errorf("took over %+v after %+v", theirs, mine)
	}
	_, err = a.Renew(r.ctx, mine, "host a")
	isLost(t, "renew", err)
	r.must(b.Release(r.ctx, theirs))
	fresh := r.claims("c") // it has not been refused: it takes the first namespace
	last, err := fresh.Take(r.ctx, 1, "nonce-c", "host c")
	if r.must(err); last.Ref != fresh.Ref(1) || last.Generation != theirs.Generation+2 {
		t.Errorf("back in the first namespace: %+v after %+v", last, theirs)
	}
	_, err = a.Take(r.ctx, 1, "nonce-d", "host a")
	isHeld(t, "in the first namespace, begun from the second", err)
	if other, err := a.Take(r.ctx, 2, "nonce-e", "host a"); err != nil || !strings.HasPrefix(other.Ref, forge.Namespaces[1]) {
		t.Errorf("the refusal is not remembered: %+v, %v", other, err)
	}
}

// claimFallbackTakeOver: a claim that was abandoned in the first namespace, which the remote refuses
// by now, is taken over in the second: what follows it counts alone, in both.
func claimFallbackTakeOver(t *testing.T, r *room) {
	a, b := r.claims("a"), r.claims("b")
	mine, err := a.Take(r.ctx, 1, "nonce-a", "host a")
	r.must(err)
	watched, _, err := b.Read(r.ctx, 1)
	r.must(err)
	defer r.hook("pre-receive", onlyBranches)()
	if _, err := a.Renew(r.ctx, mine, "host a"); !errors.Is(err, forge.ErrDenied) {
		t.Errorf("renewed where it is refused: %v", err)
	}
	theirs, err := b.TakeOver(r.ctx, watched, "nonce-b", "host b")
	if r.must(err); theirs.Ref != "refs/heads/interlock/claims/1" || theirs.Generation != mine.Generation+1 {
		t.Errorf("took over %+v after %+v", theirs, mine)
	}
	if refs := r.refs(mine.Ref); refs[mine.Ref] != mine.Hash {
		t.Errorf("the first namespace was written: %v", refs)
	}
	_, err = a.Renew(r.ctx, mine, "host a")
	isLost(t, "renew", err)
	if got, _, err := r.claims("c").Read(r.ctx, 1); err != nil || got.Hash != theirs.Hash {
		t.Errorf("others read %+v, %v", got, err)
	}
	r.must(b.Release(r.ctx, theirs))
	if next, err := a.Take(r.ctx, 1, "nonce-c", "host a"); err != nil || next.Generation != theirs.Generation+2 {
		t.Errorf("then it is free: %+v, %v", next, err)
	}
}

// claimFallbackYields: a claim that appears in the other namespace between the look and the push
// is seen afterwards, and the push is taken back.
func claimFallbackYields(t *testing.T, r *room) {
	a, b := r.claims("a"), r.claims("b")
	theirs, err := a.Take(r.ctx, 1, "nonce-a", "host a")
	r.must(err)
	r.force(a.Repo, "refs/interlock/kept", theirs.Hash)
	r.force(a.Repo, theirs.Ref, "")
	undo := r.hook("pre-receive", onlyBranches+"\nenv -u GIT_QUARANTINE_PATH git update-ref "+theirs.Ref+" "+theirs.Hash)
	// onlyBranches has eaten what was to be read; the ref appears while the branch is accepted.
	_, err = b.Take(r.ctx, 1, "nonce-b", "host b")
	undo()
	isHeld(t, "the other appeared meanwhile", err)
	got, there, err := r.claims("c").Read(r.ctx, 1)
	if err != nil || !there || got.Hash != theirs.Hash {
		t.Errorf("now %+v, %v, %v", got, there, err)
	}
	if refs := r.refs(forge.Namespaces[1]); len(refs) != 1 {
		t.Errorf("the test has not written the second namespace: %v", refs)
	}
}

// claimFallbackRace: of takers of which half are refused the first namespace never two win.
func claimFallbackRace(t *testing.T, r *room) {
	const takers, rounds = 6, 3
	defer r.hook("pre-receive", `while read old new ref; do
	case $ref in refs/heads/*) continue;; esac
	! git cat-file commit "$new" | grep -q '"installation":"odd' || exit 1
done`)()
	all := make([]*forge.Claims, takers)
	for i := range all {
		all[i] = r.claims([]string{"even", "odd"}[i%2] + fmt.Sprint(i))
	}
	spaces := map[string]int{}
	for issue := int64(1); issue <= rounds; issue++ {
		var mu sync.Mutex
		won := []forge.Claim{}
		together(takers, func(i int) {
			for try := 0; ; try++ {
				cl, err := all[i].Take(r.ctx, issue, fmt.Sprintf("nonce-%d-%d-%d", issue, i, try), fmt.Sprintf("holder %d", i))
				mu.Lock()
				if err == nil {
					won = append(won, cl)
				} else if !errors.As(err, new(*forge.HeldError)) && !errors.Is(err, git.ErrStaleRef) {
					t.Errorf("taker %d: %v", i, err)
				}
				over := len(won) > 0 || try == 20
				mu.Unlock()
				if over {
					return
				}
				time.Sleep(time.Duration(i) * 20 * time.Millisecond) // two that yield to each other must not do so for ever
			}
		})
		if len(won) != 1 {
			t.Fatalf("issue %d: %d winners: %+v", issue, len(won), won)
		}
		spaces[strings.TrimSuffix(won[0].Ref, fmt.Sprint(issue))]++
		for _, c := range all {
			if got, _, err := c.Read(r.ctx, issue); err != nil || got.Hash != won[0].Hash {
				t.Errorf("issue %d: read %+v, %v; the winner has %+v", issue, got, err, won[0])
			}
		}
	}
	t.Logf("won in %v", spaces)
}

// follows reports whether one commit is a descendant of another.
func (r *room) follows(repo *git.Repo, old, hash string) bool {
	r.Helper()
	ok, err := repo.IsAncestor(r.ctx, old, hash)
	r.must(err)
	return ok
}
