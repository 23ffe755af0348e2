package forge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"interlock/internal/failpoint"
	"interlock/internal/git"
)

const (
	claimPause = 200 * time.Millisecond // longest pause before another round
	chainDeep  = 200                    // commits of a chain that are looked back through
)

// parse turns a commit of our own repository into a claim, damaged or not.
func (c *Claims) parse(ctx context.Context, issue int64, ref string, commit git.Commit) (Claim, error) {
	cl := Claim{Issue: issue, Ref: ref, Hash: commit.Hash}
	rec, err := c.record(ctx, commit.Hash)
	if errors.As(err, new(*damage)) {
		cl.Damage = err.Error()
		return cl, nil
	}
	if err != nil {
		return Claim{}, err
	}
	cl.Nonce, cl.Installation, cl.Generation, cl.Process = rec.Nonce, rec.Installation, rec.Generation, rec.by()
	cl.Holder, cl.Released = OneLine(rec.Holder, maxHolder), rec.State == stateReleased
	before := int64(0)
	for _, hash := range commit.Parents {
		parent, err := c.record(ctx, hash)
		if err == nil && parent.Issue != issue {
			err = &damage{fmt.Errorf("it follows a claim of issue %d", parent.Issue)}
		}
		switch {
		case err != nil && !errors.As(err, new(*damage)):
			return Claim{}, err
		case err != nil && len(commit.Parents) > 1:
			cl.Damage = "it has more than one parent, and not all are claims"
		}
		before = max(before, parent.Generation)
	}
	switch {
	case commit.Tree != emptyTree:
		cl.Damage = "it holds files"
	case rec.Issue != issue:
		cl.Damage = fmt.Sprintf("it is of issue %d", rec.Issue)
	case rec.Generation != before+1:
		cl.Damage = fmt.Sprintf("its generation %d does not follow %d", rec.Generation, before)
	}
	return cl, nil
}

// damage is why a commit is no claim, as opposed to why it could not be read at all.
type damage struct{ error }

func (c *Claims) record(ctx context.Context, hash string) (record, error) {
	message, _, err := c.Repo.Message(ctx, hash)
	if errors.Is(err, git.ErrTooBig) {
		return record{}, &damage{errors.New("its message is too big")}
	}
	if err != nil {
		return record{}, fmt.Errorf("read claim %.12s: %w", hash, err)
	}
	rec, err := parseRecord(message)
	if err != nil {
		return record{}, &damage{err}
	}
	return rec, nil
}

// ours reports whether a claim is one that this installation made with this nonce.
func (c *Claims) ours(cl Claim, nonce string) bool {
	return cl.Damage == "" && cl.Nonce == nonce && cl.Installation == c.Installation
}

// mine returns the claim of a survey that is cl or a descendant of it with our nonce, and held;
// else ErrLost. With adopt, other processes of this installation may have written it.
func (c *Claims) mine(ctx context.Context, s survey, cl Claim, adopt bool) (Claim, error) {
	cur, there := s.own(c, cl.Nonce)
	if !there {
		if cur, there = s.decides(); cur.Wiped {
			cur, there = Claim{}, false
		}
	}
	if err := c.lost(ctx, cl, cur, there, adopt); err != nil {
		return Claim{}, err
	}
	if cur.Released {
		return Claim{}, &LostError{Issue: cl.Issue, Claim: cur, Why: "it was given back"}
	}
	return cur, nil
}

// lost returns nil when the claim that is there is cl or a descendant of it with our nonce,
// written by this process or, with adopt, by any of this installation.
func (c *Claims) lost(ctx context.Context, cl, cur Claim, there, adopt bool) error {
	lose := func(why string) error { return &LostError{Issue: cl.Issue, Claim: cur, Why: why} }
	switch {
	case !there:
		return lose("the claim ref is gone from the remote")
	case cur.Damage != "":
		return lose("it is held by " + cur.who())
	case !c.ours(cur, cl.Nonce) && cur.Released:
		return lose(fmt.Sprintf("it was given up by %s, generation %d", cur.who(), cur.Generation))
	case !c.ours(cur, cl.Nonce):
		return lose(fmt.Sprintf("it is claimed by %s, generation %d", cur.who(), cur.Generation))
	case cl.Hash == "" || cl.Hash == cur.Hash:
		return nil
	}
	descends, err := c.descends(ctx, cl.Hash, cur.Hash)
	if err != nil {
		return err
	}
	if !descends {
		return lose(fmt.Sprintf("somebody moved the claim ref to %.12s, which does not descend from %.12s", cur.Hash, cl.Hash))
	}
	if adopt || c.Process == "" {
		return nil
	}
	other, err := c.back(ctx, cur.Hash, cl.Hash, func(r record) bool { return r.by() != c.Process })
	if err != nil || other == "" {
		return err
	}
	return lose(fmt.Sprintf("another process of this installation has gone on with it (%.12s)", other))
}

