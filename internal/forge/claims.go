package forge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"interlock/internal/git"
)

const (
	claimPrefix = "refs/interlock/claims/"
	// seenPrefix holds, in the engine's own repository, the claims that were read.
	seenPrefix = "refs/interlock/seen/claims/"
	// claimTries bounds the rounds of one call: each but the first follows a push that met another
	// one or whose answer was lost.
	claimTries = 5
	claimPause = 200 * time.Millisecond // longest pause before another round
)

// Claims makes, renews and gives back claim refs on a remote. It is the one implementation for
// all forges. Every write is a new commit, the child of the last, pushed with the old hash
// expected: so exactly one of many pushers wins, and generations only rise. Refs are never
// deleted here. Claims protect installations that follow the same rules from each other, not
// from a writer who forces a ref; a forced or deleted ref is noticed.
//
// Methods may be called by many goroutines and processes.
type Claims struct {
	Repo         *git.Repo        // the engine's repository for this forge repository
	Remote       string           // URL or path that git pushes to
	Installation string           // names this state directory among others
	Now          func() time.Time // nil means time.Now; shown to people, decides nothing
	Git          *git.Git         // nil: found in PATH at the first use

	find  sync.Once
	found *git.Git
	fault error
}

// Ref returns the name of an issue's claim ref.
func (c *Claims) Ref(issue int64) string { return claimPrefix + strconv.FormatInt(issue, 10) }

// Read returns the claim of an issue as the remote has it now, and whether there is one. What is
// there but cannot be read as a claim is returned with Damage set.
func (c *Claims) Read(ctx context.Context, issue int64) (Claim, bool, error) {
	ref := c.Ref(issue)
	refs, err := c.remote(ctx, ref)
	if err != nil {
		return Claim{}, false, err
	}
	return c.look(ctx, issue, refs[ref])
}

// Take makes the claim of an issue ours. An absent or released claim is taken; one that carries
// our nonce is ours from an earlier call whose answer was lost, and is renewed; any other is a
// *HeldError. ErrDenied: the remote refuses, nothing was written. ErrUnknown: call again with the
// same nonce.
func (c *Claims) Take(ctx context.Context, issue int64, nonce, holder string) (Claim, error) {
	if issue <= 0 || !token(nonce) || !token(c.Installation) {
		return Claim{}, fmt.Errorf("take the claim of issue %d: %w: number, nonce or installation is malformed", issue, ErrInvalid)
	}
	var next Claim
	var last error
	for try := range claimTries {
		pause(ctx, try)
		cur, there, err := c.Read(ctx, issue)
		if err != nil {
			return Claim{}, afterPush(last, err)
		}
		if next.Hash != "" && cur.Hash == next.Hash {
			return next, nil
		}
		if there && !cur.Free() && !c.ours(cur, nonce) {
			return Claim{}, &HeldError{Issue: issue, Claim: cur}
		}
		next, err = c.child(ctx, issue, cur, nonce, holder, stateHeld)
		if err != nil {
			return Claim{}, err
		}
		if _, last = c.push(ctx, update(next, cur.Hash)); last == nil {
			return next, nil
		}
		if !again(last) {
			return Claim{}, fmt.Errorf("take the claim of issue %d: %w", issue, last)
		}
	}
	return Claim{}, fmt.Errorf("take the claim of issue %d: %w", issue, last)
}

// Renew puts a new commit on a claim that is ours, so that others see it move. The claim that is
// returned must be kept: it is what the next call expects. When the ref is not where it was
// left, it is still ours if it carries our nonce and descends from what we knew; else ErrLost.
func (c *Claims) Renew(ctx context.Context, cl Claim, holder string) (Claim, error) {
	next, _, err := c.advance(ctx, cl, holder, nil)
	return next, err
}

