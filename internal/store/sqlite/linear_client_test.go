package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"interlock/internal/lineartest"
	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/store/sqlite"
)

const (
	linearKeys = 20  // that are in use at once
	linearUses = 240 // operations on a key before another takes its place
	linearRepo = "linear"
)

// askTheStore is what one process of the fleet does: its clients do operations on the store until
// there are enough.
func askTheStore(m lineartest.Member) int {
	if err := clients(m); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func clients(m lineartest.Member) error {
	rec, err := lineartest.Record[asked, answered](m, leftOpen)
	if err != nil {
		return err
	}
	clock := rec.Board.Clock(0)
	s, err := sqlite.Open(context.Background(), m.Place, sqlite.Options{Clock: clock})
	if err != nil {
		return err
	}
	if err := tellAhead(rec, s, clock); err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, m.Clients)
	for n := range m.Clients {
		c := &storeClient{rec: rec, s: s, n: n, rng: rand.New(rand.NewPCG(m.Seed, uint64(n))), name: fmt.Sprintf("%d.%d", m.Process, n)}
		wg.Go(func() { errs[n] = c.work() })
	}
	wg.Wait()
	return errors.Join(append(errs, s.Close())...)
}

// tellAhead records by how much this process takes store time to be ahead of the clock. It must be
// the same for all processes of a boot.
func tellAhead(rec *lineartest.Recorder[asked, answered], s *sqlite.Store, clock store.Clock) error {
	for {
		before := clock.Now()
		now := s.Clock().Now()
		if clock.Now() != before {
			continue
		}
		_, err := rec.Do(0, aheadKey, asked{Do: aheadKey}, func() answered { return answered{Granted: now - before} })
		return err
	}
}

// aheadKey is the key of what is no operation on the store.
const aheadKey = "ahead"

// storeClient is one client. It remembers leases long after they ended, and shows them.
type storeClient struct {
	rec    *lineartest.Recorder[asked, answered]
	s      *sqlite.Store
	rng    *rand.Rand
	n      int
	name   string
	serial int
	old    []grantSeen
	err    error
}

// grantSeen is a lease with the run that it was used for, as it was last read.
type grantSeen struct {
	issue int64
	lease run.Lease
	which int
	run   run.Run
}

func (c *storeClient) work() error {
	for !c.rec.Board.Over() && c.err == nil {
		c.episode(c.rec.Board.Done()/linearUses + c.rng.Int64N(linearKeys) + 1)
	}
	return c.err
}

func (c *storeClient) chance(percent int) bool { return c.rng.IntN(100) < percent }

// episode is what a client does with one issue: it asks, reads, or takes the lease and writes.
func (c *storeClient) episode(issue int64) {
	g := grantSeen{issue: issue, which: c.rng.IntN(runsOfKey)}
	switch p := c.rng.IntN(100); {
	case p < 15:
		c.look(&g)
		return
	case p < 25:
		c.do(&g, "request")
		return
	case p < 40 && len(c.old) > 0:
		g = c.old[c.rng.IntN(len(c.old))]
		c.write(&g)
		return
	case p < 70:
		if !c.do(&g, "acquire") {
			return
		}
		c.do(&g, "load")
	default:
		if !c.do(&g, "claim") {
			return
		}
	}
	for range 1 + c.rng.IntN(6) {
		c.write(&g)
		if c.chance(20) {
			c.late(&g)
		}
	}
	if c.chance(60) {
		c.do(&g, "release")
	}
	c.remember(g)
}

func (c *storeClient) remember(g grantSeen) {
	if c.old = append(c.old, g); len(c.old) > 16 {
		c.old = c.old[1:]
	}
}

// late writes with an older grant of the issue, that this very client had: whatever of it still uses
// that one has to be fenced, though it holds the issue.
func (c *storeClient) late(g *grantSeen) {
	for _, old := range c.old {
		if old.issue == g.issue && old.lease.Fence != g.lease.Fence {
			old.run, old.which = g.run, g.which
			c.do(&old, []string{"release", "renew", "save", "session"}[c.rng.IntN(4)])
			return
		}
	}
}

func (c *storeClient) look(g *grantSeen) {
	c.do(g, []string{"lease", "load", "cancel", "history"}[c.rng.IntN(4)])
}

// write does one thing under a lease, or takes a cancel when there is one.
func (c *storeClient) write(g *grantSeen) {
	switch p := c.rng.IntN(100); {
	case p < 25:
		c.do(g, "renew")
	case p < 60 && g.run.State != run.Canceled: // run.Apply lets nobody save what was canceled
		c.do(g, "save")
	case p < 65:
		c.do(g, "session")
	case p < 73:
		before := *g // it holds it, or has lost it
		if c.do(g, "acquire") {
			c.remember(before)
		}
	case p < 75:
		c.do(g, "release")
	case p < 85:
		c.look(g)
	default:
		if c.do(g, "load") && g.run.State.Live() && c.do(g, "cancel") {
			c.do(g, "take")
		}
	}
}

// do does one operation and records it. It returns whether it was done, or what was looked for is there.
func (c *storeClient) do(g *grantSeen, what string) bool {
	c.serial++
	in := asked{Do: what, Run: g.which, Holder: c.name, Fence: g.lease.Fence}
	switch what {
	case "acquire":
		in.Fence = 0
		if c.chance(3) {
			in.Dead = g.lease.Fence
		}
		in.TTL = time.Duration(3+c.rng.IntN(38)) * time.Second
	case "claim", "renew":
		in.TTL = time.Duration(3+c.rng.IntN(38)) * time.Second
	case "save":
		in.Rev, in.Live, in.Value = g.run.Revision, c.chance(80), fmt.Sprint(c.name, "-", c.serial)
	case "take":
		in.Rev = g.run.Revision
	case "request":
		in.Value = fmt.Sprint(c.name, "-", c.serial)
	}
	out, err := c.rec.Do(c.n, store.Key(linearRepo, g.issue), in, func() answered { return c.ask(g, in) })
	if c.err = errors.Join(c.err, err); out.Err == "unknown" {
		return false
	}
	return out.Err == "" && (what != "cancel" && what != "lease" || out.Held)
}

