package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"interlock/internal/run"
	"interlock/internal/store"
)

// listLimit is how many runs List returns when nobody says.
const listLimit = 200

const runColumns = "id, repo, issue, state, revision, fence, created, updated, data"

// view runs f on one snapshot of the database.
func (s *Store) view(ctx context.Context, f func(tx *sql.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := func() error {
		tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		defer tx.Rollback()
		return f(tx)
	}()
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return fault(s.path, err)
}

// decodeRun reads a row of runColumns. The columns win over the record. When the record cannot be
// read, the run has what the columns say and the error is store.ErrDamaged.
func decodeRun(scan func(...any) error) (run.Run, error) {
	var r, c run.Run
	var state, data string
	var fence, created, updated int64
	if err := scan(&c.ID, &c.Repo, &c.Issue, &state, &c.Revision, &fence, &created, &updated, &data); err != nil {
		return run.Run{}, err
	}
	err := json.Unmarshal([]byte(data), &r)
	switch {
	case err == nil && r.ID != c.ID:
		err = fmt.Errorf("it names run %q", r.ID)
	case err == nil && !run.State(state).Known():
		err = fmt.Errorf("%q is no state of a run", state)
	}
	if err != nil {
		r = run.Run{}
		err = fmt.Errorf("%w: the record of run %s cannot be read; the other runs are not touched; put back a copy of the state: %w",
			store.ErrDamagedRun, c.ID, err)
	}
	r.ID, r.Repo, r.Issue, r.State, r.Revision = c.ID, c.Repo, c.Issue, run.State(state), c.Revision
	r.Fence, r.Created, r.Updated = run.Fence(fence), time.Unix(0, created).UTC(), time.Unix(0, updated).UTC()
	r.Effects = []run.Effect{}
	return r, err
}

// Load implements store.Store. A run whose record or effects cannot be read is store.ErrDamagedRun.
func (s *Store) Load(ctx context.Context, id string) (run.Run, error) {
	var r run.Run
	err := s.view(ctx, func(tx *sql.Tx) (err error) {
		r, err = decodeRun(tx.QueryRowContext(ctx, "SELECT "+runColumns+" FROM runs WHERE id = ?", id).Scan)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("run %s: %w", id, store.ErrNotFound)
		}
		if err != nil {
			return err
		}
		pending, err := pendingEffects(ctx, tx, "AND run = ?", id)
		r.Effects = append(r.Effects, pending[id]...)
		for _, f := range r.Effects {
			if !f.Kind.Known() {
				return fmt.Errorf("%w: run %s is to do an effect of kind %q, which there is not", store.ErrDamagedRun, id, f.Kind)
			}
		}
		return err
	})
	if err != nil {
		return run.Run{}, err
	}
	return r, nil
}

