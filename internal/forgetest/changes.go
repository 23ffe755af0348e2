package forgetest

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"interlock/internal/forge"
)

func propose(t *testing.T, r *room) {
	f := r.Open(t)
	n := r.NewIssue(t, "one", "")
	_, at, err := f.Base(r.ctx, "")
	r.must(err)
	want := forge.Change{Issue: n, Title: "Mend it", Body: "It was broken.", Head: "interlock/1-mend", Base: r.Base, BaseAt: at, Marker: "run-1"}
	if _, err := f.Propose(r.ctx, want); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("without the head branch: %v", err)
	}
	head := r.branch(want.Head, "mended")
	for name, c := range map[string]struct {
		change func(*forge.Change)
		want   error
	}{
		"no such base":  {func(c *forge.Change) { c.Base = "nowhere" }, forge.ErrNotFound},
		"no such issue": {func(c *forge.Change) { c.Issue = 99 }, forge.ErrNotFound},
		"no title":      {func(c *forge.Change) { c.Title = " \n\u200b" }, forge.ErrInvalid},
		"base as head":  {func(c *forge.Change) { c.Head = r.Base }, forge.ErrInvalid},
		"another head":  {func(c *forge.Change) { c.HeadAt = at }, forge.ErrInvalid},
	} {
		bad := want
		c.change(&bad)
		if _, err := f.Propose(r.ctx, bad); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all, err := f.Changes(r.ctx, ""); err != nil || all == nil || len(all) != 0 {
		t.Errorf("refused proposals left %v, %v", all, err)
	}
	want.HeadAt = head
	made, err := f.Propose(r.ctx, want)
	r.must(err)
	if made.Number <= 0 || made.State != "open" || made.HeadAt != head || made.BaseAt != at || made.Issue != n ||
		made.Title != want.Title || made.Body != want.Body || made.Marker != want.Marker || made.Author == "" {
		t.Errorf("made %+v", made)
	}
	again, err := r.Open(t).Propose(r.ctx, want)
	if !errors.Is(err, forge.ErrExists) || again.Number != made.Number {
		t.Errorf("again: %+v, %v", again, err)
	}
	for _, head := range []string{"", want.Head} {
		if list, err := f.Changes(r.ctx, head); err != nil || len(list) != 1 || list[0] != made {
			t.Errorf("changes for %q: %+v, %v", head, list, err)
		}
	}
	if list, err := f.Changes(r.ctx, "other"); err != nil || len(list) != 0 {
		t.Errorf("changes for another head: %+v, %v", list, err)
	}
	moved := r.branch(want.Head, "mended better")
	if list, err := f.Changes(r.ctx, want.Head); err != nil || len(list) != 1 || list[0].HeadAt != moved {
		t.Errorf("after the branch moved to %s: %+v, %v", moved, list, err)
	}
}

// proposeRace: of 8 proposals for one head at once one opens a change, and all others name it.
func proposeRace(t *testing.T, r *room) {
	const proposers = 8
	clients := make([]forge.Forge, proposers)
	for i := range clients {
		clients[i] = r.Open(t)
	}
	for _, head := range []string{"interlock/1-a", "interlock/1-a/deeper", "x.y%2F"} {
		if head == "interlock/1-a/deeper" {
			r.force(r.engine(), "refs/heads/interlock/1-a", "") // the one cannot be beside the other
		}
		r.branch(head, "x")
		var mu sync.Mutex
		made, named := map[int64]int{}, map[int64]int{}
		together(proposers, func(i int) {
			c, err := clients[i].Propose(r.ctx, forge.Change{Title: "x", Head: head, Base: r.Base, Marker: "run"})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				made[c.Number]++
			case errors.Is(err, forge.ErrExists):
				named[c.Number]++
			default:
				t.Errorf("%s: proposer %d: %v", head, i, err)
			}
		})
		list, err := clients[0].Changes(r.ctx, head)
		r.must(err)
		if len(list) != 1 || len(made) != 1 || made[list[0].Number] != 1 || named[list[0].Number] != proposers-1 {
			t.Errorf("%s: made %v, named %v, changes %+v", head, made, named, list)
		}
	}
}

// proposeText: odd titles are made one line, or refused; nothing in between.
func proposeText(t *testing.T, r *room) {
	f := r.Open(t)
	r.branch("work", "x")
	c, err := f.Propose(r.ctx, forge.Change{Title: "Größe 数 🎉\nsecond line", Body: "a\n\n`b`\t<c>", Head: "work", Base: r.Base})
	r.must(err)
	if c.Title != "Größe 数 🎉 second line" || c.Body != "a\n\n`b`\t<c>" {
		t.Errorf("%+v", c)
	}
	r.branch("huge", "y")
	c, err = f.Propose(r.ctx, forge.Change{Title: strings.Repeat("ü", 100_000), Head: "huge", Base: r.Base})
	list, listErr := f.Changes(r.ctx, "huge")
	r.must(listErr)
	switch {
	case errors.Is(err, forge.ErrInvalid):
		if len(list) != 0 {
			t.Errorf("refused, but there is %+v", list)
		}
	case err != nil:
		t.Error(err)
	case len(list) != 1 || c.Title == "" || !utf8.ValidString(c.Title) || len(c.Title) > 1024:
		t.Errorf("title of %d bytes, %d changes", len(c.Title), len(list))
	}
}
