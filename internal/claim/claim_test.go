package claim_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"interlock/internal/claim"
	"interlock/internal/forge"
	"interlock/internal/git"
	"interlock/internal/run"
)

// clock is time that a test moves. Its wall clock is nonsense: nothing may go by it.
type clock struct {
	now  atomic.Int64
	boot string
}

func (c *clock) Now() time.Duration { return time.Duration(c.now.Load()) }
func (c *clock) Boot() string       { return c.boot }
func (c *clock) Wall() time.Time    { return time.Unix(1_700_000_000, 0).Add(-7 * c.Now()) }

func (c *clock) pass(d time.Duration) { c.now.Add(int64(d)) }

// place is a bare remote and the installations that share it.
type place struct {
	*testing.T
	git    *git.Git
	remote string
	dir    string
}

func newPlace(t *testing.T) *place {
	g, err := git.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{T: t, git: g, dir: t.TempDir()}
	p.remote = filepath.Join(p.dir, "remote.git")
	if _, err := g.Run(t.Context(), git.Command{Args: []string{"init", "--quiet", "--bare", p.remote}}); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) keeper(name string, c *clock) *claim.Keeper {
	p.Helper()
	repo, err := p.git.Engine(p.Context(), filepath.Join(p.dir, name+".git"))
	if err != nil {
		p.Fatal(err)
	}
	self := run.Holder{Installation: name, Host: "host of " + name, PID: 1, Start: 1, Boot: name}
	return &claim.Keeper{
		Refs:  &forge.Claims{Repo: repo, Remote: p.remote, Installation: name, Process: claim.Process(self), Git: p.git, Now: c.Wall},
		Watch: claim.Watch{Dir: filepath.Join(p.dir, name+"-claims"), Clock: c}, Self: self, Repo: "key",
		Say: func(r run.Run, kind, format string, args ...any) { p.Logf(kind+": "+format, args...) },
	}
}

func aRun(nonce string) run.Run { return run.Run{Issue: 1, Claim: run.Claim{Nonce: nonce}} }

// held demands a refusal and returns it.
func (p *place) held(err error) *claim.HeldError {
	p.Helper()
	var held *claim.HeldError
	if !errors.As(err, &held) {
		p.Fatalf("%v, want that it is held", err)
	}
	return held
}

