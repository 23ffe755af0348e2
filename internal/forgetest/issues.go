package forgetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"interlock/internal/forge"
)

func base(t *testing.T, r *room) {
	f := r.Open(t)
	name, hash, err := f.Base(r.ctx, "")
	r.must(err)
	if ref := "refs/heads/" + name; name != r.Base || r.refs(ref)[ref] != hash {
		t.Errorf("base is %s at %s", name, hash)
	}
	other := r.branch("release/1.0", "x")
	if name, hash, err = f.Base(r.ctx, "release/1.0"); err != nil || name != "release/1.0" || hash != other {
		t.Errorf("named base: %s at %s, %v", name, hash, err)
	}
	for _, bad := range []string{"nowhere", "release", "-x", "a..b", "a b", "refs/heads/" + r.Base} {
		if _, _, err := f.Base(r.ctx, bad); !errors.Is(err, forge.ErrNotFound) {
			t.Errorf("base %q: %v", bad, err)
		}
	}
	if f.Name() == "" || f.Remote() != r.Remote {
		t.Errorf("name %q, remote %q", f.Name(), f.Remote())
	}
}

func issues(t *testing.T, r *room) {
	f := r.Open(t)
	none, err := f.Issues(r.ctx, forge.Filter{})
	if err != nil || none == nil || len(none) != 0 {
		t.Errorf("no issues: %v, %v", none, err)
	}
	one := r.NewIssue(t, "one", "first body", "bug", "ready")
	two := r.NewIssue(t, "two", "", "bug")
	three := r.NewIssue(t, "three", "")
	r.CloseIssue(t, two)
	got, err := f.Issue(r.ctx, one)
	r.must(err)
	if got.Number != one || got.Title != "one" || got.Body != "first body" || got.State != "open" || got.Author == "" ||
		!slices.Equal(got.Labels, []string{"bug", "ready"}) || got.Created.IsZero() {
		t.Errorf("issue %+v", got)
	}
	for _, c := range []struct {
		filter forge.Filter
		want   []int64
	}{
		{forge.Filter{}, []int64{one, three}},
		{forge.Filter{State: "open"}, []int64{one, three}},
		{forge.Filter{State: "closed"}, []int64{two}},
		{forge.Filter{State: "all"}, []int64{one, two, three}},
		{forge.Filter{Labels: []string{"bug"}}, []int64{one}},
		{forge.Filter{Labels: []string{"bug", "ready"}}, []int64{one}},
		{forge.Filter{Labels: []string{"ready", "nobody-has-this"}}, nil},
		{forge.Filter{State: "closed", Labels: []string{"bug"}}, []int64{two}},
	} {
		list, err := f.Issues(r.ctx, c.filter)
		r.must(err)
		var numbers []int64
		for _, i := range list {
			numbers = append(numbers, i.Number)
		}
		if !slices.Equal(numbers, c.want) {
			t.Errorf("%+v: %v, want %v", c.filter, numbers, c.want)
		}
	}
	if _, err := f.Issues(r.ctx, forge.Filter{State: "odd"}); !errors.Is(err, forge.ErrInvalid) {
		t.Errorf("an unknown state: %v", err)
	}
	for _, n := range []int64{99, 0, -1, 1 << 62} {
		if _, err := f.Issue(r.ctx, n); !errors.Is(err, forge.ErrNotFound) {
			t.Errorf("issue %d: %v", n, err)
		}
		if err := f.SetMark(r.ctx, n, forge.Mark{Nonce: "x", Login: "bot"}); !errors.Is(err, forge.ErrNotFound) {
			t.Errorf("mark issue %d: %v", n, err)
		}
		if _, err := f.Comment(r.ctx, n, "key", "x"); !errors.Is(err, forge.ErrNotFound) {
			t.Errorf("comment issue %d: %v", n, err)
		}
	}
}

// issueText: text comes back as it went in; a title is one line.
func issueText(t *testing.T, r *room) {
	f := r.Open(t)
	body := "Größe 数\n\n```go\nx := \"<a & b>\"\n```\n\ttab \u202e <!-- kept as written --> 🎉"
	n := r.NewIssue(t, "a title\nof two lines 数", body, "größe: 1/2")
	got, err := f.Issue(r.ctx, n)
	r.must(err)
	if got.Title != "a title of two lines 数" || got.Body != body || got.Labels[0] != "größe: 1/2" {
		t.Errorf("issue %+v", got)
	}
	c, err := f.Comment(r.ctx, n, "key", body)
	r.must(err)
	if got, err = f.Issue(r.ctx, n); err != nil || len(got.Comments) != 1 || got.Comments[0] != c || c.Body != body {
		t.Errorf("comment %+v, %v", c, err)
	}
}

