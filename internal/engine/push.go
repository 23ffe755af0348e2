package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"interlock/internal/forge"
	"interlock/internal/git"
	"interlock/internal/run"
	"interlock/internal/text"
)

// branchNames is how many names are tried when the planned branch is somebody else's.
const branchNames = 20

// doPush publishes the verified head: the claim's next commit and the branch move together or
// not at all, so whoever lost the claim cannot move the branch.
func (e *Engine) doPush(ctx context.Context, r run.Run, f run.Effect) (run.Event, error) {
	branch, old, err := e.freeBranch(ctx, r)
	if err != nil {
		return nil, err
	}
	if old != r.Head.Hash { // else it has happened, and only the claim is still to be moved
		for _, look := range []func(context.Context, run.Run) (run.Event, error){e.stillOpen, e.guard.Check, e.baseMoved} {
			if ev, err := look(ctx, r); ev != nil || err != nil {
				return ev, err
			}
		}
	}
	mine, err := e.claims.Mine(ctx, r)
	if errors.Is(err, forge.ErrLost) {
		return e.claimLost(r, err.Error()), nil
	}
	if err != nil {
		return nil, err
	}
	update := git.Update{Ref: "refs/heads/" + branch, New: r.Head.Hash, Old: old}
	c, report, err := e.claims.PushWith(ctx, mine, update)
	if err != nil {
		return e.notPushed(r, branch, err)
	}
	if report.Remote != "" {
		e.say(r, "remote", "%s", report.Remote)
	}
	e.say(r, "pushed", "branch %s at %.12s", branch, r.Head.Hash)
	return run.Settled{Key: f.Key, Claim: &c, Branch: branch, Found: old == r.Head.Hash}, nil
}

// notPushed tells the classes of a failed push apart. A remote that refuses leaves the run where
// it is: what it asks for is not in the run, and the same command pushes the same commit again.
func (e *Engine) notPushed(r run.Run, branch string, err error) (run.Event, error) {
	switch {
	case errors.Is(err, forge.ErrLost):
		return e.claimLost(r, err.Error()), nil
	case errors.Is(err, git.ErrStaleRef):
		return nil, fmt.Errorf("%w: branch %s moved meanwhile", forge.ErrUnknown, branch)
	case unknown(err), !errors.Is(err, forge.ErrDenied):
		return nil, err
	}
	exit, why := run.ExitRefused, "the repository refuses the push of"
	if strings.Contains(err.Error(), "No space left on device") {
		exit, why = run.ExitUnfit, "the repository has no room for"
	}
	return nil, &Refusal{
		Exit: exit, What: fmt.Sprintf("run %s of issue %d: %s %s: %v", r.ID, r.Issue, why, branch, err),
		Safe:       "the verified commit is kept, nothing was moved: git --git-dir " + text.Quote(e.repo.Dir()) + " show " + r.Head.Hash,
		Next:       "interlock show " + r.ID,
		Then:       "see to what it asks for and type the command again: it only pushes; or: interlock cancel " + r.ID,
		NotStarted: true, Err: err,
	}
}

func (e *Engine) claimLost(r run.Run, why string) run.Event {
	return run.ParkedBecause{
		Reason: "the claim on the forge was lost: " + why + "; nothing was written there after that",
		Next:   "interlock show " + r.ID, Exit: run.ExitLost, Silent: true,
	}
}

