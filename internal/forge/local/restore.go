package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"interlock/internal/forge"
	"interlock/internal/git"
)

// In the engine's own repository. What is below keptPrefix has the rest of its name as in the
// repository of the forge, so that refs/interlock/issues/1 is kept at refs/interlock/kept/issues/1.
const (
	keptPrefix     = "refs/interlock/kept/"
	keptIssues     = keptPrefix + "issues/"
	keptChanges    = keptPrefix + "changes/"
	proposedPrefix = keptPrefix + "proposed/" // per change, the commit that was proposed
	asidePrefix    = keptPrefix + "aside/"    // what was seen last before somebody rewrote it
)

// restoreTries is how many rounds there are, each but the first after somebody has moved something
// forward meanwhile. Many who restore at once, each having seen more than the one before, make as many.
const restoreTries = 40

var _ forge.Restorer = (*Forge)(nil)

// Restore implements forge.Restorer. Interlock only ever puts a child on the ref of an issue or a
// change, and deletes none: issues and changes are closed. So a ref that is gone was wiped, and one
// that is at an ancestor of what was seen was moved back. Both are undone by a compare-and-set of
// exactly what was found, so that of many who restore at once each moves a ref only forward, and
// who has seen more adds it. A ref that neither holds what was seen nor is held by it was written
// by somebody: it stays, it is kept from then on, and what was seen before is put aside.
func (f *Forge) Restore(ctx context.Context, repo *git.Repo) ([]string, error) {
	m := &mending{Forge: f, repo: repo}
	var err error
	for try := range restoreTries {
		if err = m.round(ctx); !errors.Is(err, git.ErrStaleRef) && !errors.Is(err, git.ErrNoRef) {
			break
		}
		select { // so that not all of them look again at the same moment
		case <-ctx.Done():
		case <-time.After(rand.N(time.Duration(try+1) * 5 * time.Millisecond)):
		}
	}
	if err != nil {
		return m.said, fmt.Errorf("restore issues and changes of %s: %w", f.Name(), err)
	}
	return m.said, nil
}

// mending is one call of Restore.
type mending struct {
	*Forge
	repo *git.Repo
	said []string

	kept, there map[string]string // by the ref in the forge's repository
	back        []git.Update      // what is to be put back
}

// round looks once, and notes and restores. What is kept is read first: what is there then is as
// new, so that nobody's later note makes it look as if it were moved back.
func (m *mending) round(ctx context.Context) error {
	m.back = nil
	if err := m.look(ctx); err != nil {
		return err
	}
	if maps.Equal(m.kept, m.there) {
		return nil
	}
	if err := m.note(ctx); err != nil {
		return err
	}
	for ref, hash := range m.kept {
		if m.there[ref] == "" {
			m.back = append(m.back, git.Update{Ref: ref, New: hash})
		}
	}
	return m.putBack(ctx)
}

func (m *mending) look(ctx context.Context) error {
	kept, err := m.repo.Refs(ctx, keptPrefix)
	if err != nil {
		return err
	}
	m.kept, m.there = map[string]string{}, map[string]string{}
	for ref, hash := range kept {
		if strings.HasPrefix(ref, keptIssues) || strings.HasPrefix(ref, keptChanges) {
			m.kept[dataPrefix+strings.TrimPrefix(ref, keptPrefix)] = hash
		}
	}
	there, err := m.Forge.repo.Refs(ctx, dataPrefix)
	if err != nil {
		return err
	}
	for ref, hash := range there {
		for _, prefix := range []string{issuePrefix, changePrefix} {
			if _, ok := number(ref, prefix); ok {
				m.there[ref] = hash
			}
		}
	}
	return nil
}

