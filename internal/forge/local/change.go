package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"interlock/internal/forge"
	"interlock/internal/git"
)

// halfway is how long a transaction of two refs may be half visible before its process is taken
// for killed.
const halfway = 500 * time.Millisecond

// Change returns one change. ErrNotFound.
func (f *Forge) Change(ctx context.Context, n int64) (forge.Change, error) {
	_, doc, err := f.loadChange(ctx, n)
	if err != nil {
		return forge.Change{}, err
	}
	return f.live(ctx, doc.Change)
}

// Changes implements forge.Forge. A change that cannot be read is left out; Damaged has it, and
// Propose for its head refuses.
func (f *Forge) Changes(ctx context.Context, head string) ([]forge.Change, error) {
	all, err := f.list(ctx, changePrefix, changeFile)
	if err != nil {
		return nil, err
	}
	branches, err := f.repo.Refs(ctx, branchPrefix)
	if err != nil {
		return nil, fmt.Errorf("list branches: %w", err)
	}
	found := []forge.Change{}
	for _, e := range all {
		doc, err := f.asChange(e)
		if err != nil || (head != "" && doc.Change.Head != head) {
			continue
		}
		doc.Change.HeadAt = branches[branchPrefix+doc.Change.Head]
		found = append(found, doc.Change)
	}
	return found, nil
}

// Propose implements forge.Forge. The commit that the head is at is recorded: Accept takes only
// that one. Of many calls at once for one head one opens a change.
func (f *Forge) Propose(ctx context.Context, c forge.Change) (forge.Change, error) {
	var made forge.Change
	err := f.retry(ctx, func() error {
		var err error
		made, err = f.proposeOnce(ctx, c)
		return err
	})
	if err != nil {
		return made, fmt.Errorf("propose %s: %w", git.Escape(c.Head), err)
	}
	return made, nil
}

func (f *Forge) proposeOnce(ctx context.Context, c forge.Change) (forge.Change, error) {
	changes, err := f.Changes(ctx, c.Head)
	if err != nil {
		return forge.Change{}, err
	}
	for _, have := range changes {
		if have.State == open {
			return have, fmt.Errorf("change %d: %w", have.Number, forge.ErrExists)
		}
	}
	index, err := f.freeHead(ctx, c.Head)
	if err != nil {
		return forge.Change{}, err
	}
	if c, err = f.checkProposal(ctx, c); err != nil {
		return forge.Change{}, err
	}
	if c.Number, err = f.nextNumber(ctx, changePrefix); err != nil {
		return forge.Change{}, err
	}
	kept := c
	kept.HeadAt = ""
	hash, err := f.write(ctx, changeFile, changeDoc{Format: format, Change: kept}, "", fmt.Sprintf("change %d: opened", c.Number))
	if err != nil {
		return forge.Change{}, err
	}
	index.New = hash
	// The change first: where the two are not moved in one instant, an index means a change.
	return c, f.repo.UpdateRefs(ctx, git.Update{Ref: refOf(changePrefix, c.Number), New: hash}, index)
}

// freeHead returns the update that takes the index ref of a head branch which no readable open
// change has. The index is at the first commit of the change that took it.
func (f *Forge) freeHead(ctx context.Context, head string) (git.Update, error) {
	index := entry{ref: headRef(head)}
	var err error
	if index.hash, err = f.ref(ctx, index.ref); err != nil || index.hash == "" {
		return git.Update{Ref: index.ref}, err
	}
	first := []entry{index}
	if err := f.read(ctx, changeFile, first); err != nil {
		return git.Update{}, err
	}
	var doc changeDoc
	if err := decode(first[0].data, &doc); err != nil {
		return git.Update{}, f.damage(index, err)
	}
	_, now, err := f.loadChange(ctx, doc.Change.Number)
	if errors.Is(err, forge.ErrNotFound) {
		// Another process may be between the two refs of its transaction, or was killed there.
		time.Sleep(halfway)
		_, now, err = f.loadChange(ctx, doc.Change.Number)
	}
	switch {
	case errors.Is(err, forge.ErrNotFound): // it was killed
	case err != nil:
		return git.Update{}, err
	case now.Change.Head == head && now.Change.State == open:
		return git.Update{}, fmt.Errorf("change %d: %w", now.Change.Number, git.ErrStaleRef) // opened since the list was read
	}
	return git.Update{Ref: index.ref, Old: index.hash}, nil
}

