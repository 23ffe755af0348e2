package storetest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"interlock/internal/run"
	"interlock/internal/store"
)

func claim(t *testing.T, o Opened) {
	want := newRun("run-1", 1)
	want.Effects = []run.Effect{{Kind: run.EffectNote, Key: "note:1", Text: "text"}}
	want.Created = time.Date(2001, 2, 3, 4, 5, 6, 7, time.FixedZone("east", 3600))
	l, r, err := o.Store.Claim(t.Context(), holder("first"), want, TTL)
	if err != nil {
		t.Fatal(err)
	}
	if l.Key != store.Key(want.Repo, want.Issue) || l.Holder != holder("first") || l.Fence != 1 || l.Expires != o.Clock.Now()+TTL {
		t.Errorf("granted %+v", l)
	}
	want.Created = want.Created.UTC()
	want.Updated, want.Revision, want.Fence = o.Clock.Wall().UTC(), 1, l.Fence
	for what, got := range map[string]run.Run{
		"returned":              r,
		"loaded":                must[run.Run](t)(o.Store.Load(t.Context(), "run-1")),
		"loaded by another one": must[run.Run](t)(o.Again(t).Load(t.Context(), "run-1")),
	} {
		if text(t, got) != text(t, want) {
			t.Errorf("%s: %s\nwant: %s", what, text(t, got), text(t, want))
		}
	}
}

func claimArguments(t *testing.T, o Opened) {
	for what, change := range map[string]func(*run.Run){
		"no id":         func(r *run.Run) { r.ID = "" },
		"no repository": func(r *run.Run) { r.Repo = "" },
		"no issue":      func(r *run.Run) { r.Issue = 0 },
		"not live":      func(r *run.Run) { r.State = run.Parked },
		"two effects of one key": func(r *run.Run) {
			r.Effects = []run.Effect{{Kind: run.EffectNote, Key: "k"}, {Kind: run.EffectNote, Key: "k"}}
		},
	} {
		r := newRun("run-1", 1)
		change(&r)
		if _, _, err := o.Store.Claim(t.Context(), holder("first"), r, TTL); err == nil {
			t.Errorf("%s: claimed", what)
		}
		wantNothing(t, o.Store, 1)
	}
}

// wantNothing wants neither a run nor a lease for the issue of newRun.
func wantNothing(t *testing.T, s store.Store, issue int64) {
	t.Helper()
	if runs := must[[]run.Run](t)(s.List(t.Context(), store.Filter{Issue: issue})); len(runs) != 0 {
		t.Errorf("there are runs: %v", runs)
	}
	if l, ok, err := s.Controls().Lease(t.Context(), store.Key("local:1-2-3", issue)); ok || err != nil {
		t.Errorf("there is a lease: %v, %v", l, err)
	}
}

func claimHeld(t *testing.T, o Opened) {
	l := acquire(t, o.Store, "first", store.Key("local:1-2-3", 1))
	_, _, err := o.Store.Claim(t.Context(), holder("second"), newRun("run-1", 1), TTL)
	if held := wantHeld(t, "claim", err); held.Lease != l {
		t.Errorf("held by %v, want %v", held.Lease, l)
	}
	wantErr(t, "load", second(o.Store.Load(t.Context(), "run-1")), store.ErrNotFound)
	if _, _, err := o.Store.Claim(t.Context(), holder("first"), newRun("run-1", 1), TTL); err != nil {
		t.Errorf("claim by the holder: %v", err)
	}
}

func claimDuplicate(t *testing.T, o Opened) {
	ctx := t.Context()
	l, r := claimed(t, o.Store, "first", "run-1", 1)
	before := everything(t, o.Store, r)
	_, _, err := o.Store.Claim(ctx, holder("first"), newRun("run-2", 1), 2*TTL)
	wantErr(t, "claim by the holder", err, store.ErrDuplicate)
	if after := everything(t, o.Store, r); after != before {
		t.Errorf("the refused claim has changed something:\n%s\nbefore:\n%s", after, before)
	}
	if err := o.Store.Release(ctx, l); err != nil {
		t.Fatal(err)
	}
	_, _, err = o.Store.Claim(ctx, holder("second"), newRun("run-2", 1), TTL)
	wantErr(t, "claim of a free key with a live run", err, store.ErrDuplicate)
	if l, ok, _ := o.Store.Controls().Lease(ctx, l.Key); ok {
		t.Errorf("the refused claim has left a lease: %v", l)
	}
	_, _, err = o.Store.Claim(ctx, holder("second"), newRun("run-1", 2), TTL)
	wantErr(t, "claim with an id that is there", err, store.ErrDuplicate)
	wantNothing(t, o.Store, 2)
}