// note keeps what has moved forward, and finds what was moved back. What cannot be read is nothing
// that anybody would want back.
func (m *mending) note(ctx context.Context) error {
	fresh, heads, err := m.fresh(ctx)
	if err != nil || len(fresh) == 0 {
		return err
	}
	var names []string
	for _, e := range append(slices.Clone(fresh), heads...) {
		names = append(names, e.ref)
	}
	slices.Sort(names)
	if err := m.repo.FetchObjects(ctx, m.Remote(), slices.Compact(names)...); err != nil {
		return err
	}
	for _, e := range fresh {
		if err := m.noteOne(ctx, e); err != nil {
			return err
		}
	}
	for _, e := range heads {
		if _, err := m.repo.Resolve(ctx, e.hash); err != nil {
			continue // it moved since: then it is nobody's proposal any more
		}
		if err := m.repo.Pin(ctx, refOf(proposedPrefix, e.n), e.hash); err != nil {
			return err
		}
	}
	return nil
}

// fresh returns what is there, can be read, and is not what is kept; and the branches of the open
// changes among it that are where they were proposed, each with the number of its change.
func (m *mending) fresh(ctx context.Context) (fresh, heads []entry, err error) {
	var issues, changes []entry
	for ref, hash := range m.there {
		if hash == m.kept[ref] {
			continue
		}
		if n, ok := number(ref, issuePrefix); ok {
			issues = append(issues, entry{n: n, ref: ref, hash: hash})
		} else if n, ok := number(ref, changePrefix); ok {
			changes = append(changes, entry{n: n, ref: ref, hash: hash})
		}
	}
	if err := errors.Join(m.read(ctx, issueFile, issues), m.read(ctx, changeFile, changes)); err != nil {
		return nil, nil, err
	}
	for _, e := range issues {
		if _, err := m.asIssue(e); err == nil {
			fresh = append(fresh, e)
		}
	}
	changes, heads, err = m.freshChanges(ctx, changes)
	return append(fresh, changes...), heads, err
}

// freshChanges returns those changes that can be read, and their heads.
func (m *mending) freshChanges(ctx context.Context, changes []entry) (fresh, heads []entry, err error) {
	if len(changes) == 0 {
		return nil, nil, nil
	}
	branches, err := m.Forge.repo.Refs(ctx, branchPrefix)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range changes {
		doc, err := m.asChange(e)
		if err != nil {
			continue
		}
		fresh = append(fresh, e)
		if ref := branchPrefix + doc.Change.Head; doc.Change.State == open && branches[ref] == doc.Change.Proposed {
			heads = append(heads, entry{n: e.n, ref: ref, hash: branches[ref]})
		}
	}
	return fresh, heads, nil
}

// noteOne keeps where one ref is, if that goes on from what is kept.
func (m *mending) noteOne(ctx context.Context, e entry) error {
	was, kept := m.kept[e.ref], keptRef(e.ref)
	if was == "" {
		return m.repo.UpdateRefs(ctx, git.Update{Ref: kept, New: e.hash})
	}
	forward, err := m.repo.IsAncestor(ctx, was, e.hash)
	if errors.Is(err, git.ErrNoCommit) {
		return fmt.Errorf("%s: %w", e.ref, git.ErrStaleRef) // it moved between list and fetch
	}
	if err != nil {
		return err
	}
	if forward {
		return m.repo.UpdateRefs(ctx, git.Update{Ref: kept, New: e.hash, Old: was})
	}
	back, err := m.repo.IsAncestor(ctx, e.hash, was)
	if err != nil {
		return err
	}
	if back {
		m.back = append(m.back, git.Update{Ref: e.ref, New: was, Old: e.hash})
		return nil
	}
	aside := asidePrefix + strings.TrimPrefix(e.ref, dataPrefix) + "/" + was
	if err := m.repo.Pin(ctx, aside, was); err != nil {
		return err
	}
	if err := m.repo.UpdateRefs(ctx, git.Update{Ref: kept, New: e.hash, Old: was}); err != nil {
		return err
	}
	m.say("%s was rewritten by another writer of the repository: it is at %.12s, which does not go on from %.12s; it was left so, and what was there before is kept: git --git-dir %s show %s",
		title(e.ref), e.hash, was, quote(m.repo.Dir()), was)
	return nil
}

