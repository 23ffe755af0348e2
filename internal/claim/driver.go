package claim

import (
	"context"
	"time"

	"interlock/internal/run"
	"interlock/internal/store"
)

// Driver is who drives a run that is live.
type Driver struct {
	By    string // for people; "" when nobody holds it
	PID   int    // of that process
	Gone  bool   // it is proved that the process is gone
	Alive bool   // it runs on this machine
	// Expires is the store time at which its lease runs out, which counts when neither can be told.
	Expires time.Duration
}

// Drives looks who drives a run, as far as that can be told by the process self.
func Drives(ctx context.Context, s store.Store, self run.Holder, r run.Run) (Driver, error) {
	l, held, err := s.Controls().Lease(ctx, store.Key(r.Repo, r.Issue))
	if err != nil || !held {
		return Driver{}, err
	}
	d := Driver{By: Holder(l.Holder), PID: l.Holder.PID, Gone: Gone(self, l.Holder), Expires: l.Expires}
	d.Alive = !d.Gone && l.Holder.Host == self.Host && l.Holder.Namespace == self.Namespace
	return d, nil
}
