package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"interlock/internal/run"
	"interlock/internal/store"
)

// The statuses of an effect.
const (
	statusPending   = "pending"
	statusSettled   = "settled"
	statusWithdrawn = "withdrawn"
)

// Claim implements store.Store. The inserted run has revision 1.
func (s *Store) Claim(ctx context.Context, h run.Holder, r run.Run, ttl time.Duration) (run.Lease, run.Run, error) {
	if r.ID == "" || r.Repo == "" || r.Issue <= 0 || !r.State.Live() {
		return run.Lease{}, run.Run{}, errors.New("a claim needs a live run with an id, a repository and an issue")
	}
	var l run.Lease
	err := s.submit(ctx, func(t *txn) (err error) {
		if l, err = acquire(t, h, store.Key(r.Repo, r.Issue), ttl, 0); err != nil {
			return err
		}
		if err := t.noOtherLive(r); err != nil {
			return err
		}
		return t.insertRun(&r, l.Fence)
	})
	if err != nil {
		return run.Lease{}, run.Run{}, err
	}
	return l, r, nil
}

// noOtherLive keeps the rule of one live run per issue; the index runs_one_live backs it.
func (t *txn) noOtherLive(r run.Run) error {
	var other string
	found, err := t.scan([]any{&other}, "SELECT id FROM runs WHERE repo = ? AND issue = ? AND live = 1 AND id <> ?", r.Repo, r.Issue, r.ID)
	if err == nil && found {
		err = fmt.Errorf("%w: run %s", store.ErrDuplicate, other)
	}
	return err
}

func (t *txn) insertRun(r *run.Run, fence run.Fence) error {
	var one int
	there, err := t.scan([]any{&one}, "SELECT 1 FROM runs WHERE id = ?", r.ID)
	if err != nil {
		return err
	}
	if there {
		return fmt.Errorf("%w: run %s", store.ErrDuplicate, r.ID)
	}
	if r.Created.IsZero() {
		r.Created = t.wall
	}
	r.Created, r.Updated, r.Revision, r.Fence = r.Created.UTC().Round(0), t.wall, 1, fence
	data, err := encode(*r)
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO runs (id, repo, issue, state, live, revision, fence, created, updated, data)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.ID, r.Repo, r.Issue, string(r.State), r.State.Live(), r.Revision, int64(r.Fence), r.Created.UnixNano(), r.Updated.UnixNano(), data)
	if err != nil {
		return err
	}
	return t.reconcile(r, nil)
}

// encode is the run as it is kept beside its columns. Pending effects are rows of their own.
func encode(r run.Run) (string, error) {
	r.Effects = nil
	b, err := json.Marshal(r)
	return string(b), err
}

// Save implements store.Store.
func (s *Store) Save(ctx context.Context, l run.Lease, next run.Run, events ...run.Event) (run.Run, error) {
	if key := store.Key(next.Repo, next.Issue); key != l.Key {
		return run.Run{}, fmt.Errorf("%w: the lease is for %s, the run is of %s", store.ErrFenced, l.Key, key)
	}
	if slices.Contains(events, nil) {
		return run.Run{}, errors.New("an event is nil")
	}
	next.Effects = slices.Clone(next.Effects)
	var saved run.Run
	err := s.submit(ctx, func(t *txn) error {
		saved = next
		if err := t.updateRun(l, &saved); err != nil {
			return err
		}
		if err := t.appendEvents(saved.ID, events); err != nil {
			return err
		}
		return t.reconcile(&saved, events)
	})
	if err != nil {
		return run.Run{}, err
	}
	return saved, nil
}

// updateRun writes the row if the lease holds and nobody saved in between. The fence and the
// revision are in the WHERE clause; when no row matches, refusal finds out why.
func (t *txn) updateRun(l run.Lease, next *run.Run) error {
	old := next.Revision
	next.Revision, next.Fence, next.Updated = old+1, l.Fence, t.wall
	var created int64
	found, err := t.scan([]any{&created}, "SELECT created FROM runs WHERE id = ?", next.ID)
	if err != nil {
		return err
	}
	if !found {
		return t.refusal(l, *next, old)
	}
	next.Created = time.Unix(0, created).UTC()
	data, err := encode(*next)
	if err != nil {
		return err
	}
	if next.State.Live() {
		if err := t.noOtherLive(*next); err != nil {
			return cmp.Or(t.refusal(l, *next, old), err)
		}
	}
	n, err := t.exec(`UPDATE runs SET state = ?, live = ?, revision = revision + 1, fence = ?, updated = ?, data = ?
		WHERE id = ? AND repo = ? AND issue = ? AND revision = ? AND fence <= ? AND EXISTS (SELECT 1 FROM leases WHERE `+held+`)`,
		append([]any{string(next.State), next.State.Live(), int64(l.Fence), t.wall.UnixNano(), data,
			next.ID, next.Repo, next.Issue, old, int64(l.Fence)}, heldBy(t, l)...)...)
	if err != nil {
		return err
	}
	if n != 1 {
		return cmp.Or(t.refusal(l, *next, old), fmt.Errorf("run %s: %w", next.ID, store.ErrStale))
	}
	return nil
}

