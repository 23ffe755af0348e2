package forge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"interlock/internal/git"
)

// Namespaces are the two places where a claim may be. The first is out of everybody's way; the
// second is for remotes that refuse all but branches. Both are always read: a claim in either
// excludes the other. One of the two that descends from the other counts alone.
var Namespaces = [2]string{"refs/interlock/claims/", "refs/heads/interlock/claims/"}

const (
	// seenPrefix holds, in the engine's own repository, the claims that were read, newestPrefix of
	// each issue the one with the highest generation.
	seenPrefix   = "refs/interlock/seen/claims/"
	newestPrefix = "refs/interlock/seen/newest/"
	// fallbackRef is there when the remote was seen to refuse the first namespace.
	fallbackRef = "refs/interlock/seen/fallback"
)

func refIn(space int, issue int64) string {
	return Namespaces[space] + strconv.FormatInt(issue, 10)
}

// survey is all that is known of the claim of one issue at one moment.
type survey struct {
	issue int64
	at    [2]Claim          // what the ref of each namespace is at; Hash "" if it is not there
	past  [2]bool           // the other one descends from it
	seen  Claim             // the newest that was ever seen, in our own repository
	refs  map[string]string // other refs of the remote that were asked for
}

// survey reads both namespaces, and other refs, in one go.
func (c *Claims) survey(ctx context.Context, issue int64, also ...string) (survey, error) {
	refs, err := c.remote(ctx, append(also, refIn(0, issue), refIn(1, issue))...)
	if err != nil {
		return survey{}, err
	}
	return c.surveyOf(ctx, issue, refs)
}

func (c *Claims) surveyOf(ctx context.Context, issue int64, refs map[string]string) (survey, error) {
	s := survey{issue: issue, refs: refs}
	for i := range s.at {
		cl, there, err := c.look(ctx, issue, i, refs[refIn(i, issue)])
		if err != nil {
			return survey{}, err
		}
		if there {
			s.at[i] = cl
			c.note(ctx, cl)
		}
	}
	if s.at[0].Hash != "" && s.at[1].Hash != "" {
		for i := range s.at {
			ok, err := c.descends(ctx, s.at[i].Hash, s.at[1-i].Hash)
			if err != nil {
				return survey{}, err
			}
			s.past[i] = ok && s.at[i].Hash != s.at[1-i].Hash
		}
	}
	var err error
	s.seen, err = c.newest(ctx, issue)
	return s, err
}

// any reports whether the remote has a claim ref of the issue at all.
func (s survey) any() bool { return s.at[0].Hash != "" || s.at[1].Hash != "" }

// place is what is in one namespace, with its name also where nothing is there.
func (s survey) place(space int) Claim {
	cl := s.at[space]
	cl.Issue, cl.Ref = s.issue, refIn(space, s.issue)
	return cl
}

// counts returns the claims that count now.
func (s survey) counts() []Claim {
	var all []Claim
	for i, cl := range s.at {
		if cl.Hash != "" && !s.past[i] {
			all = append(all, cl)
		}
	}
	return all
}

// decides returns the claim that says who may work the issue: one that is held before one that is
// free, and what was seen held where the remote has nothing any more.
func (s survey) decides() (Claim, bool) {
	var free Claim
	for _, cl := range s.counts() {
		if !cl.Free() {
			return cl, true
		}
		if free.Hash == "" || cl.Generation > free.Generation {
			free = cl
		}
	}
	if free.Hash == "" && s.seen.Hash != "" && !s.seen.Free() {
		wiped := s.seen
		wiped.Wiped = true
		return wiped, true
	}
	return free, free.Hash != ""
}

// own returns the claim that carries our nonce: a held one before one that was given back.
func (s survey) own(c *Claims, nonce string) (Claim, bool) {
	var own Claim
	for _, cl := range s.counts() {
		if !c.ours(cl, nonce) {
			continue
		}
		if own.Hash == "" || own.Released && !cl.Released || own.Released == cl.Released && cl.Generation > own.Generation {
			own = cl
		}
	}
	return own, own.Hash != ""
}

// twice reports whether both namespaces hold a claim with our nonce: a push whose answer was lost
// may arrive late.
func (s survey) twice(c *Claims, nonce string) bool {
	held := 0
	for _, cl := range s.counts() {
		if c.ours(cl, nonce) && !cl.Released {
			held++
		}
	}
	return held > 1
}