// ask calls the store.
func (c *storeClient) ask(g *grantSeen, in asked) answered {
	ctx, id := context.Background(), fmt.Sprintf("%d-%d", g.issue, in.Run)
	var out answered
	var err error
	switch in.Do {
	case "acquire", "claim", "renew":
		out, err = c.grant(ctx, g, in, id)
	case "release":
		err = c.s.Release(ctx, g.lease)
	case "save":
		next := g.run
		next.ID, next.Repo, next.Issue = id, linearRepo, g.issue
		next.Reason, next.State = in.Value, run.Implementing
		if !in.Live {
			next.State = run.Parked
		}
		out, err = c.save(ctx, g, next, run.Failed{Reason: in.Value})
	case "take":
		out, err = c.take(ctx, g, id)
	case "session":
		err = c.s.PutSession(ctx, g.lease, store.Session{ID: c.name + "-" + fmt.Sprint(c.serial), Run: id})
	case "request":
		err = c.s.RequestCancel(ctx, id, in.Value)
	default:
		out, err = c.read(ctx, g, in, id)
	}
	out.Err = c.word(err, &out)
	return out
}

func (c *storeClient) grant(ctx context.Context, g *grantSeen, in asked, id string) (answered, error) {
	var l run.Lease
	var err error
	var out answered
	h, key := run.Holder{ID: c.name}, store.Key(linearRepo, g.issue)
	switch in.Do {
	case "acquire":
		l, err = c.s.Acquire(ctx, h, key, in.TTL, in.Dead)
	case "renew":
		l, err = c.s.Renew(ctx, g.lease, in.TTL)
	default:
		var r run.Run
		l, r, err = c.s.Claim(ctx, h, run.Run{ID: id, Repo: linearRepo, Issue: g.issue, State: run.Queued}, in.TTL)
		if err == nil {
			g.run, out.Rev = r, r.Revision
		}
	}
	if err != nil {
		return answered{}, err
	}
	g.lease = l
	out.Holder, out.Fence, out.Granted, out.Expires = l.Holder.ID, l.Fence, l.Granted, l.Expires
	return out, nil
}

func (c *storeClient) save(ctx context.Context, g *grantSeen, next run.Run, e run.Event) (answered, error) {
	saved, err := c.s.Save(ctx, g.lease, next, e)
	if err != nil {
		return answered{}, err
	}
	if c.chance(80) { // else it goes on with what it had read before
		g.run = saved
	}
	return answered{Rev: saved.Revision}, nil
}

// take ends a run as the engine does when a cancel was asked for.
func (c *storeClient) take(ctx context.Context, g *grantSeen, id string) (answered, error) {
	reason, _, err := c.s.Cancel(ctx, id)
	if err != nil {
		return answered{}, err
	}
	e := run.CanceledBy{Reason: reason}
	next, _, err := run.Apply(g.run, e)
	if err != nil {
		return answered{}, err
	}
	return c.save(ctx, g, next, e)
}

func (c *storeClient) read(ctx context.Context, g *grantSeen, in asked, id string) (out answered, err error) {
	switch in.Do {
	case "lease":
		var l run.Lease
		l, out.Held, err = c.s.Lease(ctx, store.Key(linearRepo, g.issue))
		out.Holder, out.Fence, out.Granted, out.Expires = l.Holder.ID, l.Fence, l.Granted, l.Expires
	case "load":
		var r run.Run
		if r, err = c.s.Load(ctx, id); err == nil {
			g.run = r
		}
		out.Rev, out.Live, out.Value = r.Revision, r.State.Live(), r.Reason
	case "cancel":
		out.Value, out.Held, err = c.s.Cancel(ctx, id)
	case "history":
		var h store.History
		h, err = c.s.History(ctx, id)
		out.Rev = int64(len(h.Events)) + 1 // the insertion has none
		for _, e := range h.Events {
			if e.Kind == (run.CanceledBy{}).Kind() {
				out.Cancels++
			}
		}
	}
	return out, err
}

// word is an error as the model knows it. What is none of the contract's leaves the outcome open, and
// ends the client: nothing here may lead to that.
func (c *storeClient) word(err error, out *answered) string {
	held, isHeld := errors.AsType[*store.HeldError](err)
	switch {
	case err == nil:
		return ""
	case isHeld:
		*out = answered{Holder: held.Lease.Holder.ID, Fence: held.Lease.Fence, Granted: held.Lease.Granted, Expires: held.Lease.Expires, Free: held.Free}
		return "held"
	case errors.Is(err, store.ErrFenced):
		return "fenced"
	case errors.Is(err, store.ErrStale):
		return "stale"
	case errors.Is(err, store.ErrDuplicate):
		return "duplicate"
	case errors.Is(err, store.ErrNotFound):
		return "not found"
	}
	c.err = errors.Join(c.err, fmt.Errorf("an answer that is none of the contract's: %w", err))
	return "unknown"
}

// kindOf is which of the counts an operation belongs to.
func kindOf(in asked) string {
	switch in.Do {
	case "acquire", "renew", "release", "lease":
		return "leases"
	case "request", "cancel", "take":
		return "cancels"
	}
	return "saves"
}