// checkProposal checks and completes what is to be opened.
func (f *Forge) checkProposal(ctx context.Context, c forge.Change) (forge.Change, error) {
	for _, b := range []string{c.Head, c.Base} {
		if !branchName(b) {
			return c, fmt.Errorf("%w: %q is no name of a branch", forge.ErrInvalid, b)
		}
	}
	head, err := f.ref(ctx, branchPrefix+c.Head)
	if err != nil {
		return c, err
	}
	base, err := f.ref(ctx, branchPrefix+c.Base)
	if err != nil {
		return c, err
	}
	switch {
	case head == "":
		return c, fmt.Errorf("head branch %s: %w", git.Escape(c.Head), forge.ErrNotFound)
	case base == "":
		return c, fmt.Errorf("base branch %s: %w", git.Escape(c.Base), forge.ErrNotFound)
	case c.HeadAt != "" && c.HeadAt != head:
		return c, fmt.Errorf("%w: %s is at %.12s, not at %.12s as it is to be proposed", forge.ErrInvalid, git.Escape(c.Head), head, git.Escape(c.HeadAt))
	case c.BaseAt != "" && !git.ValidHash(c.BaseAt):
		return c, fmt.Errorf("%w: base commit %q is no object name", forge.ErrInvalid, c.BaseAt)
	}
	if merged, err := f.repo.IsAncestor(ctx, head, base); err != nil {
		return c, err
	} else if merged {
		return c, fmt.Errorf("%w: %s has no commit that %s does not have", forge.ErrInvalid, git.Escape(c.Head), git.Escape(c.Base))
	}
	if c.Issue != 0 {
		if _, err := f.Issue(ctx, c.Issue); err != nil {
			return c, err
		}
	}
	return complete(c, head, base)
}

func complete(c forge.Change, head, base string) (forge.Change, error) {
	c.Title = forge.OneLine(c.Title, maxTitle)
	c.Marker = forge.OneLine(c.Marker, 200)
	c.Author = forge.OneLine(c.Author, maxLogin)
	switch {
	case c.Title == "":
		return c, fmt.Errorf("%w: a change needs a title", forge.ErrInvalid)
	case len(c.Body) > maxBody:
		return c, fmt.Errorf("%w: the body has %d bytes, at most %d are allowed", forge.ErrInvalid, len(c.Body), maxBody)
	case c.Author == "" && c.Marker != "":
		c.Author = self
	case c.Author == "":
		c.Author = operator()
	}
	if c.BaseAt == "" {
		c.BaseAt = base
	}
	c.Body = strings.ToValidUTF8(c.Body, "\ufffd")
	c.State, c.HeadAt, c.Proposed, c.Created = open, head, head, now()
	return c, nil
}

// CloseChange closes an open change without merging it: its head is free for another. Closing a
// closed one succeeds; a merged one is forge.ErrInvalid.
func (f *Forge) CloseChange(ctx context.Context, n int64) (forge.Change, error) {
	var done forge.Change
	err := f.retry(ctx, func() error {
		e, doc, err := f.loadChange(ctx, n)
		if err != nil {
			return err
		}
		switch doc.Change.State {
		case merged:
			return fmt.Errorf("%w: it is merged already", forge.ErrInvalid)
		case open:
			doc.Change.State = closed
			if err := f.settle(ctx, e, doc, "closed"); err != nil {
				return err
			}
		}
		done, err = f.live(ctx, doc.Change)
		return err
	})
	if err != nil {
		return done, fmt.Errorf("close change %d: %w", n, err)
	}
	return done, nil
}

// settle writes a change that is not open any more and frees its head, in one transaction with
// what else is to move.
func (f *Forge) settle(ctx context.Context, e entry, doc changeDoc, what string, with ...git.Update) error {
	hash, err := f.write(ctx, changeFile, doc, e.hash, fmt.Sprintf("change %d: %s", e.n, what))
	if err != nil {
		return err
	}
	updates := append(with, git.Update{Ref: e.ref, New: hash, Old: e.hash})
	index := headRef(doc.Change.Head)
	at, err := f.ref(ctx, index)
	if err != nil {
		return err
	}
	if at != "" {
		ours, err := f.repo.IsAncestor(ctx, at, e.hash)
		if err != nil && !errors.Is(err, git.ErrNoCommit) {
			return err
		}
		if ours {
			updates = append(updates, git.Update{Ref: index, Old: at})
		}
	}
	return f.repo.UpdateRefs(ctx, updates...)
}

func (f *Forge) loadChange(ctx context.Context, n int64) (entry, changeDoc, error) {
	e, err := f.load(ctx, changePrefix, changeFile, n)
	if err != nil {
		return entry{}, changeDoc{}, err
	}
	doc, err := f.asChange(e)
	return e, doc, err
}

// live fills in where the head branch is now.
func (f *Forge) live(ctx context.Context, c forge.Change) (forge.Change, error) {
	at, err := f.ref(ctx, branchPrefix+c.Head)
	c.HeadAt = at
	return c, err
}
