// Package store is the contract of the one durable truth: runs, leases, effects, sessions and
// what people asked for. A driver keeps it; the engine and the command line only ever see this.
// It never talks to a forge and never starts a process.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"interlock/internal/run"
)

// The errors a caller decides by. Everything else is a fault of the store itself.
var (
	// ErrNotFound: no such run.
	ErrNotFound = errors.New("not found")
	// ErrFenced: the lease is no longer ours. Nothing was written and nothing may be done.
	ErrFenced = errors.New("fenced: the lease is no longer held")
	// ErrStale: the run was saved by somebody else since it was read. Nothing was written.
	ErrStale = errors.New("stale: the run has changed since it was read")
	// ErrDuplicate: a live run for this issue exists already.
	ErrDuplicate = errors.New("a live run for this issue exists already")
	// ErrNewer: the database was written by a newer program.
	ErrNewer = errors.New("the state was written by a newer interlock")
	// ErrUnfit: the state directory is somewhere a lease cannot be kept safely.
	ErrUnfit = errors.New("the state directory is not fit")
	// ErrDamaged: the database is not what was written.
	ErrDamaged = errors.New("the state is damaged")
	// ErrDamagedRun: the record of one run is not what was written. It is an ErrDamaged, too; all
	// other runs can be worked.
	ErrDamagedRun = fmt.Errorf("%w: the record of one run", ErrDamaged)
	// ErrFull: the filesystem of the state has no room. Nothing was written.
	ErrFull = errors.New("no room left for the state")
	// ErrBusy: another program keeps the state locked. Nothing was written; try later.
	ErrBusy = errors.New("the state is locked by another program")
)

// HeldError is returned by Claim and Acquire when another holder has the key.
type HeldError struct {
	Lease run.Lease
	// Free is the store time from which the key can be granted without a proof of death:
	// the expiry plus the lock-delay.
	Free time.Duration
	// Boot is true when the lease was granted in the present boot; otherwise its holder is dead.
	Boot bool
}

func (e *HeldError) Error() string {
	h := e.Lease.Holder
	return fmt.Sprintf("%s is held by process %d on %s", e.Lease.Key, h.PID, h.Host)
}

// Clock is the store's time. Store time never stops in suspend and never follows the wall clock.
type Clock interface {
	Now() time.Duration // CLOCK_BOOTTIME
	Boot() string       // the id of this boot
	Wall() time.Time    // for people only; no lease depends on it
}

// Session is one agent process tree, recorded before it is started.
type Session struct {
	ID      string    `json:"id"`
	Run     string    `json:"run"`
	Attempt int       `json:"attempt"`
	Kind    string    `json:"kind"`   // "agent" or "check"
	Handle  string    `json:"handle"` // opaque to the store: sandbox.Identity as JSON
	Dir     string    `json:"dir"`    // its private directory
	Log     string    `json:"log"`
	Started time.Time `json:"started"`
	Ended   bool      `json:"ended"` // its tree was seen to be gone
}

// Record is one event as it was stored.
type Record struct {
	Seq  int64     `json:"seq"`
	At   time.Time `json:"at"`
	Kind string    `json:"kind"`
	Data []byte    `json:"data"` // the event as JSON
}

// Detail is the part of an event that tells people most: which effect, or why. It may be "".
func (r Record) Detail() string {
	var e struct {
		Key, Reason, Proof string
		Found              bool
	}
	if json.Unmarshal(r.Data, &e) != nil {
		return "" // its kind is told all the same
	}
	if e.Found {
		e.Key += " (found there already)"
	}
	return e.Key + e.Reason + e.Proof
}

// EffectRecord is one effect as it was stored, with what became of it.
type EffectRecord struct {
	Seq    int64      `json:"seq"`
	Effect run.Effect `json:"effect"`
	Status string     `json:"status"` // "pending", "settled" or "withdrawn"
	At     time.Time  `json:"at"`
}

