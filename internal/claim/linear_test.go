package claim_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"interlock/internal/claim"
	"interlock/internal/forge"
	"interlock/internal/git"
	"interlock/internal/lineartest"
	"interlock/internal/run"
)

// How much TestLinear does when nobody says. An operation on a claim is some ten processes of git.
const (
	claimOperations = 500
	claimRound      = 4000
	claimIssues     = 4  // that are in use at once
	claimUses       = 60 // operations on an issue before another takes its place
)

// claimPlan: time passes so that a claim is abandoned after some ten operations on its issue.
var claimPlan = lineartest.Plan{
	Slots: 4, Clients: 2, Kill: 25, Pause: 15, Suspend: 80, Step: 50, Drift: 50, Reboot: 150,
	Rate: 30 * time.Second, Longest: 30 * time.Minute, Stopped: 400 * time.Millisecond,
}

// installations says of which installation the process of a slot is: two have one in common.
var installations = [...]int{0, 0, 1, 2}

// claimOperationsVariable is another one than that of the store: operations on claims are dear.
const claimOperationsVariable = "INTERLOCK_CLAIM_OPS"

func TestMain(m *testing.M) {
	if self, ok := lineartest.Self(); ok {
		if err := claimers(self); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestLinear: what many processes of several installations did to the claims of one real repository,
// killed and paused, and with clocks that jump and drift apart, is what one after the other could have
// done: one holder of each generation, generations rise, nobody takes over what has moved.
func TestLinear(t *testing.T) {
	lineartest.Rounds(t, claimOperationsVariable, claimOperations, claimRound, func(t *testing.T, seed uint64, most int64) {
		begin := time.Now()
		p := newPlace(t)
		f := lineartest.Run(t, p.dir, seed, most, claimPlan)
		h := claimHistory{Model: "claims", Seed: seed}
		var err error
		if h.Operations, err = lineartest.Histories[wanted, got](f); err != nil {
			t.Fatal(err)
		}
		did := time.Since(begin)
		found := claimModel.Judge(t, &h)
		unknown, keys, answers := 0, map[string]bool{}, map[string]int{}
		for _, op := range h.Operations {
			keys[op.Key] = true
			what := op.In.Do + " " + op.Out.Err
			if op.Out.Over {
				what = "take over"
			}
			if op.Unknown {
				unknown++
				what = op.In.Do + " unknown"
			}
			answers[what]++
		}
		f.Report("claims", len(h.Operations), unknown, len(keys), len(found))
		t.Logf("answers: %v", answers)
		if most >= claimOperations {
			f.Tried()
			for _, what := range []string{"take ", "take held", "take over", "renew ", "renew lost", "adopt ", "release ", "read "} {
				if answers[what] == 0 {
					t.Errorf("seed %d: nothing was answered with %q: the test did not try it", seed, what)
				}
			}
		}
		t.Logf("claims: %s; done in %v, judged in %v", f.Clocks(), did.Round(time.Millisecond), (time.Since(begin) - did).Round(time.Millisecond))
	})
}

// TestLinearReplay judges histories that were kept; some of them must be refused for ever.
func TestLinearReplay(t *testing.T) { claimModel.Replay(t, "claims") }

// claimer is one client of one process.
type claimer struct {
	rec    *lineartest.Recorder[wanted, got]
	k      *claim.Keeper
	over   *sync.Map
	rng    *rand.Rand
	n      int
	inst   int
	serial int
	name   string
	old    []run.Run // what it had
	kept   string    // file in which it keeps what it has, for whoever follows it
	err    error
}

// holding is the claim that a client has, or means to have: saved before it is taken.
type holding struct {
	Run  run.Run
	Held bool
}

func claimers(m lineartest.Member) error {
	rec, err := lineartest.Record[wanted, got](m, func(o got) bool { return o.Err == "unknown" })
	if err != nil {
		return err
	}
	g, err := git.Find(context.Background())
	if err != nil {
		return err
	}
	inst := installations[m.Slot]
	name := fmt.Sprint("installation-", inst)
	repo, err := g.Engine(context.Background(), filepath.Join(m.Place, name+".git"))
	if err != nil {
		return err
	}
	clock := rec.Board.Clock(inst)
	self := run.Holder{Installation: name, Host: "host", PID: m.Process, Start: 1, Boot: clock.Boot()}
	k := &claim.Keeper{
		Refs: &forge.Claims{Repo: repo, Remote: filepath.Join(m.Place, "remote.git"), Installation: name,
			Process: claim.Process(self), Git: g, Now: clock.Wall},
		Watch: claim.Watch{Dir: filepath.Join(m.Place, name+"-claims"), Clock: clock}, Self: self, Repo: "key",
	}
	var over sync.Map // nonces with which a claim was taken over
	k.Say = func(r run.Run, kind, _ string, _ ...any) { over.Store(r.Claim.Nonce+kind, true) }
	var wg sync.WaitGroup
	errs := make([]error, m.Clients)
	for n := range m.Clients {
		c := &claimer{
			rec: rec, k: k, over: &over, n: n, inst: inst, name: fmt.Sprintf("%d-%d", m.Process, n), rng: rand.New(rand.NewPCG(m.Seed, uint64(n))),
			kept: filepath.Join(m.Place, fmt.Sprintf("kept-%d-%d.json", m.Slot, n)),
		}
		wg.Go(func() { errs[n] = c.work() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (c *claimer) work() error {
	if err := c.inherit(); err != nil {
		return err
	}
	for !c.rec.Board.Over() && c.err == nil {
		c.episode(c.rec.Board.Done()/claimUses + c.rng.Int64N(claimIssues) + 1)
	}
	return c.err
}

// inherit goes on with what the process before this one had, as the engine does after a death.
func (c *claimer) inherit() error {
	data, err := os.ReadFile(c.kept)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var h holding
	if err := json.Unmarshal(data, &h); err != nil {
		return err
	}
	if h.Run.Claim.Hash == "" {
		if c.do(&h.Run, "take") {
			c.hold(&h.Run)
		}
	} else if c.do(&h.Run, "adopt") {
		c.hold(&h.Run)
	}
	return c.err
}

// keep replaces the file as a whole. A kill leaves the one or the other.
func (c *claimer) keep(r run.Run) {
	data, err := json.Marshal(holding{Run: r})
	if err == nil {
		err = os.WriteFile(c.kept+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(c.kept+".new", c.kept)
	}
	c.err = errors.Join(c.err, err)
}

func (c *claimer) episode(issue int64) {
	c.serial++
	r := run.Run{Issue: issue, Claim: run.Claim{Nonce: fmt.Sprint(c.name, "-", c.serial)}}
	switch p := c.rng.IntN(100); {
	case p < 25:
		c.do(&r, "read")
		return
	case p < 30:
		if c.do(&r, "read") {
			c.do(&r, "break")
		}
		return
	case p < 50 && len(c.old) > 0: // it goes on with what it had long ago
		c.do(&c.old[c.rng.IntN(len(c.old))], []string{"renew", "renew", "release"}[c.rng.IntN(3)])
		return
	}
	c.keep(r)
	if c.do(&r, "take") {
		c.hold(&r)
	}
}

// hold works under a claim for a while, gives it back, or forgets it.
func (c *claimer) hold(r *run.Run) {
	for range c.rng.IntN(4) {
		if c.rec.Board.Over() || !c.do(r, "renew") && c.rng.IntN(2) == 0 {
			break
		}
	}
	if c.old = append(c.old, *r); len(c.old) > 4 {
		c.old = c.old[1:]
	}
	if c.rng.IntN(10) < 4 {
		c.do(r, "release")
		if c.rng.IntN(3) == 0 {
			c.do(r, []string{"renew", "release"}[c.rng.IntN(2)])
		}
	}
}

// do does one operation and records it, and keeps what came of it.
func (c *claimer) do(r *run.Run, what string) bool {
	in := wanted{Do: what, Nonce: r.Claim.Nonce, Installation: c.inst, Hash: r.Claim.Hash, Generation: r.Claim.Generation}
	out, err := c.rec.Do(c.n, fmt.Sprint(r.Issue), in, func() got { return c.ask(r, in) })
	c.err = errors.Join(c.err, err)
	if out.Err != "" {
		return false
	}
	switch what {
	case "take", "renew", "adopt":
		r.Claim.Hash, r.Claim.Generation = out.Hash, out.Generation
		c.keep(*r)
	case "read": // what a person has looked at
		r.Claim.Hash, r.Claim.Generation = out.Hash, out.Generation
		return out.Generation > 0 && !out.Released
	}
	return true
}

func (c *claimer) ask(r *run.Run, in wanted) got {
	ctx := context.Background()
	var cl run.Claim
	var err error
	switch in.Do {
	case "take":
		cl, err = c.k.Take(ctx, *r)
	case "renew":
		cl, err = c.k.Renew(ctx, *r)
	case "adopt":
		cl, err = c.k.Adopt(ctx, *r)
	case "release":
		var settled bool
		if settled, err = c.k.Release(ctx, *r); err == nil && settled {
			return got{Err: "lost"}
		}
	case "break":
		looked := forge.Claim{Issue: r.Issue, Ref: c.k.Refs.Ref(r.Issue), Hash: in.Hash, Generation: in.Generation}
		var b forge.Claim
		b, err = c.k.Refs.Break(ctx, looked, in.Nonce, "a person")
		cl = claim.Of(b)
	default:
		var seen forge.Claim
		seen, _, err = c.k.Refs.Read(ctx, r.Issue)
		return c.word(err, ofClaim(seen))
	}
	out := got{Nonce: cl.Nonce, Hash: cl.Hash, Generation: cl.Generation, Released: in.Do == "break"}
	if in.Do == "take" {
		_, out.Over = c.over.Load(in.Nonce + "taken over")
	}
	return c.word(err, out)
}

func ofClaim(c forge.Claim) got {
	return got{Nonce: c.Nonce, Hash: c.Hash, Generation: c.Generation, Released: c.Released}
}

// word is an error as the model knows it.
func (c *claimer) word(err error, out got) got {
	var held *forge.HeldError
	var watched *claim.HeldError
	switch {
	case err == nil:
		return out
	case errors.As(err, &watched):
		out = ofClaim(watched.Claim)
		out.Err = "held"
	case errors.As(err, &held):
		out = ofClaim(held.Claim)
		out.Err = "held"
	case errors.Is(err, forge.ErrLost):
		out = got{Err: "lost"}
	case errors.Is(err, forge.ErrUnknown):
		out = got{Err: "unknown"}
	case errors.Is(err, git.ErrStaleRef), errors.Is(err, git.ErrLocked):
		out = got{Err: "busy"}
	default:
		c.err = errors.Join(c.err, fmt.Errorf("an answer that is none of the contract's: %w", err))
		out = got{Err: "unknown"}
	}
	return out
}
