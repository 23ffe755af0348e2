package run_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"interlock/internal/run"
)

// states are all states of a run.
var states = []run.State{
	run.Queued, run.Claiming, run.Implementing, run.Verifying, run.Landing,
	run.InReview, run.Done, run.Parked, run.Canceled,
}

// event draws one event of one type with arbitrary content.
func event[E run.Event]() *rapid.Generator[run.Event] {
	return rapid.Map(rapid.Make[E](), func(e E) run.Event { return e })
}

// everyEvent has one generator for each type of event.
var everyEvent = []*rapid.Generator[run.Event]{
	event[run.Claimed](), event[run.Refused](), event[run.TakenOver](), event[run.Reconfigured](),
	event[run.SessionStarted](), event[run.SessionStopped](), event[run.Crashed](), event[run.Delivered](),
	event[run.Failed](), event[run.Verified](), event[run.BaseMoved](), event[run.Settled](), event[run.Renewed](),
	event[run.ParkedBecause](), event[run.CanceledBy](), event[run.Accepted](), event[run.Retried](),
}

// hashes are few, so that an old one comes back now and then.
var hashes = rapid.SampledFrom([]string{"h1", "h2", "h3"})

// fitting draws an event that a real engine could bring to r, right or slightly wrong.
func fitting(t *rapid.T, r run.Run) run.Event {
	hash := hashes.Draw(t, "hash")
	head := run.Commit{Hash: hash, Tree: "tree of " + hash}
	own := run.Claim{Ref: "ref", Nonce: rapid.SampledFrom([]string{"nonce", "nonce", "nonce", "other"}).Draw(t, "nonce"), Hash: "c" + hash}
	base := run.Base{Branch: "main", Commit: run.Commit{Hash: rapid.SampledFrom([]string{"b1", "b2"}).Draw(t, "base"), Tree: "bt"}}
	plan := r.Plan
	plan.Lane = rapid.SampledFrom([]run.Lane{run.LanePropose, run.LanePropose, run.LaneBuild}).Draw(t, "lane")
	plan.Attempts = rapid.IntRange(0, 4).Draw(t, "attempts")
	plan.Checks = rapid.SampledFrom([][]string{{"a"}, {"a"}, {"b"}}).Draw(t, "checks")
	settled := run.Settled{Change: int64(rapid.IntRange(0, 2).Draw(t, "change"))}
	if len(r.Effects) > 0 {
		// Mostly the first one, which is the one that is due.
		settled.Key = r.Effects[min(rapid.IntRange(0, 5).Draw(t, "which")/5, len(r.Effects)-1)].Key
	}
	if rapid.Bool().Draw(t, "with claim") {
		settled.Claim = &own
	}
	verdict := run.Verdict{Passed: rapid.Bool().Draw(t, "passed"), Head: rapid.SampledFrom([]run.Commit{r.Head, r.Head, head}).Draw(t, "verdict of"),
		Base: r.Base.Commit.Hash, Why: "why"}
	forward := []run.Event{
		run.Claimed{Base: base, Branch: "branch", Claim: run.Claim{Ref: "ref", Nonce: "nonce"}},
		settled, settled, settled,
		run.SessionStarted{Sandbox: "full"}, run.Delivered{Head: head}, run.Verified{Verdict: verdict},
	}
	aside := []run.Event{
		run.Refused{Reason: "refused"}, run.TakenOver{Proof: "proof"}, run.Reconfigured{Plan: plan},
		run.SessionStopped{Tip: hash}, run.Crashed{Tip: hash}, run.Failed{Reason: "failed", Tip: hash},
		run.BaseMoved{Base: base}, run.Renewed{Claim: own}, run.ParkedBecause{Reason: "parked", Silent: rapid.Bool().Draw(t, "silent")},
		run.CanceledBy{Reason: "canceled"}, run.Accepted{Head: "merged"}, run.Retried{Reason: "again", Allowed: 4},
	}
	if rapid.IntRange(0, 3).Draw(t, "way") > 0 {
		return rapid.SampledFrom(forward).Draw(t, "event")
	}
	return rapid.SampledFrom(aside).Draw(t, "event")
}

func fresh() run.Run {
	return run.Run{ID: "r1", Repo: "repo", Issue: 1, State: run.Queued,
		Plan: run.Plan{Lane: run.LanePropose, Checks: []string{"a"}, Attempts: 3}}
}

func shown(t *rapid.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestApplyHolds drives a run with events that fit or nearly fit and checks, after each, what must
// hold at every moment.
func TestApplyHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := fresh()
		r.Plan.Lane = rapid.SampledFrom([]run.Lane{run.LanePropose, run.LaneBuild}).Draw(t, "lane")
		var c counted
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			e := fitting(t, r)
			r.Effects, r.Warnings = roomy(r.Effects), roomy(r.Warnings)
			before, given := shown(t, whole(r)), shown(t, e)
			next, added, err := run.Apply(r, e)
			if shown(t, whole(r)) != before || shown(t, e) != given {
				t.Fatalf("%T has changed its argument", e)
			}
			if err != nil {
				wantRefusal(t, next, added, err)
				continue
			}
			wantRest(t, r, e, next)
			wantEffects(t, r, e, next, added)
			wantVerdict(t, next)
			c.session(t, r, e, next)
			r = next
		}
	})
}

