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

// claimRace: of 16 takers with engine's repositories of their own one wins each round.
func claimRace(t *testing.T, r *room) {
	const takers = 16
	rounds := int64(rounds(t, 3))
	all := make([]*forge.Claims, takers)
	for i := range all {
		all[i] = r.claims(fmt.Sprintf("installation%d", i))
	}
	for issue := int64(1); issue <= rounds; issue++ {
		var mu sync.Mutex
		var won []forge.Claim
		var held []*forge.HeldError
		together(takers, func(i int) {
			cl, err := all[i].Take(r.ctx, issue, fmt.Sprintf("nonce-%d-%d", issue, i), fmt.Sprintf("holder %d", i))
			mu.Lock()
			defer mu.Unlock()
			var other *forge.HeldError
			switch {
			case err == nil:
				won = append(won, cl)
			case errors.As(err, &other):
				held = append(held, other)
			default:
				t.Errorf("taker %d: %v", i, err)
			}
		})
		if len(won) != 1 || len(held) != takers-1 {
			t.Fatalf("issue %d: %d winners, %d refused", issue, len(won), len(held))
		}
		for _, other := range held {
			if other.Claim.Nonce != won[0].Nonce || !strings.Contains(other.Error(), won[0].Holder) {
				t.Errorf("issue %d: %v, but the winner is %s", issue, other, won[0].Holder)
			}
		}
		got, there, err := all[0].Read(r.ctx, issue)
		if err != nil || !there || got != won[0] {
			t.Errorf("issue %d: read %+v, %v, %v; the winner has %+v", issue, got, there, err, won[0])
		}
	}
}

// claimAdopt: a claim with our nonce is ours, whatever became of the answer and of our repository.
func claimAdopt(t *testing.T, r *room) {
	first, err := r.claims("here").Take(r.ctx, 7, "nonce-a", "host 1, process 1")
	r.must(err)
	if first.Generation != 1 || first.Issue != 7 || first.Ref != "refs/interlock/claims/7" || first.Released {
		t.Errorf("took %+v", first)
	}
	again, err := r.claims("here").Take(r.ctx, 7, "nonce-a", "host 1, process 2")
	r.must(err)
	if again.Generation != 2 || again.Hash == first.Hash || r.refs(first.Ref)[first.Ref] != again.Hash {
		t.Errorf("adopted %+v after %+v", again, first)
	}
	for name, c := range map[string]struct{ installation, nonce string }{
		"another nonce":        {"here", "nonce-b"},
		"another installation": {"there", "nonce-a"},
	} {
		_, err = r.claims(c.installation).Take(r.ctx, 7, c.nonce, "host 2")
		var held *forge.HeldError
		if !errors.As(err, &held) || !strings.Contains(err.Error(), "host 1, process 2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := r.claims("here").Take(r.ctx, 7, "a b", "x"); !errors.Is(err, forge.ErrInvalid) {
		t.Errorf("a malformed nonce: %v", err)
	}
	_, there, err := r.claims("here").Read(r.ctx, 8)
	if there || err != nil {
		t.Errorf("issue 8: %v, %v", there, err)
	}
}

// claimRelease: what is given back can be taken, and generations go on rising.
func claimRelease(t *testing.T, r *room) {
	a, b := r.claims("a"), r.claims("b")
	mine, err := a.Take(r.ctx, 1, "nonce-a", "host a")
	r.must(err)
	r.must(a.Release(r.ctx, mine))
	r.must(a.Release(r.ctx, mine)) // the answer to the first was lost
	if got, _, err := b.Read(r.ctx, 1); err != nil || !got.Free() || got.Generation != 2 {
		t.Errorf("after release: %+v, %v", got, err)
	}
	if _, err := a.Renew(r.ctx, mine, "host a"); !errors.Is(err, forge.ErrLost) {
		t.Errorf("renewed what was given back: %v", err)
	}
	theirs, err := b.Take(r.ctx, 1, "nonce-b", "host b")
	r.must(err)
	if theirs.Generation != 3 {
		t.Errorf("generation %d, want 3", theirs.Generation)
	}
	if err := a.Release(r.ctx, mine); err != nil {
		t.Errorf("released long ago, taken by others since: %v", err)
	}
	if _, err := a.Renew(r.ctx, mine, "host a"); !errors.Is(err, forge.ErrLost) {
		t.Errorf("renewed what others have: %v", err)
	}
	if err := a.Release(r.ctx, forge.Claim{Issue: 1, Hash: theirs.Hash, Nonce: "nonce-a"}); !errors.Is(err, forge.ErrLost) {
		t.Errorf("released what was never ours: %v", err)
	}
	if got := r.refs(mine.Ref)[mine.Ref]; got != theirs.Hash {
		t.Errorf("the claim of b was moved to %s", got)
	}
}

// claimRenew: each renewal is a child; one whose answer was lost is found by the nonce.
func claimRenew(t *testing.T, r *room) {
	c := r.claims("here")
	c.Now = func() time.Time { return time.Unix(1_700_000_000, 0) } // nothing may hang on the time
	first, err := c.Take(r.ctx, 1, "nonce", "host")
	r.must(err)
	second, err := c.Renew(r.ctx, first, "host")
	r.must(err)
	third, err := c.Renew(r.ctx, first, "host") // as if the second was never saved
	r.must(err)
	if second.Generation != 2 || third.Generation != 3 || r.refs(first.Ref)[first.Ref] != third.Hash {
		t.Errorf("%+v, %+v, %+v", first, second, third)
	}
	// A new engine's repository knows none of these commits.
	fourth, err := r.claims("here").Renew(r.ctx, first, "host")
	r.must(err)
	bare, err := r.claims("here").Renew(r.ctx, forge.Claim{Issue: 1, Nonce: "nonce"}, "host")
	r.must(err)
	if fourth.Generation != 4 || bare.Generation != 5 {
		t.Errorf("%+v, %+v", fourth, bare)
	}
	// Two that push one and the same object would both win.
	var mu sync.Mutex
	hashes := map[string]bool{}
	together(4, func(int) {
		cl, err := c.Renew(r.ctx, bare, "host")
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			hashes[cl.Hash] = true
		} else {
			t.Error(err)
		}
	})
	if len(hashes) != 4 {
		t.Errorf("4 renewals made %d commits", len(hashes))
	}
}