// TestTakeOver: a claim that moves is never taken over, also by an observer whose clock runs at
// twice the rate; one that stands still is, and not before its time.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	hisTime, myTime := &clock{boot: "his"}, &clock{boot: "mine"}
	him, me := p.keeper("him", hisTime), p.keeper("me", myTime)
	r := aRun("his")
	var err error
	if r.Claim, err = him.Take(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	const looks = 4
	for range 6 {
		for range looks {
			held := p.held(me.Free(t.Context(), 1))
			if held.Left <= 0 || held.Unmoved > 2*run.ClaimRenew {
				t.Fatalf("a living claim: %+v", held)
			}
			hisTime.pass(run.ClaimRenew / looks)
			myTime.pass(2 * run.ClaimRenew / looks)
		}
		if r.Claim, err = him.Renew(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	first := p.held(me.Free(t.Context(), 1)) // from here on he is stopped
	if first.Unmoved != 0 || first.Left != run.ClaimAbandoned || run.ClaimAbandoned != 16*time.Minute {
		t.Errorf("at the first sight: %+v", first)
	}
	myTime.pass(run.ClaimAbandoned - time.Second)
	again := p.keeper("me", myTime) // another command of the same installation
	if held := p.held(again.Free(t.Context(), 1)); held.Left != time.Second || !strings.Contains(held.Why(), "taken over in 1s") {
		t.Errorf("a second before: %+v: %s", held, held.Why())
	}
	if _, err := again.Take(t.Context(), aRun("mine")); p.held(err).Left != time.Second {
		t.Errorf("a second before: %v", err)
	}
	myTime.pass(time.Second)
	if err := again.Free(t.Context(), 1); err != nil {
		t.Errorf("when it is time: %v", err)
	}
	mine, err := again.Take(t.Context(), aRun("mine"))
	if err != nil || mine.Generation != r.Claim.Generation+1 {
		t.Fatalf("took %+v after %+v: %v", mine, r.Claim, err)
	}
	// He goes on: whatever he does is refused.
	if _, err := him.Renew(t.Context(), r); !errors.Is(err, forge.ErrLost) {
		t.Errorf("his renewal: %v", err)
	}
	if _, err := him.Mine(t.Context(), r); !errors.Is(err, forge.ErrLost) {
		t.Errorf("his look: %v", err)
	}
	if settled, err := him.Release(t.Context(), r); err != nil || !settled {
		t.Errorf("his release: %v, %v", settled, err)
	}
	if c, _, err := me.Refs.Read(t.Context(), 1); err != nil || c.Hash != mine.Hash {
		t.Errorf("the claim is at %+v, %v", c, err)
	}
}

// TestWatchAnew: what counts is one claim in one boot, seen by one installation.
func TestWatchAnew(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "claims", "repo")
	c := &clock{boot: "one"}
	see := func(boot string, cl forge.Claim) time.Duration {
		t.Helper()
		c.boot = boot
		d, err := claim.Watch{Dir: dir, Clock: c}.See(cl)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	c.pass(time.Hour)
	at := func(want time.Duration, boot string, cl forge.Claim) {
		t.Helper()
		if got := see(boot, cl); got != want {
			t.Errorf("%s in boot %s: unmoved for %s, want %s", cl.Hash, boot, got, want)
		}
	}
	x, y := forge.Claim{Issue: 7, Hash: "x"}, forge.Claim{Issue: 7, Hash: "y"}
	at(0, "one", x)
	c.pass(time.Minute)
	at(time.Minute, "one", x)
	at(0, "one", forge.Claim{Issue: 8, Hash: "x"})
	c.pass(time.Minute)
	at(2*time.Minute, "one", x)
	at(0, "two", x) // a reboot
	c.pass(time.Minute)
	at(time.Minute, "two", x)
	at(0, "two", y) // it moved
	c.pass(time.Minute)
	x.Wiped = true
	at(0, "two", x)
	c.pass(time.Minute)
	at(time.Minute, "two", x)
	c.pass(-10 * time.Minute) // cannot be: not believed
	at(0, "two", x)
	file := filepath.Join(dir, "7.json")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	at(0, "two", x)
	if left, err := filepath.Glob(filepath.Join(dir, ".new-*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// TestWipedIsWatched: a wiped claim is believed as long as one that stands still, and restored by
// its holder at any time.
func TestWipedIsWatched(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	myTime := &clock{boot: "mine"}
	him, me := p.keeper("him", &clock{boot: "his"}), p.keeper("me", myTime)
	r := aRun("his")
	var err error
	if r.Claim, err = him.Take(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	p.held(me.Free(t.Context(), 1))
	myTime.pass(run.ClaimAbandoned - time.Minute)
	wipe := func() {
		t.Helper()
		at := p.git.At(p.remote)
		if err := at.UpdateRefs(t.Context(), git.Update{Ref: r.Claim.Ref, Old: r.Claim.Hash}); err != nil {
			t.Fatal(err)
		}
	}
	wipe()
	held := p.held(me.Free(t.Context(), 1)) // he may have moved it just before
	if held.Left != run.ClaimAbandoned || !strings.Contains(held.Why(), "deleted") {
		t.Errorf("wiped: %+v: %s", held, held.Why())
	}
	if r.Claim, err = him.Renew(t.Context(), r); err != nil {
		t.Fatalf("restore: %v", err)
	}
	p.held(me.Free(t.Context(), 1))
	wipe()
	p.held(me.Free(t.Context(), 1))
	myTime.pass(run.ClaimAbandoned)
	mine, err := me.Take(t.Context(), aRun("mine"))
	if err != nil || mine.Generation != r.Claim.Generation+1 {
		t.Errorf("took %+v after %+v: %v", mine, r.Claim, err)
	}
	if _, err := him.Renew(t.Context(), r); !errors.Is(err, forge.ErrLost) {
		t.Errorf("his renewal: %v", err)
	}
}

// TestDamagedIsNotTakenOver: what cannot be read as a claim waits for a person.
func TestDamagedIsNotTakenOver(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	myTime := &clock{boot: "mine"}
	me := p.keeper("me", myTime)
	at := p.git.At(p.remote)
	hash, err := at.WriteCommit(t.Context(), git.CommitSpec{Message: "no claim"})
	if err != nil {
		t.Fatal(err)
	}
	if err := at.UpdateRefs(t.Context(), git.Update{Ref: me.Refs.Ref(1), New: hash}); err != nil {
		t.Fatal(err)
	}
	p.held(me.Free(t.Context(), 1))
	myTime.pass(10 * run.ClaimAbandoned)
	if held := p.held(me.Free(t.Context(), 1)); held.Left != 0 || !strings.Contains(fmt.Sprint(held, held.Why()), "never taken over") {
		t.Errorf("%v: %s", held, held.Why())
	}
	if _, err := me.Take(t.Context(), aRun("mine")); p.held(err) == nil {
		t.Error(err)
	}
}