// roomy copies a slice and leaves room behind it, into which a careless append would write.
func roomy[E any](s []E) []E { return append(make([]E, 0, len(s)+8), s...) }

// whole shows a run with what lies behind the end of its slices.
func whole(r run.Run) run.Run {
	r.Effects, r.Warnings = r.Effects[:cap(r.Effects)], r.Warnings[:cap(r.Warnings)]
	return r
}

func wantRefusal(t *rapid.T, next run.Run, added []run.Effect, err error) {
	if !errors.Is(err, run.ErrNotAllowed) {
		t.Fatalf("refused with %v", err)
	}
	if !reflect.DeepEqual(next, run.Run{}) || added != nil {
		t.Fatalf("a refusal has returned %v, %v", next, added)
	}
}

// wantRest: what rests or is final is never live again, and what is live is never without a next
// step.
func wantRest(t *rapid.T, r run.Run, e run.Event, next run.Run) {
	if !r.State.Live() && next.State.Live() {
		t.Fatalf("%T took a run from %q to %q", e, r.State, next.State)
	}
	if (next.State == run.Claiming || next.State == run.Landing) && len(next.Effects) == 0 {
		t.Fatalf("after %T the run is %q and nothing is left to do", e, next.State)
	}
	if next.State != r.State && next.Reason == "" {
		t.Fatalf("%T moved the run to %q and does not say why", e, next.State)
	}
}

// wantEffects: effects settle one at a time, in order; what is added is at the end and is told.
func wantEffects(t *rapid.T, r run.Run, e run.Event, next run.Run, added []run.Effect) {
	if s, ok := e.(run.Settled); ok {
		if len(r.Effects) == 0 || r.Effects[0].Key != s.Key {
			t.Fatalf("settled %q, due was %v", s.Key, r.Effects)
		}
		if rest := len(r.Effects) - 1; !slices.Equal(next.Effects[:rest], r.Effects[1:]) {
			t.Fatalf("pending %v, then %v", r.Effects, next.Effects)
		}
	}
	keys := map[string]bool{}
	for _, f := range next.Effects {
		if keys[f.Key] {
			t.Fatalf("two pending effects have the key %q", f.Key)
		}
		keys[f.Key] = true
		if old := slices.Contains(r.Effects, f); old == slices.Contains(added, f) {
			t.Fatalf("%T: effect %v was pending: %v, is told as added: %v", e, f, old, !old)
		}
	}
	if next.State == run.Parked && r.State.Live() {
		if p := e.(run.ParkedBecause); p.Silent && len(next.Effects) > 0 {
			t.Fatalf("parked silently with %v", next.Effects)
		}
	}
}

// wantVerdict: a verdict is of the present head on the present base, and nothing is pushed without
// a passed one.
func wantVerdict(t *rapid.T, r run.Run) {
	v := r.Verdict
	if v != nil && (v.Head != r.Head || r.State == run.Landing && v.Base != r.Base.Commit.Hash) {
		t.Fatalf("head %v on %v has the verdict of %v on %v", r.Head, r.Base, v.Head, v.Base)
	}
	if r.State == run.Landing && (v == nil || !v.Passed) {
		t.Fatalf("landing with the verdict %v", v)
	}
	for _, f := range r.Effects {
		if f.Kind != run.EffectPush {
			continue
		}
		if v == nil || !v.Passed || f.Key != "push:"+r.Branch+":"+r.Head.Hash || r.Plan.Lane == run.LaneBuild {
			t.Fatalf("effect %q in lane %s with head %v and verdict %v", f.Key, r.Plan.Lane, r.Head, v)
		}
	}
}

// counted is the model of the attempts: a session counts when it starts, and does not when the
// operator has stopped that very session.
type counted struct {
	count   int
	running bool
}

func (c *counted) session(t *rapid.T, r run.Run, e run.Event, next run.Run) {
	switch e.(type) {
	case run.SessionStarted:
		if c.count >= r.Plan.Attempts {
			t.Fatalf("session %d was started, %d are allowed", c.count+1, r.Plan.Attempts)
		}
		c.count, c.running = c.count+1, true
	case run.SessionStopped:
		if c.running {
			c.count--
		}
		c.running = false
	case run.Crashed, run.Delivered, run.Failed, run.ParkedBecause, run.CanceledBy:
		c.running = false
	}
	if next.Spent != c.count || next.Attempt < r.Attempt {
		t.Fatalf("after %T: spent %d, counted %d, attempt %d", e, next.Spent, c.count, next.Attempt)
	}
}

