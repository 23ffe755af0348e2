package local

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"interlock/internal/forge"
	"interlock/internal/git"
)

// NewIssue files an issue and returns it with its number. An author "" is the person at this
// machine. ErrInvalid: no title or one of more than 255 characters, a body of more than 256 KiB.
func (f *Forge) NewIssue(ctx context.Context, title, body string, labels []string, author string) (forge.Issue, error) {
	is, _, err := f.file(ctx, title, body, labels, author, false)
	return is, err
}

// IssueOnce is NewIssue, but an open issue with the very same title and body is taken instead of a
// new one: made says whether one was filed. Of many who ask at once for the same one files it.
func (f *Forge) IssueOnce(ctx context.Context, title, body string, labels []string, author string) (is forge.Issue, made bool, err error) {
	return f.file(ctx, title, body, labels, author, true)
}

func (f *Forge) file(ctx context.Context, title, body string, labels []string, author string, once bool) (_ forge.Issue, made bool, err error) {
	title = strings.Join(strings.Fields(forge.CleanText(title)), " ")
	labels, err = cleanLabels(labels)
	if err != nil {
		return forge.Issue{}, false, err
	}
	switch n := len([]rune(title)); {
	case n == 0:
		return forge.Issue{}, false, fmt.Errorf("new issue: %w: it needs a title", forge.ErrInvalid)
	case n > maxTitle:
		return forge.Issue{}, false, fmt.Errorf("new issue: %w: the title has %d characters, at most %d are allowed; put the rest into the body", forge.ErrInvalid, n, maxTitle)
	case len(body) > maxBody:
		return forge.Issue{}, false, fmt.Errorf("new issue: %w: the body has %d bytes, at most %d are allowed", forge.ErrInvalid, len(body), maxBody)
	}
	if author = forge.OneLine(author, maxLogin); author == "" {
		author = operator()
	}
	at := now()
	doc := issueDoc{Format: format, Issue: forge.Issue{
		Title: title, Body: strings.ToValidUTF8(body, "\ufffd"), State: open, Labels: labels, Author: author,
		Assignees: []string{}, Comments: []forge.Comment{}, Created: at, Updated: at,
	}}
	err = f.retry(ctx, func() error {
		if once { // looked for before each try: who was faster took the number that we wanted
			same, err := f.same(ctx, doc.Issue)
			if err != nil || same != nil {
				if same != nil {
					doc.Issue, made = *same, false
				}
				return err
			}
		}
		made = true
		n, err := f.nextNumber(ctx, issuePrefix)
		if err != nil {
			return err
		}
		doc.Issue.Number = n
		hash, err := f.write(ctx, issueFile, doc, "", fmt.Sprintf("issue %d: filed", n))
		if err != nil {
			return err
		}
		return f.repo.UpdateRefs(ctx, git.Update{Ref: refOf(issuePrefix, n), New: hash})
	})
	if err != nil {
		return forge.Issue{}, false, fmt.Errorf("new issue: %w", err)
	}
	return doc.Issue, made, nil
}

// same returns the open issue with this title and body, nil if there is none.
func (f *Forge) same(ctx context.Context, want forge.Issue) (*forge.Issue, error) {
	open, err := f.Issues(ctx, forge.Filter{})
	if err != nil {
		return nil, err
	}
	for _, is := range open {
		if forge.TaskDigest(is.Title, is.Body) == forge.TaskDigest(want.Title, want.Body) {
			return &is, nil
		}
	}
	return nil, nil
}

// CloseIssue closes an issue; closing a closed one succeeds and writes nothing.
func (f *Forge) CloseIssue(ctx context.Context, n int64) (forge.Issue, error) {
	return f.edit(ctx, n, "closed", func(doc *issueDoc) (bool, error) {
		if doc.Issue.State == closed {
			return false, nil
		}
		doc.Issue.State = closed
		return true, nil
	})
}

// Issue implements forge.Forge.
func (f *Forge) Issue(ctx context.Context, n int64) (forge.Issue, error) {
	e, err := f.load(ctx, issuePrefix, issueFile, n)
	if err != nil {
		return forge.Issue{}, err
	}
	doc, err := f.asIssue(e)
	return doc.Issue, err
}

// Issues implements forge.Forge. An issue that cannot be read is in no list but that of all
// issues, where its state is "damaged" and its title says why; Damaged has the errors.
func (f *Forge) Issues(ctx context.Context, want forge.Filter) ([]forge.Issue, error) {
	state := want.State
	if state == "" {
		state = open
	}
	if state != open && state != closed && state != "all" {
		return nil, fmt.Errorf("list issues: %w: state %q is neither open, closed nor all", forge.ErrInvalid, want.State)
	}
	all, err := f.list(ctx, issuePrefix, issueFile)
	if err != nil {
		return nil, err
	}
	found := []forge.Issue{}
	for _, e := range all {
		doc, err := f.asIssue(e)
		i := doc.Issue
		if err != nil {
			i = forge.Issue{Number: e.n, State: damaged, Title: forge.OneLine("cannot be read: "+err.Error(), maxTitle),
				Labels: []string{}, Assignees: []string{}, Comments: []forge.Comment{}}
		}
		if (state == "all" || i.State == state) && !slices.ContainsFunc(want.Labels, func(l string) bool { return !slices.Contains(i.Labels, l) }) {
			found = append(found, i)
		}
	}
	return found, nil
}

