package storetest

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"interlock/internal/run"
	"interlock/internal/store"
)

const (
	acquirers      = 32
	roundsVariable = "INTERLOCK_ROUNDS" // how often races are run: make races sets it
)

// rounds is how often a race is run: a few times, unless the environment says more.
func rounds(t *testing.T, few int) int {
	t.Helper()
	text := os.Getenv(roundsVariable)
	if text == "" {
		return few
	}
	return max(few, must[int](t)(strconv.Atoi(text)))
}

// oneWinner: of many acquirers of one key, in two handles, one wins each round, however the last
// grant ended, and fences strictly rise.
func oneWinner(t *testing.T, o Opened) {
	stores := []store.Store{o.Store, o.Again(t)}
	var last run.Lease
	for round := range rounds(t, 60) {
		won := race(t, stores, acquirers, func(ctx context.Context, s store.Store, i int) (run.Lease, error) {
			return s.Acquire(ctx, holder(name("acquirer", i)), "key", TTL, 0)
		})
		if won.Fence <= last.Fence {
			t.Fatalf("round %d: fence %d after %d", round, won.Fence, last.Fence)
		}
		last = won
		switch round % 3 {
		case 0:
			if err := stores[round%2].Release(t.Context(), won); err != nil {
				t.Fatal(err)
			}
		case 1:
			o.Clock.Advance(TTL + run.LockDelay)
		case 2:
			o.Clock.Reboot()
		}
	}
}

// oneWinnerOfAProof: the proof of one death lets one acquirer in, not all who bring it.
func oneWinnerOfAProof(t *testing.T, o Opened) {
	stores := []store.Store{o.Store, o.Again(t)}
	last := acquire(t, o.Store, "first", "key")
	for range 10 {
		won := race(t, stores, acquirers, func(ctx context.Context, s store.Store, i int) (run.Lease, error) {
			return s.Acquire(ctx, holder(name(name("prover", i), int(last.Fence))), "key", TTL, last.Fence)
		})
		if won.Fence <= last.Fence {
			t.Fatalf("fence %d after %d", won.Fence, last.Fence)
		}
		last = won
	}
}