// refusal says why a save may match no row; nil when nothing speaks against it.
func (t *txn) refusal(l run.Lease, next run.Run, old int64) error {
	if err := requireHeld(t, l); err != nil {
		return err
	}
	var repo string
	var issue, revision, fence int64
	found, err := t.scan([]any{&repo, &issue, &revision, &fence}, "SELECT repo, issue, revision, fence FROM runs WHERE id = ?", next.ID)
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("run %s: %w", next.ID, store.ErrNotFound)
	case repo != next.Repo || issue != next.Issue:
		return fmt.Errorf("run %s is of %s and cannot move to %s", next.ID, store.Key(repo, issue), store.Key(next.Repo, next.Issue))
	case fence > int64(l.Fence): // cannot be, unless the fences were put back
		return fmt.Errorf("run %s was saved with fence %d: %w", next.ID, fence, fenced(l))
	}
	if revision != old {
		return fmt.Errorf("run %s is at revision %d, not %d: %w", next.ID, revision, old, store.ErrStale)
	}
	return nil
}

func (t *txn) appendEvents(id string, events []run.Event) error {
	for _, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if _, err := t.exec("INSERT INTO events (run, at, kind, data) VALUES (?, ?, ?, ?)", id, t.wall.UnixNano(), e.Kind(), string(data)); err != nil {
			return err
		}
	}
	return nil
}

// reconcile makes the pending rows be exactly r.Effects, in their order. What an event settled is
// settled even when the same effect is planned anew; what else has gone is withdrawn.
func (t *txn) reconcile(r *run.Run, events []run.Event) error {
	if r.Effects == nil {
		r.Effects = []run.Effect{}
	}
	for _, e := range events {
		if s, ok := e.(run.Settled); ok {
			if err := t.finish(r.ID, s.Key, statusSettled); err != nil {
				return err
			}
		}
	}
	pending, err := t.pending(r.ID)
	if err != nil {
		return err
	}
	for _, key := range pending {
		if !slices.ContainsFunc(r.Effects, func(f run.Effect) bool { return f.Key == key }) {
			if err := t.finish(r.ID, key, statusWithdrawn); err != nil {
				return err
			}
		}
	}
	for place, f := range r.Effects {
		if slices.ContainsFunc(r.Effects[:place], func(o run.Effect) bool { return o.Key == f.Key }) {
			return fmt.Errorf("run %s has two pending effects with the key %q", r.ID, f.Key)
		}
		if err := t.plan(r.ID, place, f); err != nil {
			return err
		}
	}
	return nil
}

func (t *txn) finish(id, key, status string) error {
	_, err := t.exec("UPDATE effects SET status = ?, at = ? WHERE run = ? AND key = ? AND status = 'pending'", status, t.wall.UnixNano(), id, key)
	return err
}

// plan adds a pending effect, or moves the one that is there to its place.
func (t *txn) plan(id string, place int, f run.Effect) error {
	n, err := t.exec("UPDATE effects SET place = ?, kind = ?, text = ? WHERE run = ? AND key = ? AND status = 'pending'",
		place, string(f.Kind), f.Text, id, f.Key)
	if err != nil || n == 1 {
		return err
	}
	_, err = t.exec("INSERT INTO effects (run, place, kind, key, text, status, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
		id, place, string(f.Kind), f.Key, f.Text, statusPending, t.wall.UnixNano())
	return err
}

func (t *txn) pending(id string) (keys []string, err error) {
	var key string
	err = t.each([]any{&key}, func() { keys = append(keys, key) },
		"SELECT key FROM effects WHERE run = ? AND status = 'pending' ORDER BY place, seq", id)
	return keys, err
}

// PutSession implements store.Store. A session that has ended stays ended.
func (s *Store) PutSession(ctx context.Context, l run.Lease, e store.Session) error {
	if e.ID == "" {
		return errors.New("a session needs an id")
	}
	return s.submit(ctx, func(t *txn) error {
		if err := requireHeld(t, l); err != nil {
			return err
		}
		var repo string
		var issue int64
		found, err := t.scan([]any{&repo, &issue}, "SELECT repo, issue FROM runs WHERE id = ?", e.Run)
		switch {
		case err != nil:
			return err
		case !found:
			return fmt.Errorf("run %s: %w", e.Run, store.ErrNotFound)
		case store.Key(repo, issue) != l.Key:
			return fmt.Errorf("%w: the lease is for %s, the session is of %s", store.ErrFenced, l.Key, store.Key(repo, issue))
		}
		return t.putSession(l, e)
	})
}

func (t *txn) putSession(l run.Lease, e store.Session) error {
	var started int64
	if !e.Started.IsZero() {
		started = e.Started.UnixNano()
	}
	n, err := t.exec(`INSERT INTO sessions (id, run, attempt, kind, handle, dir, log, started, ended)
		SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM leases WHERE `+held+`)
		ON CONFLICT (id) DO UPDATE SET attempt = excluded.attempt, kind = excluded.kind, handle = excluded.handle, dir = excluded.dir,
			log = excluded.log, started = excluded.started, ended = max(ended, excluded.ended)
		WHERE run = excluded.run`,
		append([]any{e.ID, e.Run, e.Attempt, e.Kind, e.Handle, e.Dir, e.Log, started, e.Ended}, heldBy(t, l)...)...)
	if err == nil && n != 1 {
		err = fmt.Errorf("session %s belongs to another run", e.ID)
	}
	return err
}