func claimRace(t *testing.T, o Opened) {
	stores := []store.Store{o.Store, o.Again(t)}
	for issue := range int64(10) {
		won := race(t, stores, acquirers, func(ctx context.Context, s store.Store, i int) (run.Lease, error) {
			l, _, err := s.Claim(ctx, holder(name("h", i)), newRun(name(name("run", int(issue)), i), issue+1), TTL)
			return l, err
		})
		runs := must[[]run.Run](t)(o.Store.List(t.Context(), store.Filter{Issue: issue + 1}))
		if len(runs) != 1 || runs[0].Fence != won.Fence {
			t.Fatalf("%d runs for one issue: %v", len(runs), runs)
		}
	}
}

// wholeRun saves a run from claim to acceptance and reads it back at each step.
func wholeRun(t *testing.T, o Opened) {
	l, r := claimed(t, o.Store, "first", "run-1", 1)
	head := run.Commit{Hash: "h1", Tree: "ht1"}
	tests := 3
	at := run.Claim{Ref: "refs/interlock/claims/1", Nonce: "nonce", Hash: "c1", Generation: 1}
	events := []run.Event{
		claimEvent,
		run.Settled{Key: "claim-ref:nonce", Claim: &at},
		run.Settled{Key: "mark:nonce"},
		run.SessionStarted{Sandbox: "full"},
		run.Delivered{Head: head},
		run.Verified{Verdict: run.Verdict{Passed: true, Head: head, Base: "b1", Tests: &tests}},
		run.Settled{Key: "push:interlock/1:h1", Claim: &at},
		run.Settled{Key: "propose:interlock/1", Change: 7},
		run.Settled{Key: "hand-off:interlock/1:7"},
		run.Settled{Key: "release:nonce"},
		run.Accepted{Head: "m1"},
	}
	for i, e := range events {
		o.Clock.Advance(time.Second)
		r = step(t, o.Store, l, r, e)
		if want := int64(i + 2); r.Revision != want {
			t.Errorf("after %s: revision %d, want %d", e.Kind(), r.Revision, want)
		}
		if kept := must[run.Run](t)(o.Store.Load(t.Context(), r.ID)); text(t, kept) != text(t, r) {
			t.Errorf("after %s: loaded %s\nsaved %s", e.Kind(), text(t, kept), text(t, r))
		}
	}
	if r.State != run.Done || !r.Updated.Equal(o.Clock.Wall()) || r.Created.Equal(r.Updated) {
		t.Errorf("ended as %s", text(t, r))
	}
	h := must[store.History](t)(o.Store.History(t.Context(), r.ID))
	wantEvents(t, h, events)
	for _, e := range h.Effects {
		if e.Status != "settled" {
			t.Errorf("effect %s is %s", e.Effect.Key, e.Status)
		}
	}
	if len(h.Effects) != 6 {
		t.Errorf("%d effects, want 6", len(h.Effects))
	}
}

// wantEvents wants exactly these events in this order, each readable again.
func wantEvents(t *testing.T, h store.History, events []run.Event) {
	t.Helper()
	var got []run.Event
	for i, rec := range h.Events {
		e, err := run.DecodeEvent(rec.Kind, rec.Data)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
		if i > 0 && rec.Seq <= h.Events[i-1].Seq {
			t.Errorf("event %d has the number %d after %d", i, rec.Seq, h.Events[i-1].Seq)
		}
	}
	if text(t, got) != text(t, events) {
		t.Errorf("events %s\nwant %s", text(t, got), text(t, events))
	}
}

func effect(key string) run.Effect {
	return run.Effect{Kind: run.EffectNote, Key: key, Text: "text " + key}
}