// Restore puts a claim of ours back whose ref was wiped from the remote, as the child of the last
// commit that is known, so that generations go on rising. A ref that is there is left alone and
// returned if it is ours; else ErrLost.
func (c *Claims) Restore(ctx context.Context, cl Claim, holder string) (Claim, error) {
	var last error
	for try := range claimTries {
		pause(ctx, try)
		cur, there, err := c.Read(ctx, cl.Issue)
		if err != nil {
			return Claim{}, afterPush(last, err)
		}
		if there {
			return cur, c.lost(ctx, cl, cur, there)
		}
		next, err := c.child(ctx, cl.Issue, cl, cl.Nonce, holder, stateHeld)
		if err != nil {
			return Claim{}, err
		}
		if _, last = c.push(ctx, update(next, "")); last == nil {
			return next, nil
		}
		if !again(last) {
			break
		}
	}
	return Claim{}, fmt.Errorf("restore the claim of issue %d: %w", cl.Issue, last)
}

// Release gives a claim back. It looks first: a claim that is released already, also one that
// others have taken since, is settled; one that is not ours any more is ErrLost.
func (c *Claims) Release(ctx context.Context, cl Claim) error {
	var last error
	for try := range claimTries {
		pause(ctx, try)
		cur, there, err := c.Read(ctx, cl.Issue)
		if err != nil {
			return afterPush(last, err)
		}
		if lost := c.lost(ctx, cl, cur, there); lost != nil {
			if c.releasedSince(ctx, cl, cur) {
				return nil
			}
			return lost
		}
		if cur.Released {
			return nil
		}
		next, err := c.child(ctx, cl.Issue, cur, cl.Nonce, cur.Holder, stateReleased)
		if err != nil {
			return err
		}
		if _, last = c.push(ctx, update(next, cur.Hash)); last == nil {
			return nil
		}
		if !again(last) {
			break
		}
	}
	return fmt.Errorf("release the claim of issue %d: %w", cl.Issue, last)
}

// remote lists refs of the remote.
func (c *Claims) remote(ctx context.Context, refs ...string) (map[string]string, error) {
	c.find.Do(func() {
		if c.found = c.Git; c.found == nil {
			c.found, c.fault = git.Find(context.WithoutCancel(ctx))
		}
	})
	if c.fault != nil {
		return nil, c.fault
	}
	at, err := c.found.LsRemote(ctx, c.Remote, refs...)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", strings.Join(refs, " and "), err)
	}
	return at, nil
}

// look reads the commit that the claim ref is at, from our own repository if it is there already.
func (c *Claims) look(ctx context.Context, issue int64, hash string) (Claim, bool, error) {
	if hash == "" {
		return Claim{}, false, nil
	}
	cl := Claim{Issue: issue, Ref: c.Ref(issue), Hash: hash}
	commit, err := c.Repo.Resolve(ctx, hash)
	if err != nil {
		commit, err = c.Repo.FetchRef(ctx, c.Remote, cl.Ref, seenPrefix+strconv.FormatInt(issue, 10))
	}
	if errors.Is(err, git.ErrNoRef) || err == nil && commit.Hash != hash {
		// It moved or went since it was listed, or it is no commit: that must not pass for free.
		now, err := c.remote(ctx, cl.Ref)
		if err != nil {
			return Claim{}, false, err
		}
		if now[cl.Ref] != hash {
			return c.look(ctx, issue, now[cl.Ref])
		}
		cl.Damage = "it is not a commit, or the remote is shallow"
		return cl, true, nil
	}
	if err != nil {
		return Claim{}, false, fmt.Errorf("read %s: %w", cl.Ref, err)
	}
	cl, err = c.parse(ctx, issue, commit)
	return cl, err == nil, err
}

