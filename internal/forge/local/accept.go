package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"interlock/internal/failpoint"
	"interlock/internal/forge"
	"interlock/internal/git"
	"interlock/internal/git/traits"
)

// AcceptError says why a change was not accepted and which command goes on from there. Nothing
// was changed.
type AcceptError struct {
	Change  int64
	Why     string
	Command string // a shell line to type, "" where there is nothing left to do
}

func (e *AcceptError) Error() string {
	text := fmt.Sprintf("change %d is not accepted: %s; nothing was changed", e.Change, e.Why)
	if e.Command != "" {
		text += "; type: " + e.Command
	}
	return text
}

// mergeTotal bounds the fast-forward of a work tree. It is not ended with the caller's context: a
// checkout that is cut in the middle leaves the operator's work tree torn.
const mergeTotal = 10 * time.Minute

// Accept merges an open change into its base by fast-forward and closes its issue. It takes only
// the exact commit that was proposed: a head that has moved since voids it. A base that is checked
// out is moved by git merge --ff-only in that work tree, which must be clean; else only the ref is
// moved. A base that contains the commit already, after a merge by hand or a crash between merge
// and record, is recorded as merged. Every refusal is an *AcceptError.
func (f *Forge) Accept(ctx context.Context, n int64) (forge.Change, error) {
	var done forge.Change
	err := f.retry(ctx, func() error {
		var err error
		done, err = f.acceptOnce(ctx, n)
		return err
	})
	if err != nil && !errors.As(err, new(*AcceptError)) {
		return done, fmt.Errorf("accept change %d: %w", n, err)
	}
	return done, err
}

func (f *Forge) acceptOnce(ctx context.Context, n int64) (forge.Change, error) {
	e, doc, err := f.loadChange(ctx, n)
	if err != nil {
		return forge.Change{}, err
	}
	c, err := f.live(ctx, doc.Change)
	if err != nil {
		return forge.Change{}, err
	}
	if c.State != open {
		return c, &AcceptError{Change: n, Why: "it is " + c.State + " already"}
	}
	base, err := f.ref(ctx, branchPrefix+c.Base)
	if err != nil {
		return c, err
	}
	if base == "" {
		return c, &AcceptError{Change: n, Why: "its base branch " + git.Escape(c.Base) + " is gone",
			Command: "git -C " + quote(f.dir) + " branch " + quote(c.Base) + " " + c.BaseAt}
	}
	updates, err := f.closing(ctx, c.Issue) // before anything moves: a damaged issue refuses here
	if err != nil {
		return c, err
	}
	there, err := f.contained(ctx, c, base)
	if err != nil {
		return c, err
	}
	if !there {
		moves, err := f.merge(ctx, c, base)
		if err != nil {
			return c, err
		}
		updates = append(moves, updates...)
	}
	doc.Change.State = merged
	c.State = merged
	failpoint.Here("before forge accept")
	err = f.settle(ctx, e, doc, "merged", updates...)
	failpoint.Here("after forge accept")
	if err == nil {
		err = failpoint.Fault("forge accept")
	}
	if failpoint.IsFault(err) {
		err = fmt.Errorf("%w: %w", forge.ErrUnknown, err)
	}
	return c, err
}

// closing returns the update that closes an issue, none if it is closed.
func (f *Forge) closing(ctx context.Context, n int64) ([]git.Update, error) {
	if n == 0 {
		return nil, nil
	}
	e, err := f.load(ctx, issuePrefix, issueFile, n)
	if errors.Is(err, forge.ErrNotFound) {
		return nil, nil // it was deleted; there is nothing to close
	}
	if err != nil {
		return nil, err
	}
	doc, err := f.asIssue(e)
	if err != nil || doc.Issue.State == closed {
		return nil, err
	}
	doc.Issue.State, doc.Issue.Updated = closed, now()
	doc.Issue.Labels = slices.DeleteFunc(doc.Issue.Labels, func(l string) bool { return strings.HasPrefix(l, forge.LabelPrefix) })
	hash, err := f.write(ctx, issueFile, doc, e.hash, fmt.Sprintf("issue %d: closed, its change is merged", n))
	if err != nil {
		return nil, err
	}
	return []git.Update{{Ref: e.ref, New: hash, Old: e.hash}}, nil
}

