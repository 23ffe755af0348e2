// Package eligibility says whether a run may be started for an issue at this moment, and if not, why
// not and what to do about it. It only looks: it never claims, starts or ends anything, and all that
// it ever writes down is since when the claim of another has been seen unmoved.
package eligibility

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"interlock/internal/claim"
	"interlock/internal/forge"
	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/text"
)

// Look is what is looked at: one repository, by one installation.
type Look struct {
	Store    store.Store
	Forge    forge.Forge
	Claims   *claim.Keeper
	RepoKey  string
	RepoPath string // where the operator finds it
}

// Issue returns an issue that is there and open; else it is a *Refusal.
func (l *Look) Issue(ctx context.Context, number int64) (forge.Issue, error) {
	is, err := l.Forge.Issue(ctx, number)
	list := "interlock issue list --repo " + text.Quote(l.RepoPath)
	switch {
	case errors.Is(err, forge.ErrNotFound):
		what := fmt.Sprintf("there is no issue %d on %s", number, l.Forge.Name())
		if l.Claims.Seen(ctx, number) {
			what += ", though it was claimed there before: it was removed, or its refs were wiped (git push --mirror from a clone does that)"
		}
		return is, &Refusal{
			Exit: run.ExitRefused, What: what,
			Safe: "nothing was started", Next: list, NotStarted: true, Err: err,
		}
	case err != nil:
		return is, fmt.Errorf("read issue %d: %w", number, err)
	case is.State != "open":
		return is, &Refusal{
			Exit: run.ExitRefused, What: fmt.Sprintf("issue %d is closed", number),
			Safe: "nothing was started", Next: list, NotStarted: true, Err: forge.ErrClosed,
		}
	}
	return is, nil
}

// Titled refuses an issue whose title tells nobody what to do.
func (l *Look) Titled(is forge.Issue) error {
	if forge.OneLine(is.Title, 1) != "" {
		return nil
	}
	return &Refusal{
		Exit: run.ExitRefused, What: fmt.Sprintf("issue %d has a title of nothing that can be read, so that nobody can be told what to do", is.Number),
		Safe: "nothing was started", Next: fmt.Sprintf("interlock issue close %d --repo %s", is.Number, text.Quote(l.RepoPath)), NotStarted: true,
	}
}