// rival returns a claim that is held by anybody but this nonce.
func (s survey) rival(c *Claims, nonce string) (Claim, bool) {
	for _, cl := range s.counts() {
		if !cl.Free() && !c.ours(cl, nonce) {
			return cl, true
		}
	}
	return Claim{}, false
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

// look reads the commit that a claim ref is at, from our own repository if it is there already.
func (c *Claims) look(ctx context.Context, issue int64, space int, hash string) (Claim, bool, error) {
	if hash == "" {
		return Claim{}, false, nil
	}
	cl := Claim{Issue: issue, Ref: refIn(space, issue), Hash: hash}
	if known, ok := c.known.Load(cl.Ref + hash); ok {
		return known.(Claim), true, nil
	}
	commit, err := c.Repo.Resolve(ctx, hash)
	if err != nil {
		commit, err = c.Repo.FetchRef(ctx, c.Remote, cl.Ref, seenPrefix+fmt.Sprintf("%d/%d", space, issue))
	}
	if errors.Is(err, git.ErrNoRef) || err == nil && commit.Hash != hash {
		// It moved or went since it was listed, or it is no commit: that must not pass for free.
		now, err := c.remote(ctx, cl.Ref)
		if err != nil {
			return Claim{}, false, err
		}
		if now[cl.Ref] != hash {
			return c.look(ctx, issue, space, now[cl.Ref])
		}
		cl.Damage = "it is not a commit, or the remote is shallow"
		return cl, true, nil
	}
	if err != nil {
		return Claim{}, false, fmt.Errorf("read %s: %w", cl.Ref, err)
	}
	if cl, err = c.parse(ctx, issue, cl.Ref, commit); err != nil {
		return Claim{}, false, err
	}
	c.known.Store(cl.Ref+hash, cl)
	return cl, true, nil
}

// newest returns the claim of an issue with the highest generation that this installation has
// seen or written; its Hash is "" if there was none.
func (c *Claims) newest(ctx context.Context, issue int64) (Claim, error) {
	commit, err := c.Repo.Resolve(ctx, newestPrefix+strconv.FormatInt(issue, 10))
	if errors.Is(err, git.ErrNoCommit) {
		return Claim{}, nil
	}
	if err != nil {
		return Claim{}, fmt.Errorf("read the claim of issue %d that was seen last: %w", issue, err)
	}
	for space := range Namespaces { // where it was is not kept: what it says is the same
		if known, ok := c.known.Load(refIn(space, issue) + commit.Hash); ok {
			return known.(Claim), nil
		}
	}
	return c.parse(ctx, issue, refIn(0, issue), commit)
}

// note keeps a claim as the newest if its generation is the highest. What is not noted costs only
// what could be known after a wipe, so that a failure is no failure of the caller's.
func (c *Claims) note(ctx context.Context, cl Claim) {
	if cl.Damage != "" {
		return
	}
	c.known.Store(cl.Ref+cl.Hash, cl)
	old, err := c.newest(ctx, cl.Issue)
	if err != nil || old.Generation >= cl.Generation && old.Damage == "" {
		return
	}
	_ = c.Repo.Pin(ctx, newestPrefix+strconv.FormatInt(cl.Issue, 10), cl.Hash)
}

// remembered returns the namespace to begin with: the second one if the first was refused before.
func (c *Claims) remembered(ctx context.Context) int {
	if _, err := c.Repo.Resolve(ctx, fallbackRef); err == nil {
		return 1
	}
	return 0
}

// remember keeps which namespace was accepted after the other one was refused.
func (c *Claims) remember(ctx context.Context, space int, cl Claim) {
	if space == 1 {
		_ = c.Repo.Pin(ctx, fallbackRef, cl.Hash)
		return
	}
	if old, err := c.Repo.Resolve(ctx, fallbackRef); err == nil {
		_ = c.Repo.UpdateRefs(ctx, git.Update{Ref: fallbackRef, Old: old.Hash})
	}
}

// List returns the deciding claim of every issue that has one, lowest issue first: also those that
// were seen held and are gone from the remote.
func (c *Claims) List(ctx context.Context) ([]Claim, error) {
	refs, err := c.remote(ctx, Namespaces[0], Namespaces[1])
	if err != nil {
		return nil, err
	}
	seen, err := c.Repo.Refs(ctx, newestPrefix)
	if err != nil {
		return nil, fmt.Errorf("list the claims that were seen: %w", err)
	}
	issues := map[int64]bool{}
	for _, names := range []map[string]string{refs, seen} {
		for ref := range names {
			for _, prefix := range []string{Namespaces[0], Namespaces[1], newestPrefix} {
				text, ok := strings.CutPrefix(ref, prefix)
				if n, err := strconv.ParseInt(text, 10, 64); ok && err == nil && n > 0 && strconv.FormatInt(n, 10) == text {
					issues[n] = true
				}
			}
		}
	}
	all := []Claim{}
	for _, issue := range slices.Sorted(maps.Keys(issues)) {
		s, err := c.surveyOf(ctx, issue, refs)
		if err != nil {
			return nil, err
		}
		if cl, there := s.decides(); there {
			all = append(all, cl)
		}
	}
	return all, nil
}