// contained reports whether the base has the change already: the proposed commit, or all that its
// head branch has now, if that is more than the base it began at.
func (f *Forge) contained(ctx context.Context, c forge.Change, base string) (bool, error) {
	there, err := f.among(ctx, c.Proposed, base)
	if err != nil || there || c.HeadAt == "" || c.HeadAt == c.Proposed {
		return there, err
	}
	there, err = f.among(ctx, c.HeadAt, base)
	if err != nil || !there {
		return false, err
	}
	if _, err := f.repo.Resolve(ctx, c.BaseAt); err != nil {
		return false, nil
	}
	nothing, err := f.among(ctx, c.HeadAt, c.BaseAt)
	return !nothing, err
}

// among is IsAncestor where a commit that is not there is nobody's ancestor.
func (f *Forge) among(ctx context.Context, old, hash string) (bool, error) {
	ok, err := f.repo.IsAncestor(ctx, old, hash)
	if errors.Is(err, git.ErrNoCommit) {
		return false, nil
	}
	return ok, err
}

// merge fast-forwards the base to the proposed commit, or returns the update that does.
func (f *Forge) merge(ctx context.Context, c forge.Change, base string) ([]git.Update, error) {
	tree, err := f.checkedOut(ctx, c)
	if err != nil {
		return nil, err
	}
	switch {
	case c.HeadAt == "":
		return nil, &AcceptError{Change: c.Number, Why: "its head branch " + git.Escape(c.Head) + " is gone",
			Command: "git -C " + quote(f.dir) + " branch " + quote(c.Head) + " " + c.Proposed}
	case c.HeadAt != c.Proposed:
		return nil, &AcceptError{Change: c.Number, Why: fmt.Sprintf(
			"its head branch %s has moved: it was proposed at %.12s and is at %.12s now, which nobody has reviewed with this change. Look at what came (git diff %.12s %.12s), merge it by hand and accept again",
			git.Escape(c.Head), c.Proposed, c.HeadAt, c.Proposed, c.HeadAt), Command: f.byHand(c, tree, c.HeadAt)}
	}
	if there, err := f.among(ctx, c.BaseAt, base); err != nil {
		return nil, err
	} else if !there {
		return nil, &AcceptError{Change: c.Number, Why: fmt.Sprintf(
			"its base %s was rewritten: it does not hold %.12s any more, on which the change was verified, so that accepting would bring back what was taken out. Look at what that is (git log %s..%s); if it is wanted, merge it by hand and accept again",
			git.Escape(c.Base), c.BaseAt, base, c.Proposed), Command: f.byHand(c, tree, c.Proposed)}
	}
	ff, err := f.repo.IsAncestor(ctx, base, c.Proposed)
	if err != nil {
		return nil, err
	}
	if !ff {
		return nil, &AcceptError{Change: c.Number, Why: fmt.Sprintf(
			"its base %s has commits that %s does not have, so that it cannot be fast-forwarded. Merge it by hand and accept again",
			git.Escape(c.Base), git.Escape(c.Head)), Command: f.byHand(c, tree, c.Proposed)}
	}
	if tree == "" {
		return []git.Update{{Ref: branchPrefix + c.Base, New: c.Proposed, Old: base}}, nil
	}
	return nil, f.fastForward(ctx, c, tree, base)
}

// byHand is the shell line that merges a commit into the base of a change, wherever that is.
func (f *Forge) byHand(c forge.Change, tree, hash string) string {
	switch {
	case tree != "":
		return "git -C " + quote(tree) + " merge " + hash
	case f.at.Worktree != "":
		return "git -C " + quote(f.dir) + " switch " + quote(c.Base) + " && git -C " + quote(f.dir) + " merge " + hash
	}
	clone := fmt.Sprintf("change-%d", c.Number)
	return "git clone --branch " + quote(c.Base) + " " + quote(f.at.CommonDir) + " " + clone +
		" && git -C " + clone + " merge " + hash + " && git -C " + clone + " push"
}