// Last returns the newest run of an issue, nil if there is none. One that cannot be read stops its
// issue: what was done for it is not known, so nothing may be done again.
func (l *Look) Last(ctx context.Context, issue int64) (*run.Run, error) {
	runs, err := l.Store.List(ctx, store.Filter{Repo: l.RepoKey, Issue: issue, Limit: 1})
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	r, err := l.Store.Load(ctx, runs[0].ID)
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// Rests refuses to start again where the last run says so: its change waits for a reviewer, or
// nothing has changed since it was parked. merged says that its change was merged, which nobody has
// saved yet.
func (l *Look) Rests(ctx context.Context, base string, plan run.Plan, last run.Run) (merged bool, err error) {
	switch last.State {
	case run.InReview:
		return l.inReview(ctx, last)
	case run.Parked, run.Done:
		plan.Attempts = max(plan.Attempts, last.Allowed)
		same, err := l.unchanged(ctx, base, plan, last)
		if err != nil || !same {
			return false, err
		}
		next := last.Next
		if next == "" {
			next = "interlock show " + last.ID
		}
		return false, &Refusal{
			Exit: run.ExitRefused,
			What: fmt.Sprintf("issue %d is %s by run %s: %s; nothing it depends on has changed since", last.Issue, last.State, last.ID, last.Reason),
			Safe: "nothing was started; its work is kept", Next: next, Then: last.Then, NotStarted: true,
		}
	}
	return false, nil
}

// inReview tells what became of the change of a run in review. Only a change that was closed
// without being merged, of an issue that is still open, makes room for a new run.
func (l *Look) inReview(ctx context.Context, last run.Run) (merged bool, err error) {
	changes, err := l.Forge.Changes(ctx, last.Branch)
	if err != nil {
		return false, fmt.Errorf("look at change %d: %w", last.Change, err)
	}
	i := slices.IndexFunc(changes, func(c forge.Change) bool { return c.Number == last.Change })
	if i >= 0 && changes[i].State == "closed" {
		return false, nil
	}
	if i >= 0 && changes[i].State == "merged" {
		return true, &Refusal{
			Exit: run.ExitRefused,
			What: fmt.Sprintf("issue %d is done: change %d of run %s was accepted", last.Issue, last.Change, last.ID),
			Safe: "nothing was started", Next: fmt.Sprintf("interlock change show %d --repo %s", last.Change, text.Quote(l.RepoPath)),
			NotStarted: true,
		}
	}
	return false, l.waits(last.Issue, last.Change, "of run "+last.ID)
}

// waits says that a change for the issue waits for a reviewer.
func (l *Look) waits(issue, change int64, whose string) *Refusal {
	return &Refusal{
		Exit: run.ExitWaits, What: fmt.Sprintf("issue %d is in review: change %d %s waits for a reviewer", issue, change, whose),
		Safe: "nothing was started", Next: fmt.Sprintf("interlock change show %d --repo %s", change, text.Quote(l.RepoPath)),
		NotStarted: true,
	}
}

// Proposed refuses an issue for which a change is open on the forge, whoever made it: another
// installation's run, or a person.
func (l *Look) Proposed(ctx context.Context, issue int64) error {
	c, err := l.OpenChange(ctx, issue)
	if err != nil || c == nil {
		return err
	}
	return l.waits(issue, c.Number, "of "+c.Author)
}

// OpenChange returns the open change for an issue, nil if there is none.
func (l *Look) OpenChange(ctx context.Context, issue int64) (*forge.Change, error) {
	changes, err := l.Forge.Changes(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("look for changes of issue %d: %w", issue, err)
	}
	for _, c := range changes {
		if c.Issue == issue && c.State == "open" {
			return &c, nil
		}
	}
	return nil, nil
}

// Claimable refuses an issue that another installation holds by its claim.
func (l *Look) Claimable(ctx context.Context, issue int64) error {
	err := l.Claims.Free(ctx, issue)
	var held *claim.HeldError
	if errors.As(err, &held) {
		return OnForge(held)
	}
	return err
}

// Spent refuses a run whose attempts were used by the runs before it. A new run never resets what
// was spent for the same text, so that is counted with it; Allowed is what a person has added.
func (l *Look) Spent(r *run.Run, last *run.Run) error {
	if last != nil && last.Task.Digest == r.Task.Digest {
		r.Spent, r.Allowed = last.Spent, last.Allowed
		r.Plan.Attempts = max(r.Plan.Attempts, r.Allowed)
	}
	if r.Spent < r.Plan.Attempts {
		return nil
	}
	return &Refusal{
		Exit: run.ExitRefused, What: fmt.Sprintf("the %d sessions that issue %d may have are used, the last by run %s: %s", r.Spent, r.Issue, last.ID, last.Reason),
		Safe: "nothing was started; its work is kept", NotStarted: true,
		Next: "interlock logs " + last.ID, Then: "mend what stood in its way, then: interlock retry " + last.ID,
	}
}

// NoBase puts it into words that there is no base branch to start from.
func (l *Look) NoBase(branch string, err error) error {
	r := &Refusal{Exit: run.ExitRefused, Safe: "nothing was started", Err: err}
	where := text.Quote(l.RepoPath)
	switch {
	case errors.Is(err, forge.ErrEmpty):
		r.What = fmt.Sprintf("%s has no commit yet, so there is nothing to propose against", l.RepoPath)
		r.Next = "git -C " + where + " commit --allow-empty -m 'first commit'"
	case errors.Is(err, forge.ErrDetached):
		r.What = fmt.Sprintf("HEAD of %s is detached, so the base branch is not known", l.RepoPath)
		r.Next, r.Then = "git -C "+where+" switch BRANCH", "or type the command again with --base BRANCH"
	case errors.Is(err, forge.ErrNotFound):
		r.What = fmt.Sprintf("there is no branch %q in %s", branch, l.RepoPath)
		r.Next = "git -C " + where + " branch --list"
	default:
		return fmt.Errorf("find the base branch: %w", err)
	}
	return r
}

// unchanged reports whether all that a run was parked for is as it was: while it is, trying again
// would end the same. What was parked before anything was made depends on no base.
func (l *Look) unchanged(ctx context.Context, base string, plan run.Plan, last run.Run) (bool, error) {
	is, err := l.Issue(ctx, last.Issue)
	if err != nil {
		return false, err
	}
	_, hash, err := l.Forge.Base(ctx, base)
	if err != nil {
		return false, l.NoBase(base, err)
	}
	task := forge.TaskDigest(is.Title, is.Body)
	return last.Precond == Precondition(task, hash, plan) || last.Precond == Precondition(task, "", plan), nil
}

// Precondition digests what a run of a task, from a base commit, by a plan depends on. base is ""
// for what depends on none.
func Precondition(task, base string, p run.Plan) string {
	data, err := json.Marshal(struct {
		Task, Base string
		Plan       run.Plan
	}{task, base, p})
	if err != nil {
		panic(err) // plain values always encode
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Changed names what a run depends on and is not as it was when the run began. What the operator
// types, or configures, is not looked at.
func (l *Look) Changed(ctx context.Context, r run.Run) (what []string, err error) {
	is, err := l.Issue(ctx, r.Issue)
	if err != nil {
		return nil, err
	}
	if forge.TaskDigest(is.Title, is.Body) != r.Task.Digest {
		what = append(what, fmt.Sprintf("the text of issue %d", r.Issue))
	}
	_, hash, err := l.Forge.Base(ctx, r.Base.Branch)
	if err != nil {
		return nil, l.NoBase(r.Base.Branch, err)
	}
	if r.Base.Commit.Hash != "" && hash != r.Base.Commit.Hash {
		what = append(what, fmt.Sprintf("base %s: it was at %.12s and is at %.12s", r.Base.Branch, r.Base.Commit.Hash, hash))
	}
	return what, nil
}