// TestApplyNeverPanics tries any event on any run, reachable or not.
func TestApplyNeverPanics(t *testing.T) {
	t.Parallel()
	runs := rapid.Make[run.Run]()
	rapid.Check(t, func(t *rapid.T) {
		r := runs.Draw(t, "run")
		r.State = rapid.SampledFrom(append(states, r.State)).Draw(t, "state")
		e := rapid.OneOf(everyEvent...).Draw(t, "event")
		before := shown(t, r)
		next, added, err := run.Apply(r, e)
		if shown(t, r) != before {
			t.Fatalf("%T has changed its argument", e)
		}
		if err != nil {
			wantRefusal(t, next, added, err)
		}
	})
}

type foreign struct{}

func (foreign) Kind() string { return "foreign" }

// TestApplyRefusesStrangers: nothing, a pointer and a foreign type are refusals, not panics.
func TestApplyRefusesStrangers(t *testing.T) {
	t.Parallel()
	var none *run.Claimed
	for _, e := range []run.Event{nil, none, &run.CanceledBy{}, foreign{}} {
		for _, s := range states {
			r := fresh()
			r.State = s
			if _, _, err := run.Apply(r, e); !errors.Is(err, run.ErrNotAllowed) {
				t.Errorf("%T in state %q: %v", e, s, err)
			}
		}
	}
}

// TestEventRoundTrip: every event can be read again as it was.
func TestEventRoundTrip(t *testing.T) {
	t.Parallel()
	for _, g := range everyEvent {
		rapid.Check(t, func(t *rapid.T) {
			e := g.Draw(t, "event")
			b, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			got, err := run.DecodeEvent(e.Kind(), b)
			if err != nil {
				t.Fatal(err)
			}
			// An empty and an absent slice are the same here; see the exact test below.
			if reflect.TypeOf(got) != reflect.TypeOf(e) || shown(t, got) != shown(t, e) {
				t.Fatalf("%#v\nwas read as\n%#v", e, got)
			}
		})
	}
}

// TestEventRoundTripExactly: with no empty slices about, a read event equals the written one, so
// no field is lost.
func TestEventRoundTripExactly(t *testing.T) {
	t.Parallel()
	one := 1
	for _, e := range []run.Event{
		run.Verified{Verdict: run.Verdict{Passed: true, Head: run.Commit{Hash: "h", Tree: "t"}, Base: "b", Tests: &one, Why: "w", Sandbox: "s",
			Commands: []run.Command{{Line: "l", Exit: -1, Tests: &one, Why: "w", Output: "o", Duration: 5}}}},
		run.Settled{Key: "k", Claim: &run.Claim{Ref: "r", Hash: "h", Nonce: "n", Generation: 3}, Change: 4, Branch: "b", Found: true, Note: "n"},
		run.ParkedBecause{Reason: "r", Next: "n", Exit: 8, Precond: "p", Silent: true},
		run.Reconfigured{Plan: run.Plan{Lane: run.LaneBuild, Command: "c", CommandDigest: "d", Checks: []string{"x"}, Attempts: 2,
			AllowNoTests: true, AllowPaths: []string{"p"}, Sandbox: "s", AgentTotal: 1, AgentIdle: 2, CheckTotal: 3}},
		run.TakenOver{From: run.Holder{ID: "i", Installation: "n", Host: "h", PID: 1, Start: 2, Boot: "b"}, Proof: "p"},
	} {
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := run.DecodeEvent(e.Kind(), b); err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("%#v was read as %#v, %v", e, got, err)
		}
	}
}

func TestDecodeEventRefuses(t *testing.T) {
	t.Parallel()
	if _, err := run.DecodeEvent("no such kind", []byte("{}")); !errors.Is(err, run.ErrUnknownEvent) {
		t.Errorf("unknown kind: %v", err)
	}
	for _, bad := range []string{"", "{", `{"change": "x"}`, "[]"} {
		if e, err := run.DecodeEvent("settled", []byte(bad)); err == nil {
			t.Errorf("%q was read as %#v", bad, e)
		}
	}
}

func FuzzDecodeEvent(f *testing.F) {
	f.Add("settled", []byte(`{"key":"k","change":1}`))
	f.Add("claimed", []byte(`{"claim":{"nonce":"n"}}`))
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		e, err := run.DecodeEvent(kind, data)
		if err != nil {
			return
		}
		b, err := json.Marshal(e)
		if err != nil || e.Kind() != kind {
			t.Fatalf("%q became %#v, %v", kind, e, err)
		}
		if again, err := run.DecodeEvent(kind, b); err != nil || !reflect.DeepEqual(again, e) {
			t.Fatalf("%#v became %#v, %v", e, again, err)
		}
	})
}