func fencesRiseForEver(t *testing.T, o Opened) {
	var last run.Fence
	for i := range 20 {
		s := o.Store
		if i%2 == 1 {
			s = o.Again(t)
		}
		l := must[run.Lease](t)(s.Acquire(t.Context(), holder(name("h", i)), "key", TTL, last))
		if l.Fence <= last {
			t.Fatalf("fence %d after %d", l.Fence, last)
		}
		last = l.Fence
		if i%3 == 0 {
			if err := s.Release(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		}
	}
	if other := acquire(t, o.Store, "other", "another key"); other.Fence != 1 {
		t.Errorf("the first fence of another key is %d, want 1", other.Fence)
	}
}

func lockDelay(t *testing.T, o Opened) {
	first := acquire(t, o.Store, "first", "key")
	free := first.Expires + run.LockDelay
	if first.Expires != first.Granted+TTL || first.Granted != o.Clock.Now() {
		t.Errorf("granted %v, expires %v at %v", first.Granted, first.Expires, o.Clock.Now())
	}
	for _, passed := range []time.Duration{0, TTL - 1, TTL, TTL + run.LockDelay - 1} {
		o.Clock.Advance(first.Granted + passed - o.Clock.Now())
		_, err := o.Store.Acquire(t.Context(), holder("second"), "key", TTL, 0)
		held := wantHeld(t, passed.String(), err)
		if held.Free != free || held.Lease != first || !held.Boot {
			t.Errorf("after %v: %+v, want free at %v and %v", passed, held, free, first)
		}
	}
	o.Clock.Advance(1)
	if l := acquire(t, o.Store, "second", "key"); l.Fence <= first.Fence {
		t.Errorf("fence %d after %d", l.Fence, first.Fence)
	}
	_, err := o.Store.Renew(t.Context(), first, TTL)
	wantErr(t, "renew of the lease that was replaced", err, store.ErrFenced)
}

func proofOfDeath(t *testing.T, o Opened) {
	l, r := claimed(t, o.Store, "first", "run-1", 1)
	_, err := o.Store.Acquire(t.Context(), holder("second"), l.Key, TTL, l.Fence+1)
	wantHeld(t, "proof for a later fence", err)
	_, err = o.Store.Acquire(t.Context(), holder("second"), l.Key, TTL, l.Fence-1)
	wantHeld(t, "no proof", err)
	second := must[run.Lease](t)(o.Store.Acquire(t.Context(), holder("second"), l.Key, TTL, l.Fence))
	if second.Fence <= l.Fence {
		t.Errorf("fence %d after %d", second.Fence, l.Fence)
	}
	wantFenced(t, o.Store, l, r)
	_, err = o.Store.Acquire(t.Context(), holder("third"), l.Key, TTL, l.Fence)
	wantHeld(t, "the proof for the fence before", err)
}

// lateRenew: a lease lives until just before its expiry, and then no renewal brings it back, even
// when nobody took it.
func lateRenew(t *testing.T, o Opened) {
	l := acquire(t, o.Store, "first", "key")
	o.Clock.Advance(TTL - 1)
	l = must[run.Lease](t)(o.Store.Renew(t.Context(), l, TTL))
	if want := o.Clock.Now() + TTL; l.Expires != want {
		t.Errorf("expires %v, want %v", l.Expires, want)
	}
	o.Clock.Advance(TTL)
	_, err := o.Store.Renew(t.Context(), l, TTL)
	wantErr(t, "renew at the expiry", err, store.ErrFenced)
	o.Clock.Advance(time.Hour)
	_, err = o.Store.Renew(t.Context(), l, TTL)
	wantErr(t, "renew an hour later", err, store.ErrFenced)
}

func expiredIsFenced(t *testing.T, o Opened) {
	l, r := claimed(t, o.Store, "first", "run-1", 1)
	r = step(t, o.Store, l, r, claimEvent)
	o.Clock.Advance(TTL)
	wantFenced(t, o.Store, l, r)
}

func reboot(t *testing.T, o Opened) {
	l, r := claimed(t, o.Store, "first", "run-1", 1)
	o.Clock.Reboot() // the clock stands far before the expiry now
	wantFenced(t, o.Store, l, r)
	kept, ok, err := o.Store.Controls().Lease(t.Context(), l.Key)
	if err != nil || !ok || kept != l {
		t.Errorf("a dead grant is shown as %v, %v, %v", kept, ok, err)
	}
	second := acquire(t, o.Store, "second", l.Key)
	if second.Fence <= l.Fence {
		t.Errorf("fence %d after %d", second.Fence, l.Fence)
	}
	wantFenced(t, o.Store, l, r)
	if _, err := o.Store.Save(t.Context(), second, r, run.TakenOver{From: l.Holder, Proof: "another boot"}); err != nil {
		t.Errorf("the holder of this boot cannot save: %v", err)
	}
}

func sameHolder(t *testing.T, o Opened) {
	first := acquire(t, o.Store, "first", "key")
	o.Clock.Advance(TTL / 2)
	again := acquire(t, o.Again(t), "first", "key")
	if again.Fence != first.Fence || again.Expires != o.Clock.Now()+TTL || again.Granted != first.Granted {
		t.Errorf("a second acquire by the holder gave %v after %v", again, first)
	}
	if _, err := o.Store.Renew(t.Context(), first, TTL); err != nil {
		t.Errorf("the first lease is the same grant, but: %v", err)
	}
	o.Clock.Advance(TTL)
	late := acquire(t, o.Store, "first", "key")
	if late.Fence <= first.Fence {
		t.Errorf("an expired lease came back to life with fence %d", late.Fence)
	}
	_, err := o.Store.Renew(t.Context(), again, TTL)
	wantErr(t, "renew of the lease that expired", err, store.ErrFenced)
}

// forgedLease: a lease counts only as it was granted.
func forgedLease(t *testing.T, o Opened) {
	l, r := claimed(t, o.Store, "first", "run-1", 1)
	other := acquire(t, o.Store, "first", "other key")
	for what, change := range map[string]func(*run.Lease){
		"fence before": func(l *run.Lease) { l.Fence-- },
		"fence after":  func(l *run.Lease) { l.Fence++ },
		"holder":       func(l *run.Lease) { l.Holder.ID = "second" },
		"key":          func(l *run.Lease) { l.Key = "nobody's key" },
		"other key":    func(l *run.Lease) { *l = other; l.Fence += 7 },
	} {
		forged := l
		change(&forged)
		t.Log(what)
		wantFenced(t, o.Store, forged, r)
	}
	// What the caller believes of the expiry does not matter.
	late := l
	late.Expires += time.Hour
	o.Clock.Advance(TTL)
	wantFenced(t, o.Store, late, r)
}

func leaseIsShown(t *testing.T, o Opened) {
	c := o.Store.Controls()
	show := func(want bool, l run.Lease) {
		t.Helper()
		got, ok, err := c.Lease(t.Context(), "key")
		if err != nil || ok != want || got != l {
			t.Errorf("the lease is shown as %v, %v, %v; want %v, %v", got, ok, err, l, want)
		}
	}
	show(false, run.Lease{})
	l := acquire(t, o.Store, "first", "key")
	show(true, l)
	o.Clock.Advance(TTL - 1)
	l = must[run.Lease](t)(o.Store.Renew(t.Context(), l, TTL))
	show(true, l)
	if err := o.Store.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	show(false, run.Lease{})
	wantErr(t, "second release", o.Store.Release(t.Context(), l), store.ErrFenced)
	_, err := o.Store.Renew(t.Context(), l, TTL)
	wantErr(t, "renew after release", err, store.ErrFenced)
	l = acquire(t, o.Store, "second", "key") // at once: it was given back
	o.Clock.Advance(time.Hour)
	show(true, l) // expired, and still shown until it is replaced
}

func acquireArguments(t *testing.T, o Opened) {
	ctx := t.Context()
	for what, err := range map[string]error{
		"no key":    second(o.Store.Acquire(ctx, holder("h"), "", TTL, 0)),
		"no holder": second(o.Store.Acquire(ctx, run.Holder{}, "key", TTL, 0)),
		"no time":   second(o.Store.Acquire(ctx, holder("h"), "key", 0, 0)),
		"past":      second(o.Store.Acquire(ctx, holder("h"), "key", -TTL, 0)),
	} {
		if err == nil {
			t.Errorf("%s: granted", what)
		}
	}
	l := acquire(t, o.Store, "h", "key")
	if _, err := o.Store.Renew(ctx, l, 0); err == nil {
		t.Error("renewed for no time")
	}
	if got, _, _ := o.Store.Controls().Lease(ctx, "key"); got != l {
		t.Errorf("the refused renewal left %v of %v", got, l)
	}
}

func second[T any](_ T, err error) error { return err }