// claimForced: a ref that somebody forced or deleted is noticed and not written over.
func claimForced(t *testing.T, r *room) {
	c := r.claims("here")
	first, err := c.Take(r.ctx, 1, "nonce", "host")
	r.must(err)
	second, err := c.Renew(r.ctx, first, "host")
	r.must(err)
	lost := func(name, now, why string) {
		t.Helper()
		var lost *forge.LostError
		if _, err := c.Renew(r.ctx, second, "host"); !errors.Is(err, forge.ErrLost) || !errors.As(err, &lost) || !strings.Contains(lost.Why, why) {
			t.Errorf("%s: renew: %v", name, err)
		}
		_, _, err := c.PushWith(r.ctx, second, "host", git.Update{Ref: "refs/heads/work", New: r.commit(c.Repo, "x")})
		if !errors.Is(err, forge.ErrLost) {
			t.Errorf("%s: push: %v", name, err)
		}
		if now != "" {
			if err := c.Release(r.ctx, second); !errors.Is(err, forge.ErrLost) {
				t.Errorf("%s: release: %v", name, err)
			}
		}
		refs := r.refs(first.Ref, "refs/heads/work")
		if refs[first.Ref] != now || refs["refs/heads/work"] != "" {
			t.Errorf("%s: refs are now %v", name, refs)
		}
	}
	r.force(c.Repo, first.Ref, first.Hash)
	lost("moved back", first.Hash, "does not descend")
	r.force(c.Repo, first.Ref, "")
	lost("deleted", "", "is gone")
	r.must(c.Release(r.ctx, second)) // others would wait for what they have seen held
	if got, _, err := r.claims("there").Read(r.ctx, 1); err != nil || !got.Free() || got.Generation != 3 {
		t.Errorf("given back after the ref was wiped: %+v, %v", got, err)
	}
	r.force(c.Repo, first.Ref, "")
	other, err := r.claims("there").Take(r.ctx, 1, "other", "host 2")
	r.must(err)
	lost("taken by others", other.Hash, "claimed by host 2, generation 1")
}