// effects: the pending rows are exactly what was saved, in that order, and history says what
// became of each.
func effects(t *testing.T, o Opened) {
	l, r := claimed(t, o.Store, "first", "run-1", 1)
	save := func(events []run.Event, keys ...string) {
		t.Helper()
		r.Effects = nil
		for _, k := range keys {
			r.Effects = append(r.Effects, effect(k))
		}
		want := r.Effects
		saved, err := o.Store.Save(t.Context(), l, r, events...)
		if err != nil {
			t.Fatal(err)
		}
		r = must[run.Run](t)(o.Store.Load(t.Context(), r.ID))
		if !slices.Equal(r.Effects, want) || !slices.Equal(saved.Effects, want) {
			t.Errorf("pending %v, saved %v, want %v", r.Effects, saved.Effects, want)
		}
	}
	save(nil, "a", "b", "c", "d")
	save([]run.Event{run.Settled{Key: "a"}}, "b", "c", "d")
	save(nil, "new", "d", "b") // one in front, two changed places, one withdrawn
	save([]run.Event{run.Settled{Key: "new"}, run.Settled{Key: "d"}}, "b", "e")
	save(nil)
	want := map[string]string{"a": "settled", "b": "withdrawn", "c": "withdrawn", "d": "settled", "new": "settled", "e": "withdrawn"}
	h := must[store.History](t)(o.Store.History(t.Context(), r.ID))
	for i, e := range h.Effects {
		if e.Status != want[e.Effect.Key] || e.Effect != effect(e.Effect.Key) {
			t.Errorf("effect %+v, want %s", e, want[e.Effect.Key])
		}
		if i > 0 && e.Seq <= h.Effects[i-1].Seq {
			t.Errorf("effect %d has the number %d after %d", i, e.Seq, h.Effects[i-1].Seq)
		}
	}
	if len(h.Effects) != len(want) {
		t.Errorf("%d effects, want %d", len(h.Effects), len(want))
	}
}

// effectPlannedAnew: an effect that was settled or withdrawn may be planned again, as a new row.
func effectPlannedAnew(t *testing.T, o Opened) {
	l, r := claimed(t, o.Store, "first", "run-1", 1)
	save := func(events []run.Event, pending ...run.Effect) {
		t.Helper()
		r.Effects = pending
		r = must[run.Run](t)(o.Store.Save(t.Context(), l, r, events...))
	}
	save(nil, effect("a"))
	save([]run.Event{run.Settled{Key: "a"}}, effect("a"))
	save(nil)
	save(nil, effect("a"))
	changed := effect("a")
	changed.Text = "another text"
	save(nil, changed)
	h := must[store.History](t)(o.Store.History(t.Context(), r.ID))
	var got []string
	for _, e := range h.Effects {
		got = append(got, e.Status+": "+e.Effect.Text)
	}
	if want := []string{"settled: text a", "withdrawn: text a", "pending: another text"}; !slices.Equal(got, want) {
		t.Errorf("effects %q, want %q", got, want)
	}
}

func stale(t *testing.T, o Opened) {
	l, r := claimed(t, o.Store, "first", "run-1", 1)
	next := step(t, o.Store, l, r, claimEvent)
	before := everything(t, o.Store, r)
	for _, revision := range []int64{r.Revision, 0, -1, next.Revision + 1} {
		old := r
		old.Revision = revision
		_, err := o.Store.Save(t.Context(), l, old, claimEvent)
		wantErr(t, "save of an old revision", err, store.ErrStale)
	}
	if after := everything(t, o.Store, r); after != before {
		t.Errorf("a stale save has changed something:\n%s\nbefore:\n%s", after, before)
	}
	if _, err := o.Store.Save(t.Context(), l, next, run.Renewed{}); err != nil {
		t.Errorf("the present revision cannot be saved: %v", err)
	}
}

// unwritable is an event that cannot be kept.
type unwritable struct{ C chan int }

func (unwritable) Kind() string { return "unwritable" }

