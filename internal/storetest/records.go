package storetest

import (
	"context"
	"testing"
	"time"

	"interlock/internal/run"
	"interlock/internal/store"
)

func oneLiveRun(t *testing.T, o Opened) {
	ctx := t.Context()
	l, r := claimed(t, o.Store, "first", "run-1", 1)
	parked := step(t, o.Store, l, r, run.ParkedBecause{Reason: "reason"})
	_, other, err := o.Store.Claim(ctx, holder("first"), newRun("run-2", 1), TTL)
	if err != nil {
		t.Fatalf("a new run beside a parked one: %v", err)
	}
	parked.State = run.Implementing
	_, err = o.Store.Save(ctx, l, parked)
	wantErr(t, "two live runs", err, store.ErrDuplicate)
	live := must[[]run.Run](t)(o.Store.List(ctx, store.Filter{Repo: r.Repo, Issue: 1, Live: true}))
	if len(live) != 1 || live[0].ID != other.ID {
		t.Errorf("live: %s", text(t, live))
	}
}

func list(t *testing.T, o Opened) {
	ctx := t.Context()
	got := must[[]run.Run](t)(o.Store.List(ctx, store.Filter{}))
	if got == nil || len(got) != 0 {
		t.Errorf("an empty list is %#v", got)
	}
	for i := range 205 {
		r := newRun(name("run", i), int64(i+1))
		r.Effects = []run.Effect{effect(r.ID)}
		if i%2 == 1 {
			r.Repo = "local:other"
		}
		l, r, err := o.Store.Claim(ctx, holder("h"), r, TTL)
		if err != nil {
			t.Fatal(err)
		}
		if i == 204 {
			step(t, o.Store, l, r, run.CanceledBy{Reason: "enough"})
		}
		o.Clock.Advance(-time.Minute) // the wall clock may step back; the order stays
	}
	for what, c := range map[string]struct {
		filter       store.Filter
		count        int
		first, last_ string
	}{
		"all":         {store.Filter{}, 200, "run-204", "run-5"},
		"limit":       {store.Filter{Limit: 3}, 3, "run-204", "run-202"},
		"more":        {store.Filter{Limit: 1000}, 205, "run-204", "run-0"},
		"live":        {store.Filter{Live: true, Limit: 2}, 2, "run-203", "run-202"},
		"repository":  {store.Filter{Repo: "local:other", Limit: 2}, 2, "run-203", "run-201"},
		"issue":       {store.Filter{Issue: 7}, 1, "run-6", "run-6"},
		"both":        {store.Filter{Repo: "local:other", Issue: 8}, 1, "run-7", "run-7"},
		"none":        {store.Filter{Repo: "local:other", Issue: 7}, 0, "", ""},
		"not live":    {store.Filter{Issue: 205, Live: true}, 0, "", ""},
		"nothing new": {store.Filter{Repo: "nowhere"}, 0, "", ""},
	} {
		got := must[[]run.Run](t)(o.Store.List(ctx, c.filter))
		if len(got) != c.count || c.count > 0 && (got[0].ID != c.first || got[len(got)-1].ID != c.last_) {
			t.Errorf("%s: %d runs", what, len(got))
			continue
		}
		for _, r := range got {
			if kept := must[run.Run](t)(o.Store.Load(ctx, r.ID)); text(t, r) != text(t, kept) {
				t.Errorf("%s: listed %s\nloaded %s", what, text(t, r), text(t, kept))
			}
		}
	}
}

func sessions(t *testing.T, o Opened) {
	ctx := t.Context()
	l, r := claimed(t, o.Store, "first", "run-1", 1)
	a := store.Session{ID: "a", Run: r.ID, Attempt: 1, Kind: "agent", Handle: `{"pid":1}`, Dir: "/d", Log: "/l", Started: o.Clock.Wall().UTC()}
	b := store.Session{ID: "b", Run: r.ID, Attempt: 1, Kind: "check"}
	put := func(s store.Session) {
		t.Helper()
		if err := o.Store.PutSession(ctx, l, s); err != nil {
			t.Fatal(err)
		}
	}
	want := func(want ...store.Session) {
		t.Helper()
		if h := must[store.History](t)(o.Store.History(ctx, r.ID)); text(t, h.Sessions) != text(t, want) {
			t.Errorf("sessions %s\nwant %s", text(t, h.Sessions), text(t, want))
		}
	}
	put(a)
	want(a)
	put(b)
	a.Handle = `{"pid":2}`
	put(a)
	want(a, b)
	a.Ended = true
	put(a)
	put(a)
	want(a, b)
	running := a
	running.Ended = false
	put(running)
	want(a, b) // its tree was seen to be gone: that stays true
	l2, r2 := claimed(t, o.Store, "first", "run-2", 2)
	stolen := a
	stolen.Run = r2.ID
	if err := o.Store.PutSession(ctx, l2, stolen); err == nil {
		t.Error("a session was moved to another run")
	}
	want(a, b)
	if err := o.Store.PutSession(ctx, l, store.Session{Run: r.ID}); err == nil {
		t.Error("a session without an id was kept")
	}
	wantErr(t, "session of no run", o.Store.PutSession(ctx, l, store.Session{ID: "c", Run: "run-9"}), store.ErrNotFound)
}

