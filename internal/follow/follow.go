// Package follow watches a run that another process drives, by what is recorded of it, until it
// rests or nobody drives it any more. It reads the store alone and never changes anything.
package follow

import (
	"context"
	"time"

	"interlock/internal/claim"
	"interlock/internal/run"
	"interlock/internal/store"
)

// Watcher follows runs.
type Watcher struct {
	Store store.Store
	Self  run.Holder // this process
	// Step is called for each thing that was recorded, oldest first, and with the run as it is then.
	Step func(run.Run, store.Record)
	// Stands is called whenever the run has moved, after its steps.
	Stands func(run.Run)
}

// every is how often the record is looked at; grace is how long nobody may drive a live run before
// it is taken for stopped: a command that is typed again takes up a run within that.
const (
	every = 250 * time.Millisecond
	grace = 3 * time.Second
)

// Follow returns the run when it rests, with all its effects settled. driven is false when it does
// not rest, and nobody drives it.
func (w *Watcher) Follow(ctx context.Context, id string) (r run.Run, driven bool, err error) {
	seen, revision := int64(0), int64(-1)
	alone := time.Time{} // since when it was seen to be driven by nobody
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if r, err = w.Store.Load(ctx, id); err != nil {
			return r, false, err
		}
		if r.Revision != revision {
			if seen, err = w.steps(ctx, r, seen); err != nil {
				return r, false, err
			}
			revision, alone = r.Revision, time.Time{}
			w.Stands(r)
		}
		if !r.State.Live() && len(r.Effects) == 0 {
			return r, true, nil
		}
		d, err := claim.Drives(ctx, w.Store, w.Self, r)
		switch {
		case err != nil:
			return r, false, err
		case d.By != "" && !d.Gone:
			alone = time.Time{}
		case alone.IsZero():
			alone = time.Now()
		case time.Since(alone) > grace:
			return r, false, nil
		}
		select {
		case <-ctx.Done():
			return r, true, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// steps tells what was recorded since.
func (w *Watcher) steps(ctx context.Context, r run.Run, seen int64) (int64, error) {
	h, err := w.Store.History(ctx, r.ID)
	if err != nil {
		return seen, err
	}
	for _, e := range h.Events {
		if e.Seq > seen {
			seen = e.Seq
			w.Step(r, e)
		}
	}
	return seen, nil
}