// Damaged returns a *DamagedError for each issue and change that cannot be read.
func (f *Forge) Damaged(ctx context.Context) ([]error, error) {
	var bad []error
	issues, err := f.list(ctx, issuePrefix, issueFile)
	if err != nil {
		return nil, err
	}
	for _, e := range issues {
		if _, err := f.asIssue(e); err != nil {
			bad = append(bad, err)
		}
	}
	changes, err := f.list(ctx, changePrefix, changeFile)
	if err != nil {
		return nil, err
	}
	for _, e := range changes {
		if _, err := f.asChange(e); err != nil {
			bad = append(bad, err)
		}
	}
	return bad, nil
}

// edit changes one issue by compare-and-set. The function may be called many times, each time
// with the issue as it is then; false means that nothing is to be written.
func (f *Forge) edit(ctx context.Context, n int64, what string, change func(*issueDoc) (bool, error)) (forge.Issue, error) {
	var doc issueDoc
	err := f.retry(ctx, func() error {
		e, err := f.load(ctx, issuePrefix, issueFile, n)
		if err != nil {
			return err
		}
		if doc, err = f.asIssue(e); err != nil {
			return err
		}
		changed, err := change(&doc)
		if err != nil || !changed {
			return err
		}
		doc.Issue.Updated = now()
		hash, err := f.write(ctx, issueFile, doc, e.hash, fmt.Sprintf("issue %d: %s", n, what))
		if err != nil {
			return err
		}
		return f.repo.UpdateRefs(ctx, git.Update{Ref: e.ref, New: hash, Old: e.hash})
	})
	if err != nil {
		return forge.Issue{}, fmt.Errorf("issue %d: %w", n, err)
	}
	return doc.Issue, nil
}

// Comment implements forge.Forge.
func (f *Forge) Comment(ctx context.Context, n int64, key, body string) (forge.Comment, error) {
	if key == "" || len(key) > 200 {
		return forge.Comment{}, fmt.Errorf("comment on issue %d: %w: a comment needs a key of at most 200 bytes", n, forge.ErrInvalid)
	}
	var c forge.Comment
	_, err := f.edit(ctx, n, "comment", func(doc *issueDoc) (bool, error) {
		var added bool
		var err error
		c, added, err = comment(doc, key, body)
		return added, err
	})
	return c, err
}

// Say leaves a comment of a person's, each time that it is called. An author "" is the person at
// this machine. ErrInvalid: nothing to say, or more than 64 KiB.
func (f *Forge) Say(ctx context.Context, n int64, body, author string) (forge.Comment, error) {
	if author = forge.OneLine(author, maxLogin); author == "" {
		author = operator()
	}
	c := forge.Comment{Author: author, Body: strings.ToValidUTF8(body, "\ufffd"), Created: now()}
	switch {
	case strings.TrimSpace(body) == "":
		return c, fmt.Errorf("comment on issue %d: %w: there is nothing in it", n, forge.ErrInvalid)
	case len(body) > maxComment:
		return c, fmt.Errorf("comment on issue %d: %w: it has %d bytes, at most %d are allowed", n, forge.ErrInvalid, len(body), maxComment)
	}
	_, err := f.edit(ctx, n, "comment", func(doc *issueDoc) (bool, error) {
		c.ID = 1
		for _, have := range doc.Issue.Comments {
			c.ID = max(c.ID, have.ID+1)
		}
		doc.Issue.Comments = append(doc.Issue.Comments, c)
		return true, nil
	})
	return c, err
}

// Label puts labels on an issue and takes others off, and reports whether that changed anything.
// Those that say where an issue stands with Interlock are not a person's to set: ErrInvalid.
func (f *Forge) Label(ctx context.Context, n int64, on, off []string) (is forge.Issue, changed bool, err error) {
	if on, err = cleanLabels(on); err == nil {
		off, err = cleanLabels(off)
	}
	for _, l := range slices.Concat(on, off) {
		if strings.HasPrefix(l, forge.LabelPrefix) {
			err = fmt.Errorf("%w: labels that begin with %s say where the issue stands, and are set by what is done", forge.ErrInvalid, forge.LabelPrefix)
		}
	}
	if err != nil {
		return forge.Issue{}, false, fmt.Errorf("labels of issue %d: %w", n, err)
	}
	is, err = f.edit(ctx, n, "labels", func(doc *issueDoc) (bool, error) {
		changed = false
		for _, l := range on {
			changed = add(&doc.Issue.Labels, l) || changed
		}
		for _, l := range off {
			changed = slices.Contains(doc.Issue.Labels, l) || changed
			drop(&doc.Issue.Labels, l)
		}
		return changed, nil
	})
	return is, changed, err
}

// comment adds a comment unless its key is there already.
func comment(doc *issueDoc, key, body string) (forge.Comment, bool, error) {
	last := int64(0)
	for _, c := range doc.Issue.Comments {
		if c.Key == key {
			return c, false, nil
		}
		last = max(last, c.ID)
	}
	if len(body) > maxComment {
		return forge.Comment{}, false, fmt.Errorf("%w: the comment has %d bytes, at most %d are allowed", forge.ErrInvalid, len(body), maxComment)
	}
	c := forge.Comment{ID: last + 1, Key: key, Author: self, Body: strings.ToValidUTF8(body, "\ufffd"), Created: now()}
	doc.Issue.Comments = append(doc.Issue.Comments, c)
	return c, true, nil
}

func cleanLabels(labels []string) ([]string, error) {
	clean := []string{}
	for _, l := range labels {
		name := strings.Join(strings.Fields(forge.CleanText(l)), " ")
		if name == "" || len([]rune(name)) > maxLabel {
			return nil, fmt.Errorf("%w: label %q needs 1 to %d characters", forge.ErrInvalid, l, maxLabel)
		}
		if !slices.Contains(clean, name) {
			clean = append(clean, name)
		}
	}
	return clean, nil
}