// descends is false, too, for a commit that our repository does not have.
func (c *Claims) descends(ctx context.Context, old, hash string) (bool, error) {
	for _, h := range []string{old, hash} {
		if _, err := c.Repo.Resolve(ctx, h); errors.Is(err, git.ErrNoCommit) {
			return false, nil
		}
	}
	ok, err := c.Repo.IsAncestor(ctx, old, hash)
	if err != nil {
		return false, fmt.Errorf("compare claims: %w", err)
	}
	return ok, nil
}

// back walks from a claim towards an older one and returns the first commit for which found is
// true, "" if there is none above the older one. Where namespaces were joined it follows the side
// that leads to the older one.
func (c *Claims) back(ctx context.Context, hash, old string, found func(record) bool) (string, error) {
	for range chainDeep {
		if hash == old || hash == "" {
			return "", nil
		}
		message, parents, err := c.Repo.Message(ctx, hash)
		if err != nil {
			return "", fmt.Errorf("read claim %.12s: %w", hash, err)
		}
		if rec, err := parseRecord(message); err == nil && found(rec) {
			return hash, nil
		}
		hash = ""
		for _, p := range parents {
			if ok, err := c.descends(ctx, old, p); len(parents) == 1 || err == nil && ok {
				hash = p
				break
			}
		}
	}
	return hash, nil // too long to be looked through: what is found there is not ours to trust
}

// releasedSince looks down the chain from what is there now to what we knew for our own release:
// then others have it by right, and there is nothing left to give back.
func (c *Claims) releasedSince(ctx context.Context, cl, cur Claim) bool {
	if cl.Hash == "" || cur.Hash == "" {
		return false
	}
	if ok, err := c.descends(ctx, cl.Hash, cur.Hash); err != nil || !ok {
		return false
	}
	at, err := c.back(ctx, cur.Hash, cl.Hash, func(r record) bool { return r.Nonce == cl.Nonce && r.Installation == c.Installation })
	if err != nil || at == "" {
		return false
	}
	rec, err := c.record(ctx, at)
	return err == nil && rec.Nonce == cl.Nonce && rec.State == stateReleased
}

// Previous returns the claim that was there before cl's nonce took its place, if there was one.
func (c *Claims) Previous(ctx context.Context, cl Claim) (Claim, bool, error) {
	at, err := c.back(ctx, cl.Hash, "", func(r record) bool { return r.Nonce != cl.Nonce })
	if err != nil || at == "" {
		return Claim{}, false, err
	}
	commit, err := c.Repo.Resolve(ctx, at)
	if err != nil {
		return Claim{}, false, fmt.Errorf("read claim %.12s: %w", at, err)
	}
	prev, err := c.parse(ctx, cl.Issue, cl.Ref, commit)
	return prev, err == nil && prev.Damage == "", err
}

// child writes the commit that follows cur, in our own repository only. It also follows over, if
// that is given, and those of the others that have a higher generation: what was known anywhere
// never goes back.
func (c *Claims) child(ctx context.Context, cur, over Claim, nonce, holder, state string, others ...Claim) (Claim, error) {
	parents, generation, err := c.parents(ctx, cur, over, others)
	if err != nil {
		return Claim{}, err
	}
	now := time.Now
	if c.Now != nil {
		now = c.Now
	}
	at := now().UTC()
	next := Claim{
		Issue: cur.Issue, Ref: cur.Ref, Nonce: nonce, Installation: c.Installation, Process: c.Process,
		Holder: OneLine(holder, maxHolder), Generation: generation + 1, Released: state == stateReleased,
	}
	rec := record{
		Version: 1, Issue: cur.Issue, Nonce: nonce, Installation: c.Installation, Holder: next.Holder,
		Generation: next.Generation, State: state, Time: at.Format(time.RFC3339), ID: rand.Text(),
	}
	if c.Process != "" {
		rec.ID = c.Process + "/" + rec.ID
	}
	if err := rec.check(); err != nil {
		return Claim{}, fmt.Errorf("claim of issue %d: %w: %w", cur.Issue, ErrInvalid, err)
	}
	message, err := rec.message()
	if err != nil {
		return Claim{}, err
	}
	spec := git.CommitSpec{Message: message, When: at, Parents: parents}
	if next.Hash, err = c.Repo.WriteCommit(ctx, spec); err != nil {
		return Claim{}, fmt.Errorf("write the claim of issue %d: %w", cur.Issue, err)
	}
	return next, nil
}