// putBack restores what is gone or was moved back, each by itself: one that another writer has
// moved meanwhile is looked at again, in the next round.
func (m *mending) putBack(ctx context.Context) error {
	if len(m.back) == 0 {
		return nil
	}
	slices.SortFunc(m.back, func(a, b git.Update) int { return strings.Compare(a.Ref, b.Ref) })
	proposed, err := m.repo.Refs(ctx, proposedPrefix)
	if err != nil {
		return err
	}
	var commits []string
	for _, u := range m.back {
		commits = append(commits, u.New)
		if n, ok := number(u.Ref, changePrefix); ok && proposed[refOf(proposedPrefix, n)] != "" {
			commits = append(commits, proposed[refOf(proposedPrefix, n)])
		}
	}
	if err := m.Forge.repo.TakeObjects(ctx, m.repo, commits...); err != nil {
		return err
	}
	var failed, stale error
	for _, u := range m.back { // one that cannot be put back keeps no other from it
		err := m.putBackOne(ctx, u)
		if errors.Is(err, git.ErrStaleRef) {
			stale = err
		} else if err != nil {
			failed = errors.Join(failed, err)
		}
	}
	if failed != nil {
		return failed
	}
	return stale
}

// putBackOne restores one ref. Where a change was wiped, its head branch was too, unless it is there.
func (m *mending) putBackOne(ctx context.Context, u git.Update) error {
	updates := []git.Update{u}
	var head git.Update
	if n, ok := number(u.Ref, changePrefix); ok && u.Old == "" {
		index, branch, err := m.ofChange(ctx, n, u.New)
		if err != nil {
			return err
		}
		if head = branch; index.Ref != "" {
			updates = append(updates, index)
		}
	}
	if err := m.Forge.repo.UpdateRefs(ctx, updates...); err != nil {
		return err
	}
	if u.Old != "" {
		m.say("%s was at %.12s, which is older than what was seen there, or lost; it is at %.12s again, where it was seen last", title(u.Ref), u.Old, u.New)
		return nil
	}
	m.say("%s had been deleted from the repository (git push --mirror from a clone does that); it was put back as it was seen last, at %.12s", title(u.Ref), u.New)
	if head.Ref == "" {
		return nil
	}
	if err := m.Forge.repo.UpdateRefs(ctx, head); err != nil {
		m.say("its branch %s could not be put back at %s: %v", git.Escape(strings.TrimPrefix(head.Ref, branchPrefix)), head.New, err)
		return nil
	}
	m.say("its branch %s was gone too; it was put back at %.12s", git.Escape(strings.TrimPrefix(head.Ref, branchPrefix)), head.New)
	return nil
}

// ofChange returns what else has to be put back with an open change: the index of its head, without
// which another change for it could be opened at the same moment, and the head branch itself.
func (m *mending) ofChange(ctx context.Context, n int64, hash string) (index, head git.Update, err error) {
	e := []entry{{n: n, ref: refOf(changePrefix, n), hash: hash}}
	if err := m.read(ctx, changeFile, e); err != nil {
		return index, head, err
	}
	doc, err := m.asChange(e[0])
	if err != nil || doc.Change.State != open {
		return index, head, err
	}
	refs, err := m.Forge.repo.Refs(ctx, "refs/")
	if err != nil {
		return index, head, err
	}
	if ref := headRef(doc.Change.Head); refs[ref] == "" {
		out, err := m.run(ctx, "", "rev-list", "--max-parents=0", hash, "--")
		if err != nil {
			return index, head, err
		}
		root, _, _ := strings.Cut(string(out.Stdout), "\n")
		index = git.Update{Ref: ref, New: root}
	}
	if ref := branchPrefix + doc.Change.Head; refs[ref] == "" {
		if _, err := m.Forge.repo.Resolve(ctx, doc.Change.Proposed); err == nil {
			head = git.Update{Ref: ref, New: doc.Change.Proposed}
		}
	}
	return index, head, nil
}

func (m *mending) say(format string, args ...any) {
	m.said = append(m.said, fmt.Sprintf(format, args...))
}

func keptRef(ref string) string { return keptPrefix + strings.TrimPrefix(ref, dataPrefix) }

// title names a ref of ours for people.
func title(ref string) string {
	if n, ok := number(ref, changePrefix); ok {
		return fmt.Sprintf("change %d", n)
	}
	n, _ := number(ref, issuePrefix)
	return fmt.Sprintf("issue %d", n)
}