// Filter selects runs. Zero fields select everything.
type Filter struct {
	Repo  string
	Issue int64
	Live  bool // only live states
	Limit int  // newest first; 0 means 200
}

// Store keeps runs and leases. Every method is safe for use by many goroutines and many
// processes; a method that returns nil has been fsynced. Each writing method that takes a lease
// checks, in the same transaction, that the key is still held with that lease's fence and that it
// has not expired, and returns ErrFenced otherwise. A caller whose ctx ends while its operation
// waits gets ctx.Err() and the operation is not done; one that was begun is finished and its
// outcome returned. After an error that is none of this package's the outcome of a write is open:
// read again before going on.
type Store interface {
	// Claim grants the lease on r's key and inserts r in one transaction. The run's Fence is
	// set to the lease's, its Revision to 1. It returns *HeldError, or ErrDuplicate when a live run of the same
	// repository and issue exists (go on with that one).
	Claim(ctx context.Context, h run.Holder, r run.Run, ttl time.Duration) (run.Lease, run.Run, error)

	// Acquire grants the lease on a key. dead, when not zero, is the fence of a holder whose
	// death and whose tree's death the caller has proved: that very grant is then replaced
	// without waiting. A holder that asks for what it holds gets its lease renewed, with the same
	// fence; after its expiry it gets a new grant at once. It returns *HeldError.
	Acquire(ctx context.Context, h run.Holder, key string, ttl time.Duration, dead run.Fence) (run.Lease, error)

	// Renew moves the expiry to now+ttl. ErrFenced when the grant is gone or has expired.
	Renew(ctx context.Context, l run.Lease, ttl time.Duration) (run.Lease, error)

	// Release gives the key back; the next grant needs no wait. Releasing a lease that is no
	// longer ours returns ErrFenced.
	Release(ctx context.Context, l run.Lease) error

	// Save writes next as the successor of the run it was read as: the stored revision must be
	// next.Revision, and becomes next.Revision+1. The events are appended, and the effects are
	// reconciled: pending effects not in next.Effects become settled (when an event settles
	// their key) or withdrawn; new ones are added. The saved run is returned.
	// ErrFenced, ErrStale, ErrNotFound.
	Save(ctx context.Context, l run.Lease, next run.Run, events ...run.Event) (run.Run, error)

	// PutSession records a session, or marks it ended, under the lease of its run.
	PutSession(ctx context.Context, l run.Lease, s Session) error

	// Load returns a run with its pending effects. ErrNotFound, ErrDamagedRun.
	Load(ctx context.Context, id string) (run.Run, error)

	// List returns runs, newest first. A run whose record cannot be read is among them, with a
	// Reason that says so; Load of it returns ErrDamagedRun.
	List(ctx context.Context, f Filter) ([]run.Run, error)

	// History returns what was recorded of a run, oldest first.
	History(ctx context.Context, id string) (History, error)

	// Controls reads and writes what people asked of runs.
	Controls() Controls
}

// History is all that was recorded of one run.
type History struct {
	Events   []Record       `json:"events"`
	Effects  []EffectRecord `json:"effects"`
	Sessions []Session      `json:"sessions"`
}

// Controls carries what people ask of a run to whoever holds it. They are written without a
// lease: people are never fenced.
type Controls interface {
	// RequestCancel asks that the run be canceled. Asking twice is the same as once: the first
	// reason stays. ErrNotFound.
	RequestCancel(ctx context.Context, id, reason string) error
	// Cancel returns the request, if there is one. ErrNotFound when there is no such run.
	Cancel(ctx context.Context, id string) (reason string, asked bool, err error)
	// Lease returns the present grant of a key; ok is false when it is free. An expired or
	// dead grant is still returned until it is replaced.
	Lease(ctx context.Context, key string) (l run.Lease, ok bool, err error)
	// Installation is the random id of this state directory.
	Installation(ctx context.Context) (string, error)
}

// Key is the lease key of an issue: one holder per issue of a canonical repository.
func Key(repo string, issue int64) string { return fmt.Sprintf("%s#%d", repo, issue) }
