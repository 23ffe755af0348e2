package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"interlock/internal/lineartest"
)

// How much TestLinear does when nobody says, and how much of it on one state directory.
const (
	linearOperations = 100_000
	linearRound      = 100_000
)

// storePlan is how the processes are treated. With the numbers of clients and keys it gives some
// hundred operations to a key, a few of them cut off by a kill.
var storePlan = lineartest.Plan{
	Slots: 4, Clients: 8, Kill: 1000, Pause: 400, Suspend: 2000, Step: 2000, Drift: 5000, Reboot: 12_000,
	Rate: 100 * time.Millisecond, Longest: 90 * time.Second, Stopped: 40 * time.Millisecond,
}

// TestLinear: what many processes did to one state, killed, paused, and with clocks that jump, is what
// one after the other could have done: at most one lease of a key is in force and fences rise, a save
// succeeds only with its fence and revision, a cancel that was asked for is taken once.
func TestLinear(t *testing.T) {
	lineartest.Rounds(t, "INTERLOCK_OPS", linearOperations, linearRound, func(t *testing.T, seed uint64, most int64) {
		begin := time.Now()
		place := filepath.Join(t.TempDir(), "state")
		f := lineartest.Run(t, place, seed, most, storePlan)
		h := storeHistory{Model: "store", Seed: seed}
		var err error
		h.Operations, err = lineartest.Histories[asked, answered](f)
		must(t, err)
		takeAhead(t, &h)
		did := time.Since(begin)
		found := storeModel.Judge(t, &h)
		report(t, f, &h, found)
		t.Logf("store: %s; done in %v, judged in %v", f.Clocks(), did.Round(time.Millisecond), (time.Since(begin) - did).Round(time.Millisecond))
	})
}

// takeAhead takes out of the history what is no operation, and wants the processes of each boot to
// have agreed on store time.
func takeAhead(t *testing.T, h *storeHistory) {
	t.Helper()
	h.Ahead = map[int64]int64{}
	var ops []storeOperation
	for _, op := range h.Operations {
		if op.Key != aheadKey {
			ops = append(ops, op)
			continue
		}
		if op.Unknown {
			continue
		}
		is := int64(op.Out.Granted)
		if was, ok := h.Ahead[op.Boot]; ok && was != is {
			t.Errorf("seed %d: in boot %d store time is ahead of the clock by %v in one process and by %v in another",
				h.Seed, op.Boot, time.Duration(was), time.Duration(is))
		}
		h.Ahead[op.Boot] = is
	}
	h.Operations = ops
}

// report prints one line for each part of the model. A key that cannot be explained counts for all.
func report(t *testing.T, f *lineartest.Fleet, h *storeHistory, found []lineartest.Anomaly) {
	t.Helper()
	all, unknown, answers, keys := map[string]int{}, map[string]int{}, map[string]int{}, map[string]bool{}
	for _, op := range h.Operations {
		kind := kindOf(op.In)
		all[kind]++
		keys[op.Key] = true
		if op.Unknown {
			unknown[kind]++
		}
		what := op.In.Do + " " + op.Out.Err
		if op.Unknown {
			what = op.In.Do + " unknown"
		}
		answers[what]++
	}
	for _, kind := range []string{"leases", "saves", "cancels"} {
		f.Report(kind, all[kind], unknown[kind], len(keys), len(found))
	}
	t.Logf("answers: %v", answers)
	if len(h.Operations) < linearOperations {
		return
	}
	f.Tried()
	for _, what := range []string{"acquire held", "renew fenced", "save fenced", "save stale", "take "} {
		if answers[what] == 0 {
			t.Errorf("seed %d: nothing was answered with %q: the test did not try it", h.Seed, what)
		}
	}
}

// TestLinearReplay judges histories that were kept; some of them must be answers for ever.
func TestLinearReplay(t *testing.T) { storeModel.Replay(t, "store") }