// parse turns a commit of our own repository into a claim, damaged or not.
func (c *Claims) parse(ctx context.Context, issue int64, commit git.Commit) (Claim, error) {
	cl := Claim{Issue: issue, Ref: c.Ref(issue), Hash: commit.Hash}
	rec, err := c.record(ctx, commit.Hash)
	if errors.As(err, new(*damage)) {
		cl.Damage = err.Error()
		return cl, nil
	}
	if err != nil {
		return Claim{}, err
	}
	cl.Nonce, cl.Installation, cl.Generation = rec.Nonce, rec.Installation, rec.Generation
	cl.Holder, cl.Released = OneLine(rec.Holder, maxHolder), rec.State == stateReleased
	before := int64(0)
	if len(commit.Parents) == 1 {
		parent, err := c.record(ctx, commit.Parents[0])
		if err != nil && !errors.As(err, new(*damage)) {
			return Claim{}, err
		}
		before = parent.Generation
	}
	switch {
	case commit.Tree != emptyTree:
		cl.Damage = "it holds files"
	case len(commit.Parents) > 1:
		cl.Damage = "it has more than one parent"
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

// lost returns nil when the claim that is there is cl or a descendant of it with our nonce.
func (c *Claims) lost(ctx context.Context, cl, cur Claim, there bool) error {
	lose := func(why string) error { return &LostError{Issue: cl.Issue, Claim: cur, Why: why} }
	switch {
	case !there:
		return lose("the claim ref is gone from the remote")
	case cur.Damage != "":
		return lose("it is held by " + cur.who())
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
	return nil
}

// descends is false, too, for a commit that our repository does not have.
func (c *Claims) descends(ctx context.Context, old, hash string) (bool, error) {
	if _, err := c.Repo.Resolve(ctx, old); errors.Is(err, git.ErrNoCommit) {
		return false, nil
	}
	ok, err := c.Repo.IsAncestor(ctx, old, hash)
	if err != nil {
		return false, fmt.Errorf("compare claims: %w", err)
	}
	return ok, nil
}

// releasedSince looks down the chain from what is there now to what we knew for our own release:
// then others have it by right, and there is nothing left to give back.
func (c *Claims) releasedSince(ctx context.Context, cl, cur Claim) bool {
	const deep = 200
	if cl.Hash == "" || cur.Hash == "" {
		return false
	}
	if ok, err := c.descends(ctx, cl.Hash, cur.Hash); err != nil || !ok {
		return false
	}
	hash := cur.Hash
	for range deep {
		message, parents, err := c.Repo.Message(ctx, hash)
		if err != nil {
			return false
		}
		rec, err := parseRecord(message)
		if err == nil && rec.Nonce == cl.Nonce && rec.Installation == c.Installation {
			return rec.State == stateReleased
		}
		if len(parents) != 1 || hash == cl.Hash {
			return false
		}
		hash = parents[0]
	}
	return false
}

// child writes the commit that follows cur, in our own repository only.
func (c *Claims) child(ctx context.Context, issue int64, cur Claim, nonce, holder, state string) (Claim, error) {
	now := time.Now
	if c.Now != nil {
		now = c.Now
	}
	at := now().UTC()
	next := Claim{
		Issue: issue, Ref: c.Ref(issue), Nonce: nonce, Installation: c.Installation,
		Holder: OneLine(holder, maxHolder), Generation: cur.Generation + 1, Released: state == stateReleased,
	}
	rec := record{
		Version: 1, Issue: issue, Nonce: nonce, Installation: c.Installation, Holder: next.Holder,
		Generation: next.Generation, State: state, Time: at.Format(time.RFC3339), ID: rand.Text(),
	}
	if err := rec.check(); err != nil {
		return Claim{}, fmt.Errorf("claim of issue %d: %w: %w", issue, ErrInvalid, err)
	}
	message, err := rec.message()
	if err != nil {
		return Claim{}, err
	}
	spec := git.CommitSpec{Message: message, When: at}
	if cur.Hash != "" {
		spec.Parents = []string{cur.Hash}
	}
	if next.Hash, err = c.Repo.WriteCommit(ctx, spec); err != nil {
		return Claim{}, fmt.Errorf("write the claim of issue %d: %w", issue, err)
	}
	return next, nil
}

func update(next Claim, old string) git.Update {
	return git.Update{Ref: next.Ref, New: next.Hash, Old: old}
}

// push pushes all or nothing and puts a failure into one of the classes of this package.
func (c *Claims) push(ctx context.Context, updates ...git.Update) (git.PushReport, error) {
	report, err := c.Repo.Push(ctx, git.PushSpec{Remote: c.Remote, Updates: updates})
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