// fastForward moves the base where it is checked out. git merge refuses by itself what would
// overwrite a file that is not tracked; told so, also one that is ignored.
func (f *Forge) fastForward(ctx context.Context, c forge.Change, tree, base string) error {
	refuse := func(why, command string) error {
		return &AcceptError{Change: c.Number, Why: why, Command: command}
	}
	dirty, err := f.git.At(tree).Status(ctx)
	if err != nil {
		return fmt.Errorf("status of %s: %w", git.Escape(tree), err)
	}
	if len(dirty) > 0 {
		return refuse(fmt.Sprintf("%s is checked out in %s, which has changes that are not committed (%s). Commit them or put them aside, then accept again",
			git.Escape(c.Base), git.Escape(tree), names(dirty)), "git -C "+quote(tree)+" stash")
	}
	needs, err := traits.Of(ctx, f.repo, c.Proposed)
	if err != nil {
		return fmt.Errorf("attributes of %.12s: %w", c.Proposed, err)
	}
	if len(needs.LFS) > 0 { // its filter is often set up in the user's configuration, which is not read here
		return refuse(fmt.Sprintf("it has files kept by Git LFS, which your own git must check out in %s. Merge it there and accept again",
			git.Escape(tree)), "git -C "+quote(tree)+" merge --ff-only "+c.Proposed)
	}
	failpoint.Here("before merge")
	_, err = f.git.Run(context.WithoutCancel(ctx), git.Command{Dir: tree, Timeout: mergeTotal, Args: []string{
		"-c", "safe.directory=*", "merge", "--ff-only", "--no-overwrite-ignore", "--quiet", c.Proposed}})
	failpoint.Here("after merge")
	var failed *git.Error
	if errors.As(err, &failed) && failed.Code > 0 && failed.Err == nil {
		if err := f.takeBack(context.WithoutCancel(ctx), c, tree, base); err != nil {
			return err
		}
		return refuse(fmt.Sprintf("git will not fast-forward %s in %s (%s). Put right what it names, then accept again",
			git.Escape(c.Base), git.Escape(tree), failed.Stderr), "git -C "+quote(tree)+" status")
	}
	if err != nil {
		return fmt.Errorf("fast-forward %s: %w", git.Escape(tree), err)
	}
	at, err := f.ref(ctx, branchPrefix+c.Base)
	if err != nil {
		return err
	}
	if there, err := f.among(ctx, c.Proposed, at); err != nil {
		return err
	} else if !there {
		return fmt.Errorf("%s was fast-forwarded to %.12s, but %s is at %.12s: another branch was checked out there in the same moment; look with: git -C %s reflog",
			git.Escape(tree), c.Proposed, git.Escape(c.Base), at, quote(tree))
	}
	return nil
}

// takeBack undoes what a fast-forward that failed has done to a work tree: git writes the files first
// and moves the branch last, which a lock file may prevent. Files that somebody has changed since
// are not touched.
func (f *Forge) takeBack(ctx context.Context, c forge.Change, tree, base string) error {
	for _, undo := range []bool{true, false} {
		dirty, err := f.git.At(tree).Status(ctx)
		at, rerr := f.ref(ctx, branchPrefix+c.Base)
		if err := errors.Join(err, rerr); err != nil {
			return fmt.Errorf("status of %s: %w", git.Escape(tree), err)
		}
		if len(dirty) == 0 || at != base {
			return nil
		}
		if undo {
			_, err = f.git.Run(ctx, git.Command{Dir: tree, Timeout: mergeTotal, Args: []string{
				"-c", "safe.directory=*", "read-tree", "-m", "-u", c.Proposed, base}})
		}
		if !undo || err != nil {
			return fmt.Errorf("git has written files of change %d to %s and could not move %s (%s); to have them as before: git -C %s reset --hard %s",
				c.Number, git.Escape(tree), git.Escape(c.Base), names(dirty), quote(tree), base)
		}
	}
	return nil
}

// names lists some paths for a person.
func names(paths []string) string {
	const most = 5
	var shown []string
	for _, p := range paths[:min(most, len(paths))] {
		shown = append(shown, quote(p))
	}
	if n := len(paths) - most; n > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(shown, ", ")
}
