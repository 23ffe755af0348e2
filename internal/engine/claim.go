package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"interlock/internal/claim"
	"interlock/internal/forge"
	"interlock/internal/git"
	"interlock/internal/git/traits"
	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/text"
	"interlock/internal/workspace"
)

// open begins a new run: it looks at the issue and the base, takes the lease together with the
// run's row, and drives the run.
func (e *Engine) open(ctx context.Context, t *task, issue int64, last *run.Run) (run.Run, error) {
	r, err := e.draft(ctx, t, issue)
	if err != nil {
		return run.Run{}, err
	}
	if err := e.look.Proposed(ctx, issue); err != nil {
		return run.Run{}, err
	}
	if err := e.Ready(ctx); err != nil {
		return run.Run{}, err
	}
	if err := e.look.Claimable(ctx, issue); err != nil {
		return run.Run{}, err
	}
	if err := e.look.Spent(&r, last); err != nil {
		return run.Run{}, err
	}
	base, err := e.findBase(ctx, t.Base, r.ID)
	if err != nil {
		return run.Run{}, err
	}
	if why := inherit(&r, last, base); why != "" {
		e.say(r, "built before", "%s", why)
	}
	if err := e.pin(ctx, &r); err != nil {
		return run.Run{}, err
	}
	e.warnDirty(ctx, r)
	start := e.Clock.Now()
	l, r, err := e.Store.Claim(ctx, e.Holder, r, run.LeaseTTL)
	if err != nil {
		return run.Run{}, e.heldBy(ctx, issue, "", err)
	}
	return e.driveUnder(ctx, t, r, l, start, func(h *hold, r run.Run) (run.Run, error) {
		return e.claimed(h, r, base)
	})
}

// warnDirty says that what is not committed in the operator's work tree is not part of the base.
func (e *Engine) warnDirty(ctx context.Context, r run.Run) {
	if e.Worktree == "" {
		return
	}
	dirty, err := e.Git.At(e.Worktree).Status(ctx)
	switch {
	case err != nil:
		e.say(r, "warning", "the work tree %s could not be looked at: %v", e.Worktree, err)
	case len(dirty) > 0:
		e.say(r, "warning", "%s has uncommitted changes (%d files, the first is %q); the agent starts from the last commit, without them", e.Worktree, len(dirty), dirty[0])
	}
}

// claimed saves the claim with its effects before anything is written to the forge.
func (e *Engine) claimed(h *hold, r run.Run, base run.Base) (run.Run, error) {
	r, err := h.Apply(r, run.Claimed{
		Base: base, Branch: fmt.Sprintf("interlock/issue-%d", r.Issue),
		Claim: run.Claim{Ref: e.claims.Refs.Ref(r.Issue), Nonce: random(16)},
	})
	if err != nil {
		return r, err
	}
	e.say(r, "claimed", "claiming %q on base %s at %.12s", r.Task.Title, base.Branch, base.Commit.Hash)
	return r, nil
}

// inherit lets a run go on from the work of the one before it, where the same is to be tried on the
// same base: of one that was parked the next attempt starts there, and what lane build has built is
// not worked once more, but checked and delivered. What was built and is not taken up is said.
func inherit(r, last *run.Run, base run.Base) (said string) {
	if last == nil || last.Task.Digest != r.Task.Digest {
		return ""
	}
	if last.State == run.Done && last.Plan.Lane == run.LaneBuild && r.Plan.Lane != run.LaneBuild {
		return inheritBuilt(r, last, base)
	}
	before := last.Plan
	before.Attempts = r.Plan.Attempts
	if last.State == run.Parked && last.Base.Commit == base.Commit && samePlan(before, r.Plan) {
		r.Tip, r.Findings = last.Tip, last.Findings
	}
	return ""
}

// pin keeps what a run begins with under a name of its own, whatever becomes of the run before it.
func (e *Engine) pin(ctx context.Context, r *run.Run) error {
	if r.Tip == "" {
		return nil
	}
	err := e.repo.UpdateRefs(ctx, git.Update{Ref: "refs/interlock/runs/" + r.ID + "/before", New: r.Tip})
	if err != nil {
		return fmt.Errorf("keep %.12s, which run %s begins with: %w", r.Tip, r.ID, err)
	}
	return nil
}

// inheritBuilt is inherit for what lane build has built.
func inheritBuilt(r, last *run.Run, base run.Base) (said string) {
	was := fmt.Sprintf("run %s built %.12s", last.ID, last.Head.Hash)
	switch {
	case last.Base.Commit != base.Commit:
		return fmt.Sprintf("%s on another base, %.12s: it is worked anew", was, last.Base.Commit.Hash)
	case last.Plan.Command != r.Plan.Command || last.Plan.CommandDigest != r.Plan.CommandDigest:
		return was + " with another agent: it is worked anew"
	}
	r.Tip, r.Head, r.Sandbox = last.Head.Hash, last.Head, last.Sandbox
	return was + " already: that is checked again and goes on, without a session of the agent"
}