// claimGarbage: what anybody wrote there is neither free nor ours, and harms nobody.
func claimGarbage(t *testing.T, r *room) {
	c, fresh := r.claims("here"), r.claims("elsewhere")
	r.force(c.Repo, c.Ref(99), record(goodRecord)(r, c.Repo, 99))
	if got, _, err := fresh.Read(r.ctx, 99); err != nil || !got.Free() { // else all that follows shows nothing
		t.Fatalf("the record that the others are made from: %+v, %v", got, err)
	}
	put := map[string]string{}
	for i, g := range garbage {
		issue := int64(100 + i)
		hash := g.make(r, c.Repo, issue)
		r.force(c.Repo, c.Ref(issue), hash)
		put[c.Ref(issue)] = hash
		got, there, err := fresh.Read(r.ctx, issue)
		if err != nil || !there || got.Damage == "" || got.Free() {
			t.Errorf("%s: read %+v, %v, %v", g.name, got, there, err)
		}
		var held *forge.HeldError
		if _, err = fresh.Take(r.ctx, issue, "nonce", "host"); !errors.As(err, &held) || !strings.Contains(err.Error(), "unknown writer") {
			t.Errorf("%s: take: %v", g.name, err)
		}
		if strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %q", g.name, err)
		}
		if i%9 != 0 { // they all fail alike
			continue
		}
		if _, err = fresh.Renew(r.ctx, forge.Claim{Issue: issue, Nonce: "nonce"}, "host"); !errors.Is(err, forge.ErrLost) {
			t.Errorf("%s: renew: %v", g.name, err)
		}
	}
	for ref, hash := range r.refs("refs/interlock/claims/") {
		if put[ref] != hash && ref != c.Ref(99) {
			t.Errorf("%s was moved to %s", ref, hash)
		}
	}
}

const goodRecord = `{"v":1,"issue":ISSUE,"nonce":"nonce","installation":"elsewhere","holder":"h","generation":1,"state":"released","time":"2020-01-01T00:00:00Z","id":"x"}`

// garbage is what a writer with bad intent, or another program, may leave at a claim ref. Each
// says "released", or carries our nonce: what is read leniently would be free or ours.
var garbage = []struct {
	name string
	make func(r *room, repo *git.Repo, issue int64) string
}{
	{"no claim", message("a commit", nil)},
	{"empty", message("\n", nil)},
	{"other subject", message("interlock claim\n\n"+goodRecord, nil)},
	{"no JSON", record("\x1b[31mred")},
	{"missing fields", record(`{"v":1,"issue":ISSUE}`)},
	{"no nonce", edit(`"nonce":"nonce"`, `"nonce":""`)},
	{"odd nonce", edit(`"nonce":"nonce"`, `"nonce":"a b"`)},
	{"generation zero", edit(`"generation":1`, `"generation":0`)},
	{"generation negative", edit(`"generation":1`, `"generation":-1`)},
	{"generation skips", edit(`"generation":1`, `"generation":2`)},
	{"generation huge", edit(`"generation":1`, `"generation":9223372036854775807`)},
	{"generation overflows", edit(`"generation":1`, `"generation":9223372036854775808`)},
	{"generation text", edit(`"generation":1`, `"generation":"1"`)},
	{"other issue", edit(`"issue":ISSUE`, `"issue":1`)},
	{"other state", edit(`"released"`, `"free"`)},
	{"other version", edit(`"v":1`, `"v":2`)},
	{"bad time", edit(`2020-01-01T00:00:00Z`, `yesterday`)},
	{"unknown field", edit(`"id":"x"`, `"id":"x","more":1`)},
	{"doubled field", edit(`"state":"released"`, `"state":"held","state":"released"`)},
	{"field in capitals", edit(`"state"`, `"STATE"`)},
	{"something after", record(goodRecord + "\n{}")},
	{"huge message", message("interlock claim [skip ci]\n\n"+strings.Repeat("x", 1<<20), nil)},
	{"huge holder", edit(`"holder":"h"`, `"holder":"`+strings.Repeat("h", 5000)+`"`)},
	{"files in it", message("interlock claim [skip ci]\n\n"+goodRecord, map[string][]byte{"f": []byte("x")})},
	{"two parents", func(r *room, repo *git.Repo, issue int64) string {
		a, b := message("a", nil)(r, repo, issue), message("b", nil)(r, repo, issue)
		return r.write(repo, git.CommitSpec{Message: "interlock claim [skip ci]\n\n" + strings.ReplaceAll(goodRecord, "ISSUE", fmt.Sprint(issue)), Parents: []string{a, b}})
	}},
	{"blob", func(r *room, repo *git.Repo, _ int64) string {
		return r.raw(repo, "released", "hash-object", "-w", "--stdin")
	}},
	{"tag", func(r *room, repo *git.Repo, issue int64) string {
		hash := record(goodRecord)(r, repo, issue)
		return r.raw(repo, "object "+hash+"\ntype commit\ntag t\ntagger a <a@b> 1 +0000\n\nx\n", "hash-object", "-w", "-t", "tag", "--stdin")
	}},
}