func cancelRequest(t *testing.T, o Opened) {
	ctx, c := t.Context(), o.Again(t).Controls()
	_, r := claimed(t, o.Store, "first", "run-1", 1)
	want := func(reason string, asked bool) {
		t.Helper()
		got, ok, err := o.Store.Controls().Cancel(ctx, r.ID)
		if got != reason || ok != asked || err != nil {
			t.Errorf("asked %q, %v, %v; want %q, %v", got, ok, err, reason, asked)
		}
	}
	want("", false)
	for _, reason := range []string{"not needed", "not needed", "another reason"} {
		if err := c.RequestCancel(ctx, r.ID, reason); err != nil {
			t.Fatal(err)
		}
		want("not needed", true)
	}
	if kept := must[run.Run](t)(o.Store.Load(ctx, r.ID)); text(t, kept) != text(t, r) {
		t.Error("a request has changed the run itself")
	}
	wantErr(t, "request for no run", c.RequestCancel(ctx, "run-9", "reason"), store.ErrNotFound)
	_, _, err := c.Cancel(ctx, "run-9")
	wantErr(t, "question for no run", err, store.ErrNotFound)
}

func notFound(t *testing.T, o Opened) {
	l, r := claimed(t, o.Store, "first", "run-1", 1)
	r.ID = "run-9"
	wantErr(t, "load", second(o.Store.Load(t.Context(), "run-9")), store.ErrNotFound)
	wantErr(t, "history", second(o.Store.History(t.Context(), "run-9")), store.ErrNotFound)
	wantErr(t, "save of a live run", second(o.Store.Save(t.Context(), l, r)), store.ErrNotFound)
	r.State = run.Parked
	wantErr(t, "save", second(o.Store.Save(t.Context(), l, r)), store.ErrNotFound)
}

// endedContext: nothing is done for a caller who has gone.
func endedContext(t *testing.T, o Opened) {
	l, r := claimed(t, o.Store, "first", "run-1", 1)
	before := everything(t, o.Store, r)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := o.Store.Controls()
	for what, err := range map[string]error{
		"acquire":        second(o.Store.Acquire(ctx, holder("h"), "key", TTL, 0)),
		"renew":          second(o.Store.Renew(ctx, l, TTL)),
		"release":        o.Store.Release(ctx, l),
		"save":           second(o.Store.Save(ctx, l, r)),
		"put session":    o.Store.PutSession(ctx, l, store.Session{ID: "s", Run: r.ID}),
		"load":           second(o.Store.Load(ctx, r.ID)),
		"list":           second(o.Store.List(ctx, store.Filter{})),
		"history":        second(o.Store.History(ctx, r.ID)),
		"request cancel": c.RequestCancel(ctx, r.ID, "reason"),
		"installation":   second(c.Installation(ctx)),
	} {
		wantErr(t, what, err, context.Canceled)
	}
	_, _, err := c.Lease(ctx, "key")
	wantErr(t, "lease", err, context.Canceled)
	if after := everything(t, o.Store, r); after != before {
		t.Errorf("something has changed:\n%s\nbefore:\n%s", after, before)
	}
	// The writer is free and the lock is not left behind.
	step(t, o.Again(t), l, r, claimEvent)
}

// oddText: text from outside is kept as it is, and never becomes part of a statement.
func oddText(t *testing.T, o Opened) {
	odd := "'); DROP TABLE runs; --\x00\n\"\\ \u202e ? %s \U0001F512"
	r := newRun(odd, 1)
	r.Repo, r.Task.Title, r.Task.Body, r.Reason = odd, odd, odd, odd
	r.Effects = []run.Effect{{Kind: run.EffectNote, Key: odd, Text: odd}}
	l, r, err := o.Store.Claim(t.Context(), holder(odd), r, TTL)
	if err != nil {
		t.Fatal(err)
	}
	r = must[run.Run](t)(o.Store.Save(t.Context(), l, r, run.Failed{Reason: odd}))
	kept := must[run.Run](t)(o.Store.Load(t.Context(), odd))
	if text(t, kept) != text(t, r) || kept.Repo != odd || kept.Task.Body != odd || kept.Effects[0].Text != odd {
		t.Errorf("kept %s\nof %s", text(t, kept), text(t, r))
	}
	if got, ok, err := o.Store.Controls().Lease(t.Context(), l.Key); got != l || !ok || err != nil {
		t.Errorf("lease %v, %v, %v", got, ok, err)
	}
	if got := must[[]run.Run](t)(o.Store.List(t.Context(), store.Filter{Repo: odd})); len(got) != 1 {
		t.Errorf("%d runs", len(got))
	}
}

func installation(t *testing.T, o Opened) {
	id := must[string](t)(o.Store.Controls().Installation(t.Context()))
	if len(id) != 16 {
		t.Errorf("installation %q", id)
	}
	if again := must[string](t)(o.Again(t).Controls().Installation(t.Context())); again != id {
		t.Errorf("installation %q, then %q", id, again)
	}
}