// draft is the run as it will be stored, with the frozen text of its issue.
func (e *Engine) draft(ctx context.Context, t *task, issue int64) (run.Run, error) {
	is, err := e.look.Issue(ctx, issue)
	if err == nil {
		err = e.look.Titled(is)
	}
	if err != nil {
		return run.Run{}, err
	}
	now := e.Clock.Wall()
	return run.Run{
		ID: fmt.Sprintf("%d-%s", issue, random(3)), Repo: e.RepoKey, RepoPath: e.RepoPath, Issue: issue,
		State: run.Queued, Reason: "picked", Plan: t.Plan, Created: now, Updated: now,
		Task: run.Task{
			Title: forge.CleanText(is.Title), Body: forge.CleanText(is.Body), Digest: forge.TaskDigest(is.Title, is.Body),
		},
	}, nil
}

// findBase fetches the base branch into the engine's repository and pins it for the run.
func (e *Engine) findBase(ctx context.Context, branch, runID string) (run.Base, error) {
	name, _, err := e.Forge.Base(ctx, branch)
	if err != nil {
		return run.Base{}, e.look.NoBase(branch, err)
	}
	c, err := e.repo.FetchBranch(ctx, e.Forge.Remote(), name, "refs/interlock/runs/"+runID+"/base")
	if err != nil {
		return run.Base{}, fmt.Errorf("fetch base %s: %w", name, err)
	}
	needs, err := traits.Of(ctx, e.repo.Plumb, c.Hash)
	if err != nil {
		return run.Base{}, fmt.Errorf("look at base %s: %w", name, err)
	}
	if len(needs.Submodules)+len(needs.LFS) > 0 {
		return run.Base{}, e.unsupported(name, needs)
	}
	return run.Base{Branch: name, Commit: run.Commit{Hash: c.Hash, Tree: c.Tree}}, nil
}

func (e *Engine) unsupported(branch string, needs traits.Traits) error {
	what := fmt.Sprintf("base %s has submodules (%q)", branch, needs.Submodules)
	if len(needs.Submodules) == 0 {
		what = fmt.Sprintf("base %s keeps files in Git LFS (%q)", branch, needs.LFS)
	}
	return &Refusal{
		Exit: run.ExitRefused, What: what + "; they would be missing from the workspace",
		Safe: "nothing was started", Next: "git -C " + text.Quote(e.RepoPath) + " branch --list",
		Then: "type the command again with a base without them: --base BRANCH",
	}
}

// resume takes the place of a run's holder, if that holder is dead, and goes on where it was.
func (e *Engine) resume(ctx context.Context, t *task, r run.Run) (run.Run, error) {
	t, err := e.asStarted(ctx, t, r)
	if err != nil {
		return r, err
	}
	key := store.Key(r.Repo, r.Issue)
	start := e.Clock.Now()
	l, from, proof, err := e.takeOver(ctx, key, r)
	if err != nil {
		return r, err
	}
	if r, err = e.Store.Load(ctx, r.ID); err != nil { // it may have moved before the lease was ours
		return r, err
	}
	return e.driveUnder(ctx, t, r, l, start, func(h *hold, r run.Run) (run.Run, error) {
		return e.reenter(ctx, h, t, r, from, proof)
	})
}

// takeOver acquires the key of a run. A holder of this boot must be proved dead with all its
// session trees, or its lease and the lock-delay must have run out.
func (e *Engine) takeOver(ctx context.Context, key string, r run.Run) (l run.Lease, from run.Holder, proof string, err error) {
	proof = "nobody held it"
	if old, ok, err := e.Store.Controls().Lease(ctx, key); err == nil && ok {
		from = old.Holder
	}
	l, err = e.Store.Acquire(ctx, e.Holder, key, run.LeaseTTL, 0)
	var held *store.HeldError
	if !errors.As(err, &held) {
		return l, from, proof, err
	}
	h := held.Lease.Holder
	if !claim.Gone(e.Holder, h) {
		return l, h, "", &HeldError{Issue: r.Issue, Run: r.ID, By: claim.Holder(h), Err: held, Why: e.elsewhere(h)}
	}
	if proof, err = e.endSessions(ctx, r.ID); err != nil {
		return l, h, "", &HeldError{
			Issue: r.Issue, Run: r.ID, By: "a dead " + claim.Holder(h), Err: held,
			Why: fmt.Sprintf("its session cannot be proved dead yet (%v)", err),
		}
	}
	proof = fmt.Sprintf("%s is dead (process id, start time, boot); %s", claim.Holder(h), proof)
	l, err = e.Store.Acquire(ctx, e.Holder, key, run.LeaseTTL, held.Lease.Fence)
	if errors.As(err, &held) {
		err = &HeldError{Issue: r.Issue, Run: r.ID, By: claim.Holder(held.Lease.Holder), Err: held}
	}
	return l, h, proof, err
}