// freeBranch returns that of the run's branch names which is at the head already, else the first
// that is absent. What others put there is never moved.
func (e *Engine) freeBranch(ctx context.Context, r run.Run) (branch, old string, err error) {
	names := []string{"refs/heads/" + r.Branch}
	for i := 2; i <= branchNames; i++ {
		names = append(names, fmt.Sprintf("refs/heads/%s-%d", r.Branch, i))
	}
	// Where somebody has a branch "interlock", git can have none below that name.
	above, _, _ := strings.Cut(r.Branch, "/")
	flat := "refs/heads/" + strings.ReplaceAll(r.Branch, "/", "-")
	refs, err := e.Git.LsRemote(ctx, e.Forge.Remote(), append(names, flat, "refs/heads/"+above)...)
	if err != nil {
		return "", "", fmt.Errorf("%w: list branches: %w", forge.ErrUnknown, err)
	}
	if _, there := refs["refs/heads/"+above]; there {
		names = []string{flat}
	}
	for _, name := range names { // a push of ours whose answer was lost comes before a free name
		if refs[name] == r.Head.Hash {
			return strings.TrimPrefix(name, "refs/heads/"), r.Head.Hash, nil
		}
	}
	for _, name := range names {
		if _, there := refs[name]; !there {
			return strings.TrimPrefix(name, "refs/heads/"), "", nil
		}
	}
	return "", "", &Refusal{
		Exit: run.ExitRefused, What: fmt.Sprintf("all names that the branch of run %s could have are taken: %s", r.ID, strings.ReplaceAll(strings.Join(names, ", "), "refs/heads/", "")),
		Safe: "nothing was pushed; the work is kept", Next: "git -C " + text.Quote(e.RepoPath) + " branch --list", NotStarted: true,
	}
}

// baseMoved reads the base again. If it still merges cleanly the push goes on, with the base that
// was verified recorded; if not, the work goes back to an agent.
func (e *Engine) baseMoved(ctx context.Context, r run.Run) (run.Event, error) {
	ref := fmt.Sprintf("refs/interlock/runs/%s/base-%s", r.ID, random(4))
	now, err := e.repo.FetchBranch(ctx, e.Forge.Remote(), r.Base.Branch, ref)
	if errors.Is(err, git.ErrNoRef) {
		return run.ParkedBecause{
			Reason: fmt.Sprintf("base branch %s is gone", r.Base.Branch), Exit: run.ExitRefused,
			Next: "git -C " + text.Quote(e.RepoPath) + " branch --list", Then: "type the command again with --base BRANCH",
		}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: read base %s again: %w", forge.ErrUnknown, r.Base.Branch, err)
	}
	if now.Hash == r.Base.Commit.Hash {
		return nil, nil
	}
	onward, err := e.repo.IsAncestor(ctx, r.Base.Commit.Hash, now.Hash)
	if err != nil {
		return nil, fmt.Errorf("compare base %s with what it was: %w", r.Base.Branch, err)
	}
	if !onward {
		return e.baseRewritten(r, now.Hash), nil
	}
	clean, conflicts, err := e.repo.Merges(ctx, now.Hash, r.Head.Hash)
	if err != nil {
		return nil, fmt.Errorf("try the merge into %s: %w", r.Base.Branch, err)
	}
	if clean {
		e.say(r, "base moved", "%s is at %.12s now; it still merges cleanly, verified on %.12s", r.Base.Branch, now.Hash, r.Base.Commit.Hash)
		return nil, nil
	}
	return run.BaseMoved{
		Base: run.Base{Branch: r.Base.Branch, Commit: run.Commit{Hash: now.Hash, Tree: now.Tree}},
		Findings: fmt.Sprintf("The base branch %s has moved to %s, and your work no longer merges into it. Merge that commit (it is in this repository) into your branch and solve the conflicts in:\n%s",
			r.Base.Branch, now.Hash, listed(conflicts)),
	}, nil
}

// baseRewritten parks a run whose base was rewritten or moved back: its work holds commits that
// somebody took out of the base, and a push would bring them back. The next run begins anew.
func (e *Engine) baseRewritten(r run.Run, now string) run.Event {
	return run.ParkedBecause{
		Reason: fmt.Sprintf("base branch %s was rewritten: it is at %.12s, which does not hold %.12s any more, on which the work was verified; to push the work would bring back what was taken out",
			r.Base.Branch, now, r.Base.Commit.Hash),
		Say:  fmt.Sprintf("The base branch %s was rewritten while this was worked.", r.Base.Branch),
		Next: "interlock show " + r.ID, Then: "type the command again: it begins anew on the base as it is now", Exit: run.ExitRefused,
	}
}

// listed shows paths one a line. A name is anybody's text: what is not plain is quoted.
func listed(paths []string) string {
	var b strings.Builder
	for _, p := range paths {
		fmt.Fprintf(&b, "- %q\n", p)
	}
	return b.String()
}
