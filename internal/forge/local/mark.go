package local

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"interlock/internal/forge"
)

// SetMark implements forge.Forge: the login among the assignees, the label, and one comment with
// the key "mark:<nonce>". What the mark added is remembered in the issue.
func (f *Forge) SetMark(ctx context.Context, n int64, m forge.Mark) error {
	if m.Nonce == "" || len(m.Nonce) > 128 || len(m.Login) > maxLogin {
		return fmt.Errorf("mark issue %d: %w: nonce or login is malformed", n, forge.ErrInvalid)
	}
	label, err := oneLabel(m.Label)
	if err != nil {
		return fmt.Errorf("mark issue %d: %w", n, err)
	}
	_, err = f.edit(ctx, n, "mark", func(doc *issueDoc) (bool, error) {
		if doc.Issue.State != open {
			return false, forge.ErrClosed
		}
		return setMark(doc, m, label)
	})
	return err
}

func setMark(doc *issueDoc, m forge.Mark, label string) (changed bool, err error) {
	at := slices.IndexFunc(doc.Marks, func(d markDoc) bool { return d.Nonce == m.Nonce })
	if at >= 0 && (doc.Marks[at].Login != m.Login || doc.Marks[at].Label != label) {
		clearMark(doc, m.Nonce)
		at = -1
	}
	if at < 0 {
		doc.Marks, changed = append(doc.Marks, markDoc{Nonce: m.Nonce, Login: m.Login, Label: label}), true
		at = len(doc.Marks) - 1
	}
	mark := &doc.Marks[at]
	if add(&doc.Issue.Assignees, m.Login) {
		mark.AddedLogin, changed = true, true
	}
	if stand(doc, label) {
		changed = true
	}
	if add(&doc.Issue.Labels, label) {
		mark.AddedLabel, changed = true, true
	}
	if m.Text != "" {
		_, added, err := comment(doc, "mark:"+m.Nonce, m.Text)
		if err != nil {
			return false, err
		}
		changed = changed || added
	}
	return changed, nil
}

// ClearMark implements forge.Forge.
func (f *Forge) ClearMark(ctx context.Context, n int64, nonce, then string) error {
	label, err := oneLabel(then)
	if err != nil {
		return fmt.Errorf("clear the mark of issue %d: %w", n, err)
	}
	_, err = f.edit(ctx, n, "mark off", func(doc *issueDoc) (bool, error) {
		changed := clearMark(doc, nonce)
		if doc.Issue.State != open {
			return changed, nil
		}
		changed = stand(doc, label) || changed
		return add(&doc.Issue.Labels, label) || changed, nil
	})
	return err
}

// stand takes off the labels of ours that another one, which is to come, makes untrue. Those of
// marks that are there stay: they are for their holder to take off.
func stand(doc *issueDoc, label string) bool {
	if !strings.HasPrefix(label, forge.LabelPrefix) {
		return false
	}
	before := len(doc.Issue.Labels)
	doc.Issue.Labels = slices.DeleteFunc(doc.Issue.Labels, func(have string) bool {
		return have != label && strings.HasPrefix(have, forge.LabelPrefix) &&
			!slices.ContainsFunc(doc.Marks, func(d markDoc) bool { return d.Label == have })
	})
	return len(doc.Issue.Labels) != before
}

// clearMark takes off what the mark added. What another mark needs as well is left to that one:
// it is then the other's to take off.
func clearMark(doc *issueDoc, nonce string) bool {
	at := slices.IndexFunc(doc.Marks, func(d markDoc) bool { return d.Nonce == nonce })
	if at < 0 {
		return false
	}
	mark := doc.Marks[at]
	doc.Marks = slices.Delete(doc.Marks, at, at+1)
	if mark.AddedLogin && !inherit(doc.Marks, func(d *markDoc) bool {
		same := d.Login == mark.Login
		d.AddedLogin = d.AddedLogin || same
		return same
	}) {
		drop(&doc.Issue.Assignees, mark.Login)
	}
	if mark.AddedLabel && !inherit(doc.Marks, func(d *markDoc) bool {
		same := d.Label == mark.Label
		d.AddedLabel = d.AddedLabel || same
		return same
	}) {
		drop(&doc.Issue.Labels, mark.Label)
	}
	return true
}

// inherit offers what is to be taken off to the marks that are left; the first that needs it
// takes it over.
func inherit(marks []markDoc, take func(*markDoc) bool) bool {
	for i := range marks {
		if take(&marks[i]) {
			return true
		}
	}
	return false
}

// add puts s into the list if it is not there, and reports whether it did.
func add(list *[]string, s string) bool {
	if s == "" || slices.Contains(*list, s) {
		return false
	}
	*list = append(*list, s)
	return true
}

func drop(list *[]string, s string) {
	*list = slices.DeleteFunc(*list, func(have string) bool { return have == s })
}

func oneLabel(label string) (string, error) {
	if label == "" {
		return "", nil
	}
	clean, err := cleanLabels([]string{label})
	if err != nil {
		return "", err
	}
	return clean[0], nil
}
