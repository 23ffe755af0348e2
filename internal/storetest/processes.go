package storetest

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"interlock/internal/run"
	"interlock/internal/store"
)

// killedWriter: two processes write as fast as they can and contend for one key. One is killed.
// All that either was told is kept is there, whole, and the other goes on.
func killedWriter(t *testing.T, o Opened) {
	const before, after = 30, 30
	var children [2]*child
	for i := range children {
		children[i] = o.start(t)
		children[i].tell(t, order{Do: "write", Holder: holder(name("child", i)), Run: newRun(name("run", i), int64(i+1)),
			Lease: run.Lease{Key: "shared"}})
	}
	var told [2]int64 // the last acknowledged revision
	var fences []run.Fence
	listen := func(i int, most int) {
		for range most {
			a, ok := children[i].hear(t)
			if !ok {
				return
			}
			told[i] = a.Run.Revision
			if a.Lease.Fence != 0 {
				fences = append(fences, a.Lease.Fence)
			}
		}
	}
	listen(0, before)
	listen(1, before)
	if err := children[0].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	listen(0, 1<<30) // what it had said before it died counts
	// What the other one has said so far may wait in the pipe; read enough to know that it goes on.
	mark := told[1]
	for told[1] < mark+after {
		was := told[1]
		if listen(1, 1); told[1] == was {
			t.Fatal("the other writer has ended too")
		}
	}
	if err := children[1].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	listen(1, 1<<30)
	slices.Sort(fences)
	if unique := slices.Compact(slices.Clone(fences)); len(unique) != len(fences) || len(fences) == 0 {
		t.Errorf("%d grants of one key, %d fences", len(fences), len(unique))
	}
	for i := range children {
		wantWhole(t, o.Store, name("run", i), told[i])
	}
}

// wantWhole wants a run that was saved at least up to a revision, with as many events and effects
// as saves: no save is there in part.
func wantWhole(t *testing.T, s store.Store, id string, told int64) {
	t.Helper()
	r := must[run.Run](t)(s.Load(t.Context(), id))
	h := must[store.History](t)(s.History(t.Context(), id))
	saves := int(r.Revision - 1)
	if r.Revision < told || r.Revision > told+1 {
		t.Errorf("%s is at revision %d, its writer was told %d", id, r.Revision, told)
	}
	if len(h.Events) != saves || len(h.Effects) != saves || len(r.Effects) != 1 {
		t.Errorf("%s after %d saves: %d events, %d effects, %d pending", id, saves, len(h.Events), len(h.Effects), len(r.Effects))
	}
}

// stoppedHolder: a process that held the lease is stopped past its expiry and continues when
// another has taken over.
func stoppedHolder(t *testing.T, o Opened) {
	stopAndTakeOver(t, o, func(l run.Lease) run.Fence {
		o.Clock.Advance(TTL + run.LockDelay)
		return 0
	})
}

// stoppedHolderIsProved: the same, taken over by a proof that was wrong: the store still fences.
func stoppedHolderIsProved(t *testing.T, o Opened) {
	stopAndTakeOver(t, o, func(l run.Lease) run.Fence { return l.Fence })
}

func stopAndTakeOver(t *testing.T, o Opened, end func(run.Lease) run.Fence) {
	c := o.start(t)
	a := c.ask(t, order{Do: "claim", Holder: holder("child"), Run: newRun("run-1", 1)})
	if a.Error != "" {
		t.Fatal(a.Error)
	}
	stop(t, c)
	l := must[run.Lease](t)(o.Store.Acquire(t.Context(), holder("second"), a.Lease.Key, TTL, end(a.Lease)))
	if l.Fence <= a.Lease.Fence {
		t.Errorf("fence %d after %d", l.Fence, a.Lease.Fence)
	}
	before := everything(t, o.Store, a.Run)
	orders := []string{"save", "renew", "put session", "release"}
	for _, do := range orders { // they lie ready when it continues
		c.tell(t, order{Do: do, Lease: a.Lease, Run: a.Run, Session: store.Session{ID: "s", Run: a.Run.ID}})
	}
	if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for _, do := range orders {
		if got, ok := c.hear(t); !ok || got.Error != "fenced" {
			t.Errorf("%s by the holder that was stopped: %q, want fenced", do, got.Error)
		}
	}
	if after := everything(t, o.Store, a.Run); after != before {
		t.Errorf("the stopped holder has changed something:\n%s\nbefore:\n%s", after, before)
	}
	step(t, o.Store, l, a.Run, claimEvent)
}

// stop stops a process and waits until the kernel says so.
func stop(t *testing.T, c *child) {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if _, rest, _ := bytes.Cut(stat, []byte(") ")); bytes.HasPrefix(rest, []byte("T")) {
			return
		}
	}
	t.Fatal("the process does not stop")
}