// pendingEffects returns the pending effects by run, in the order they must be done.
func pendingEffects(ctx context.Context, q querier, and string, args ...any) (map[string][]run.Effect, error) {
	rows, err := q.QueryContext(ctx, "SELECT run, kind, key, text FROM effects WHERE status = 'pending' "+and+" ORDER BY run, place, seq", args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	pending := map[string][]run.Effect{}
	for rows.Next() {
		var id, kind string
		var f run.Effect
		if err := rows.Scan(&id, &kind, &f.Key, &f.Text); err != nil {
			return nil, err
		}
		f.Kind = run.EffectKind(kind)
		pending[id] = append(pending[id], f)
	}
	return pending, rows.Err()
}

// List implements store.Store: newest first, in the order of their claims. A run whose record
// cannot be read is listed with what is known of it and a reason that says so.
func (s *Store) List(ctx context.Context, f store.Filter) ([]run.Run, error) {
	where, args := []string{"1"}, []any{}
	if f.Repo != "" {
		where, args = append(where, "repo = ?"), append(args, f.Repo)
	}
	if f.Issue != 0 {
		where, args = append(where, "issue = ?"), append(args, f.Issue)
	}
	if f.Live {
		where = append(where, "live = 1")
	}
	if f.Limit <= 0 {
		f.Limit = listLimit
	}
	query := "SELECT " + runColumns + " FROM runs WHERE " + strings.Join(where, " AND ") + " ORDER BY seq DESC LIMIT ?"
	list := []run.Run{}
	err := s.view(ctx, func(tx *sql.Tx) error {
		pending, err := pendingEffects(ctx, tx, "")
		if err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, query, append(args, f.Limit)...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			r, err := decodeRun(rows.Scan)
			switch {
			case errors.Is(err, store.ErrDamaged):
				r.Reason = err.Error()
			case err != nil:
				return err
			}
			r.Effects = append(r.Effects, pending[r.ID]...)
			list = append(list, r)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// History implements store.Store.
func (s *Store) History(ctx context.Context, id string) (store.History, error) {
	h := store.History{Events: []store.Record{}, Effects: []store.EffectRecord{}, Sessions: []store.Session{}}
	err := s.view(ctx, func(tx *sql.Tx) error {
		if err := exists(ctx, tx, id); err != nil {
			return err
		}
		return errors.Join(
			each(ctx, tx, "SELECT seq, at, kind, data FROM events WHERE run = ? ORDER BY seq", id, func(scan func(...any) error) error {
				var e store.Record
				var at int64
				err := scan(&e.Seq, &at, &e.Kind, &e.Data)
				e.At = time.Unix(0, at).UTC()
				h.Events = append(h.Events, e)
				return err
			}),
			each(ctx, tx, "SELECT seq, kind, key, text, status, at FROM effects WHERE run = ? ORDER BY seq", id, func(scan func(...any) error) error {
				var e store.EffectRecord
				var at int64
				var kind string
				err := scan(&e.Seq, &kind, &e.Effect.Key, &e.Effect.Text, &e.Status, &at)
				e.At, e.Effect.Kind = time.Unix(0, at).UTC(), run.EffectKind(kind)
				h.Effects = append(h.Effects, e)
				return err
			}),
			each(ctx, tx, "SELECT id, run, attempt, kind, handle, dir, log, started, ended FROM sessions WHERE run = ? ORDER BY seq", id,
				func(scan func(...any) error) error {
					var e store.Session
					var started int64
					err := scan(&e.ID, &e.Run, &e.Attempt, &e.Kind, &e.Handle, &e.Dir, &e.Log, &started, &e.Ended)
					if started != 0 {
						e.Started = time.Unix(0, started).UTC()
					}
					h.Sessions = append(h.Sessions, e)
					return err
				}))
	})
	if err != nil {
		return store.History{}, err
	}
	return h, nil
}

func exists(ctx context.Context, q querier, id string) error {
	var one int
	err := q.QueryRowContext(ctx, "SELECT 1 FROM runs WHERE id = ?", id).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("run %s: %w", id, store.ErrNotFound)
	}
	return err
}

// each calls f for every row.
func each(ctx context.Context, q querier, query, id string, f func(scan func(...any) error) error) error {
	rows, err := q.QueryContext(ctx, query, id)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// RequestCancel implements store.Controls. The first reason stays.
func (s *Store) RequestCancel(ctx context.Context, id, reason string) error {
	return s.submit(ctx, func(t *txn) error {
		var one int
		found, err := t.scan([]any{&one}, "SELECT 1 FROM runs WHERE id = ?", id)
		if err == nil && !found {
			err = fmt.Errorf("run %s: %w", id, store.ErrNotFound)
		}
		if err != nil {
			return err
		}
		_, err = t.exec("INSERT INTO cancels (run, reason, at) VALUES (?, ?, ?) ON CONFLICT (run) DO NOTHING", id, reason, t.wall.UnixNano())
		return err
	})
}

// Cancel implements store.Controls.
func (s *Store) Cancel(ctx context.Context, id string) (reason string, asked bool, err error) {
	err = s.view(ctx, func(tx *sql.Tx) error {
		if err := exists(ctx, tx, id); err != nil {
			return err
		}
		err := tx.QueryRowContext(ctx, "SELECT reason FROM cancels WHERE run = ?", id).Scan(&reason)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		asked = err == nil
		return err
	})
	return reason, asked, err
}

// Lease implements store.Controls.
func (s *Store) Lease(ctx context.Context, key string) (run.Lease, bool, error) {
	var g grant
	err := s.view(ctx, func(tx *sql.Tx) error {
		return g.scan(key, tx.QueryRowContext(ctx, "SELECT "+grantColumns+" FROM leases WHERE key = ? AND released = 0", key).Scan)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return run.Lease{}, false, nil
	case err != nil:
		return run.Lease{}, false, err
	}
	return g.lease, true, nil
}

// Installation implements store.Controls: 16 hex digits, chosen at the first open.
func (s *Store) Installation(ctx context.Context) (string, error) { return s.installation, ctx.Err() }