// elsewhere says why the death of a holder cannot be looked at from here, "" if it can.
func (e *Engine) elsewhere(h run.Holder) string {
	if h.Host == e.Holder.Host && h.Namespace == e.Holder.Namespace {
		return ""
	}
	return "it runs in another pid namespace or on another host, from where its death cannot be proved"
}

// heldBy turns a refused claim into words.
func (e *Engine) heldBy(ctx context.Context, issue int64, runID string, err error) error {
	var held *store.HeldError
	if errors.As(err, &held) {
		if last, lerr := e.look.Last(ctx, issue); lerr == nil && last != nil && last.State.Live() {
			runID = last.ID
		}
		return &HeldError{Issue: issue, Run: runID, By: claim.Holder(held.Lease.Holder), Err: err}
	}
	if errors.Is(err, store.ErrDuplicate) {
		return &HeldError{Issue: issue, By: "another run that has just begun", Err: err}
	}
	return fmt.Errorf("claim issue %d: %w", issue, err)
}

// endSessions ends what is left of a run's sessions and proves each gone.
func (e *Engine) endSessions(ctx context.Context, runID string) (string, error) {
	hist, err := e.Store.History(ctx, runID)
	if err != nil {
		return "", err
	}
	return workspace.EndSessions(ctx, hist.Sessions)
}

// reenter is what a new holder does first: it records the take-over, marks the sessions that
// were proved gone, and brings in what the last one had committed.
func (e *Engine) reenter(ctx context.Context, h *hold, t *task, r run.Run, from run.Holder, proof string) (run.Run, error) {
	h.Within(10 * run.GitTotal)
	e.say(r, "resumed", "taking up run %s, which is %s; %s", r.ID, r.State, proof)
	r, err := h.Apply(r, run.TakenOver{From: from, Proof: proof, Path: e.RepoPath})
	if err != nil {
		return r, err
	}
	if err := e.proveGone(h, r, from); err != nil {
		return r, err
	}
	if err := e.claims.Inherit(h.Live, r); err != nil {
		return r, err
	}
	if r, err = e.recover(h, r); err != nil || !r.State.Live() {
		return r, err
	}
	if t == nil {
		return r, nil // nothing is begun any more, only ended
	}
	if !samePlan(t.Plan, r.Plan) {
		if r, err = e.adopt(h, r); err != nil {
			return r, err
		}
		if r, err = h.Apply(r, run.Reconfigured{Plan: t.Plan}); err != nil {
			return r, err
		}
		e.say(r, "reconfigured", "from here on with the options of this command, which are others than before")
	}
	if r.State == run.Queued {
		base, err := e.findBase(ctx, t.Base, r.ID)
		if err != nil {
			return r, err
		}
		return e.claimed(h, r, base)
	}
	return e.reclaim(h, r)
}

// proveGone ends and proves what is left of a run's sessions once the lease is ours. Where that
// cannot be done, nothing of the run is touched.
func (e *Engine) proveGone(h *hold, r run.Run, from run.Holder) error {
	why := e.elsewhere(from)
	_, err := e.endSessions(h.Live, r.ID)
	if err == nil && (why == "" || from.ID == "") {
		return nil
	}
	what, next := fmt.Sprintf("run %s: %v", r.ID, err), "interlock doctor"
	then := "end what is left of the session by hand and restart the machine: without a cgroup nothing else proves its end"
	if err == nil {
		hist, herr := e.Store.History(h.Live, r.ID)
		if herr != nil {
			return herr
		}
		if !slices.ContainsFunc(hist.Sessions, func(s store.Session) bool { return !s.Ended }) {
			return nil
		}
		what = fmt.Sprintf("run %s: its last holder was %s; %s", r.ID, claim.Holder(from), why)
		next, then = "interlock show "+r.ID, "type the command there"
	}
	return &Refusal{
		Exit: run.ExitBusy, What: what, Safe: "nothing of it is imported while its tree may be alive", Next: next, Then: then, NotStarted: true, Err: err,
	}
}

// reclaim verifies, before anything else, that the claim on the forge is still ours, and writes
// a child of it: a paused predecessor's pushes are stale from here on.
func (e *Engine) reclaim(h *hold, r run.Run) (run.Run, error) {
	if r.State == run.Claiming {
		return r, nil // the claim effect itself probes
	}
	c, err := e.claims.Adopt(h.Live, r)
	if errors.Is(err, forge.ErrLost) {
		return h.Apply(r, e.claimLost(r, err.Error()))
	}
	if err != nil {
		return r, fmt.Errorf("verify the claim of issue %d: %w", r.Issue, err)
	}
	return h.Apply(r, run.Renewed{Claim: c})
}

func samePlan(a, b run.Plan) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}