func mark(t *testing.T, r *room) {
	f := r.Open(t)
	n := r.NewIssue(t, "one", "", "bug")
	m := forge.Mark{Nonce: "nonce-a", Login: "bot", Label: "in work", Text: "claimed by host a"}
	for range 2 { // the answer to the first was lost
		r.must(f.SetMark(r.ctx, n, m))
	}
	got, err := r.Open(t).Issue(r.ctx, n)
	r.must(err)
	if !slices.Equal(got.Assignees, []string{"bot"}) || !slices.Equal(got.Labels, []string{"bug", "in work"}) ||
		len(got.Comments) != 1 || got.Comments[0].Body != m.Text || got.Comments[0].Key != "mark:nonce-a" {
		t.Errorf("marked: %+v", got)
	}
	r.must(f.ClearMark(r.ctx, n, "nonce-of-nobody", ""))
	for range 2 {
		r.must(f.ClearMark(r.ctx, n, m.Nonce, "in review"))
	}
	if got, err = f.Issue(r.ctx, n); err != nil || len(got.Assignees) != 0 ||
		!slices.Equal(got.Labels, []string{"bug", "in review"}) || len(got.Comments) != 1 {
		t.Errorf("cleared: %+v, %v", got, err)
	}
	r.CloseIssue(t, n)
	if err := f.SetMark(r.ctx, n, m); !errors.Is(err, forge.ErrClosed) {
		t.Errorf("mark a closed issue: %v", err)
	}
	if got, err = f.Issue(r.ctx, n); err != nil || len(got.Assignees) != 0 || slices.Contains(got.Labels, "in work") {
		t.Errorf("a refused mark left %+v, %v", got, err)
	}
	before := got.Labels
	if err := f.ClearMark(r.ctx, n, m.Nonce, "late"); err != nil {
		t.Errorf("clear on a closed issue: %v", err)
	}
	if got, err = f.Issue(r.ctx, n); err != nil || !slices.Equal(got.Labels, before) {
		t.Errorf("a closed issue was given a label: %q, before %q, %v", got.Labels, before, err)
	}
}

// markOfOthers: what was there before a mark, or what another mark needs, stays.
func markOfOthers(t *testing.T, r *room) {
	f := r.Open(t)
	n := r.NewIssue(t, "one", "", "in work")
	r.must(f.SetMark(r.ctx, n, forge.Mark{Nonce: "a", Login: "bot", Label: "in work"}))
	r.must(f.SetMark(r.ctx, n, forge.Mark{Nonce: "b", Login: "bot", Label: "in work"}))
	r.must(f.ClearMark(r.ctx, n, "a", ""))
	got, err := f.Issue(r.ctx, n)
	r.must(err)
	if !slices.Equal(got.Assignees, []string{"bot"}) {
		t.Errorf("the other mark lost its assignee: %+v", got)
	}
	r.must(f.ClearMark(r.ctx, n, "b", ""))
	if got, err = f.Issue(r.ctx, n); err != nil || len(got.Assignees) != 0 || !slices.Equal(got.Labels, []string{"in work"}) {
		t.Errorf("cleared: %+v, %v", got, err)
	}
}

func commentOnce(t *testing.T, r *room) {
	f := r.Open(t)
	n := r.NewIssue(t, "one", "")
	first, err := f.Comment(r.ctx, n, "run-1:parked", "parked")
	r.must(err)
	again, err := r.Open(t).Comment(r.ctx, n, "run-1:parked", "parked, other words")
	r.must(err)
	if first != again || first.ID == 0 || first.Key != "run-1:parked" {
		t.Errorf("%+v, then %+v", first, again)
	}
	if _, err := f.Comment(r.ctx, n, "", "no key"); !errors.Is(err, forge.ErrInvalid) {
		t.Errorf("without a key: %v", err)
	}
	if _, err := f.Comment(r.ctx, n, "huge", strings.Repeat("x", 2<<20)); !errors.Is(err, forge.ErrInvalid) {
		t.Errorf("a huge one: %v", err)
	}
	r.CloseIssue(t, n)
	_, err = f.Comment(r.ctx, n, "late", "on a closed issue")
	r.must(err)
	got, err := f.Issue(r.ctx, n)
	if err != nil || len(got.Comments) != 2 {
		t.Errorf("comments %+v, %v", got.Comments, err)
	}
}

// commentRace: 16 commenters lose none of their comments, and one key is one comment.
func commentRace(t *testing.T, r *room) {
	const writers = 16
	n := r.NewIssue(t, "one", "")
	clients := make([]forge.Forge, writers)
	for i := range clients {
		clients[i] = r.Open(t)
	}
	var mu sync.Mutex
	shared := map[int64]bool{}
	together(writers, func(i int) {
		if _, err := clients[i].Comment(r.ctx, n, fmt.Sprintf("key-%d", i), fmt.Sprintf("comment %d", i)); err != nil {
			t.Errorf("commenter %d: %v", i, err)
		}
		c, err := clients[i].Comment(r.ctx, n, "the same", fmt.Sprintf("by %d", i))
		if err != nil {
			t.Errorf("commenter %d: %v", i, err)
		}
		mu.Lock()
		defer mu.Unlock()
		shared[c.ID] = true
	})
	got, err := clients[0].Issue(r.ctx, n)
	r.must(err)
	keys, ids := map[string]int{}, map[int64]int{}
	for _, c := range got.Comments {
		keys[c.Key]++
		ids[c.ID]++
	}
	if len(got.Comments) != writers+1 || len(keys) != writers+1 || len(ids) != writers+1 || len(shared) != 1 {
		t.Errorf("%d comments, keys %v, ids %v, shared %v", len(got.Comments), keys, ids, shared)
	}
}