func message(text string, files map[string][]byte) func(*room, *git.Repo, int64) string {
	return func(r *room, repo *git.Repo, issue int64) string {
		return r.write(repo, git.CommitSpec{Message: strings.ReplaceAll(text, "ISSUE", fmt.Sprint(issue)), Files: files})
	}
}

func record(line string) func(*room, *git.Repo, int64) string {
	return message("interlock claim [skip ci]\n\n"+line, nil)
}

func edit(old, new string) func(*room, *git.Repo, int64) string {
	if !strings.Contains(goodRecord, old) {
		panic("not in the record: " + old)
	}
	return record(strings.Replace(goodRecord, old, new, 1))
}

func (r *room) write(repo *git.Repo, spec git.CommitSpec) string {
	r.Helper()
	hash, err := repo.WriteCommit(r.ctx, spec)
	r.must(err)
	return hash
}

// once is a shell script that does something the first time only.
func once(t *testing.T, what string) string {
	return fmt.Sprintf("rmdir '%s' 2>/dev/null || exit 0\n%s\n", t.TempDir(), what)
}

// claimAnswerLost: the other side dies before or after it moved the ref.
func claimAnswerLost(t *testing.T, r *room) {
	c := r.claims("here")
	var last forge.Claim
	for name, hook := range lostAnswers {
		undo := r.hook(hook.name, hook.head+once(t, "kill -9 $PPID"))
		cl, err := c.Take(r.ctx, 1, "nonce", "host")
		r.must(err)
		if now := r.refs(cl.Ref)[cl.Ref]; now != cl.Hash || cl.Generation <= last.Generation {
			t.Errorf("%s: took %+v, the ref is at %s", name, cl, now)
		}
		undo()
		undo = r.hook(hook.name, hook.head+once(t, "kill -9 $PPID"))
		last, err = c.Renew(r.ctx, cl, "host")
		r.must(err)
		if now := r.refs(cl.Ref)[cl.Ref]; now != last.Hash {
			t.Errorf("%s: renewed %+v, the ref is at %s", name, last, now)
		}
		undo()
	}
	for _, hook := range lostAnswers {
		undo := r.hook(hook.name, hook.head+once(t, "kill -9 $PPID"))
		r.must(c.Release(r.ctx, last))
		undo()
	}
	if got, _, err := c.Read(r.ctx, 1); err != nil || !got.Released {
		t.Errorf("after release: %+v, %v", got, err)
	}
}

var lostAnswers = map[string]struct{ name, head string }{
	"cut before": {"pre-receive", ""},
	"cut after":  {"reference-transaction", "[ \"$1\" = committed ] || exit 0\n"},
}