// parents chooses what a new claim follows, and the highest generation among it.
func (c *Claims) parents(ctx context.Context, cur, over Claim, others []Claim) (hashes []string, generation int64, err error) {
	if over.Hash != "" && over.Hash != cur.Hash && over.Damage == "" {
		others = append([]Claim{over}, others...)
	}
	var f following
	if cur.Hash != "" && cur.Damage == "" {
		f = following{[]string{cur.Hash}, cur.Generation}
	}
	for i, o := range others {
		if o.Hash != "" && o.Damage == "" && (o.Generation > f.generation || i == 0 && o.Hash == over.Hash) {
			if err := f.add(ctx, c, o); err != nil {
				return nil, 0, err
			}
		}
	}
	if len(f.hashes) == 0 && cur.Hash != "" {
		return c.damagedParent(ctx, cur)
	}
	return f.hashes, f.generation, nil
}

// following is what a new claim follows. None of it descends from another.
type following struct {
	hashes     []string
	generation int64 // the highest
}

// add takes a claim in, unless what is there descends from it; what it descends from gives way.
func (f *following) add(ctx context.Context, c *Claims, cl Claim) error {
	for i, have := range f.hashes {
		if ok, err := c.descends(ctx, cl.Hash, have); err != nil || ok {
			return err
		}
		ok, err := c.descends(ctx, have, cl.Hash)
		if err != nil {
			return err
		}
		if ok {
			f.hashes[i], f.generation = cl.Hash, max(f.generation, cl.Generation)
			return nil
		}
	}
	f.hashes, f.generation = append(f.hashes, cl.Hash), max(f.generation, cl.Generation)
	return nil
}

// damagedParent is what is followed where all that is there is damaged: a commit, so that a branch
// can be moved on; nothing where it is none.
func (c *Claims) damagedParent(ctx context.Context, cur Claim) (hashes []string, generation int64, err error) {
	if _, err := c.Repo.Resolve(ctx, cur.Hash); err != nil {
		return nil, 0, nil
	}
	rec, err := c.record(ctx, cur.Hash)
	if err != nil && !errors.As(err, new(*damage)) {
		return nil, 0, err
	}
	return []string{cur.Hash}, rec.Generation, nil
}

func update(next Claim, old string) git.Update {
	return git.Update{Ref: next.Ref, New: next.Hash, Old: old}
}

// push pushes all or nothing and puts a failure into one of the classes of this package. what names
// the write for those who make it fail.
func (c *Claims) push(ctx context.Context, what string, updates ...git.Update) (git.PushReport, error) {
	failpoint.Here("before push " + what)
	report, err := c.Repo.Push(ctx, git.PushSpec{Remote: c.Remote, Updates: updates})
	failpoint.Here("after push " + what)
	if err == nil {
		err = failpoint.Fault("push " + what)
	}
	switch {
	case err == nil, errors.Is(err, git.ErrStaleRef), errors.Is(err, git.ErrLocked),
		errors.Is(err, git.ErrInvalid), errors.Is(err, git.ErrNoCommit):
		return report, err // nothing was moved, or all
	case errors.Is(err, git.ErrRefused):
		if report.Remote != "" {
			err = fmt.Errorf("%w (the remote says: %s)", err, report.Remote)
		}
		return report, fmt.Errorf("%w: %w", ErrDenied, err)
	}
	return report, fmt.Errorf("%w: %w", ErrUnknown, err)
}

// again reports whether to read back what is there and decide by that.
func again(err error) bool {
	return errors.Is(err, git.ErrStaleRef) || errors.Is(err, git.ErrLocked) || errors.Is(err, ErrUnknown)
}

// afterPush says that the outcome is unknown where reading back failed after an unknown push.
func afterPush(last, err error) error {
	if errors.Is(last, ErrUnknown) && !errors.Is(err, ErrUnknown) {
		return fmt.Errorf("%w: %w; reading back: %w", ErrUnknown, last, err)
	}
	return err
}

// pause waits a random moment before each round but the first.
func pause(ctx context.Context, try int) {
	if try == 0 {
		return
	}
	timer := time.NewTimer(mathrand.N(claimPause))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