// failedSave: whatever makes a save fail, and however late, nothing of it is kept.
func failedSave(t *testing.T, o Opened) {
	l, r := claimed(t, o.Store, "first", "run-1", 1)
	r = step(t, o.Store, l, r, claimEvent)
	before := everything(t, o.Store, r)
	good := run.Settled{Key: r.Effects[0].Key, Claim: &run.Claim{Nonce: "nonce", Hash: "c1"}}
	for what, change := range map[string]func(l *run.Lease, r *run.Run, events *[]run.Event){
		"fenced":               func(l *run.Lease, r *run.Run, _ *[]run.Event) { l.Fence++ },
		"stale":                func(_ *run.Lease, r *run.Run, _ *[]run.Event) { r.Revision-- },
		"another id":           func(_ *run.Lease, r *run.Run, _ *[]run.Event) { r.ID = "run-9" },
		"a nil event":          func(_ *run.Lease, _ *run.Run, e *[]run.Event) { *e = append(*e, nil) },
		"an unwritable event":  func(_ *run.Lease, _ *run.Run, e *[]run.Event) { *e = append(*e, unwritable{}) },
		"one effect key twice": func(_ *run.Lease, r *run.Run, _ *[]run.Event) { r.Effects = append(r.Effects, r.Effects[0]) },
	} {
		lease, next, events := l, r, []run.Event{good}
		next.State, next.Reason, next.Effects = run.Parked, "changed", append(slices.Clone(r.Effects[1:]), effect("new"))
		change(&lease, &next, &events)
		if _, err := o.Store.Save(t.Context(), lease, next, events...); err == nil {
			t.Errorf("%s: saved", what)
		}
		if after := everything(t, o.Store, r); after != before {
			t.Errorf("%s: the failed save has changed something:\n%s\nbefore:\n%s", what, after, before)
		}
	}
	if _, err := o.Store.Save(t.Context(), l, r, good); err != nil {
		t.Errorf("after the failed ones: %v", err)
	}
}

// saveOfAnotherIssue: the lease of one issue is no right to write another's run.
func saveOfAnotherIssue(t *testing.T, o Opened) {
	l1, r1 := claimed(t, o.Store, "first", "run-1", 1)
	l2, r2 := claimed(t, o.Store, "first", "run-2", 2)
	before := everything(t, o.Store, r1) + everything(t, o.Store, r2)
	_, err := o.Store.Save(t.Context(), l1, r2)
	wantErr(t, "save with the lease of another issue", err, store.ErrFenced)
	moved := r2
	moved.Issue = r1.Issue
	for _, state := range []run.State{run.Queued, run.Parked} {
		moved.State = state
		if _, err = o.Store.Save(t.Context(), l1, moved); err == nil || !strings.Contains(err.Error(), "cannot move") {
			t.Errorf("a run was moved to another issue: %v", err)
		}
	}
	err = o.Store.PutSession(t.Context(), l1, store.Session{ID: "s", Run: "run-2"})
	wantErr(t, "session with the lease of another issue", err, store.ErrFenced)
	if after := everything(t, o.Store, r1) + everything(t, o.Store, r2); after != before {
		t.Errorf("a refused write has changed something:\n%s\nbefore:\n%s", after, before)
	}
	if _, err = o.Store.Save(t.Context(), l2, r2); err != nil {
		t.Error(err)
	}
}

// neighbours: operations of many callers at once; those that are refused harm none of the others.
func neighbours(t *testing.T, o Opened) {
	const callers, saves = 16, 10
	stores := []store.Store{o.Store, o.Again(t)}
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			s := stores[i%2]
			l, r, err := s.Claim(t.Context(), holder(name("h", i)), newRun(name("run", i), int64(i+1)), TTL)
			for n := 0; err == nil && n < saves; n++ {
				old := r
				if r, err = s.Save(t.Context(), l, r, run.Failed{Reason: name("save", n)}); err != nil {
					break
				}
				// What was acknowledged is seen at once, from everywhere, and reading is never refused.
				kept, e := stores[(i+1)%2].Load(t.Context(), r.ID)
				if e != nil || kept.Revision != r.Revision {
					t.Errorf("caller %d: read revision %d, %v, after saving %d", i, kept.Revision, e, r.Revision)
				}
				if all, e := s.List(t.Context(), store.Filter{}); e != nil || len(all) == 0 {
					t.Errorf("caller %d: listed %d runs, %v", i, len(all), e)
				}
				_, e = s.Save(t.Context(), l, old, run.Failed{Reason: "stale"})
				wantErr(t, "stale neighbour", e, store.ErrStale)
				forged := l
				forged.Fence++
				wantErr(t, "fenced neighbour", s.Release(t.Context(), forged), store.ErrFenced)
				_, _, e = s.Claim(t.Context(), l.Holder, newRun(name("run", i)+"b", int64(i+1)), TTL)
				wantErr(t, "duplicate neighbour", e, store.ErrDuplicate)
			}
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	for i := range callers {
		h := must[store.History](t)(o.Store.History(t.Context(), name("run", i)))
		if len(h.Events) != saves {
			t.Errorf("run %d has %d events, want %d", i, len(h.Events), saves)
		}
	}
}
