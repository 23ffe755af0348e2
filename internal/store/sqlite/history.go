package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"interlock/internal/statedir"
	"interlock/internal/store"
)

const (
	// fenceStep is how many fences are reserved at once: one write of state.floor for so many
	// grants of a key.
	fenceStep = 1000
	// fenceLeap is by how much fences rise when state.floor itself is gone.
	fenceLeap = 1 << 20
)

// adopt compares the database with what is known outside of it, and makes sure that no fence is
// handed out twice. alone says that nobody else has the state open; changed, that the file is not
// what it was when it was sealed. Call it in turn.
func (s *Store) adopt(ctx context.Context, alone, changed bool) error {
	f, found, err := s.readFloor()
	if err != nil {
		return err
	}
	t, err := s.begin(ctx)
	if err != nil {
		return err
	}
	if err := s.settle(t, f, found, alone, changed); err != nil {
		t.abandon()
		return err
	}
	if err := t.conclude(); err != nil {
		return err
	}
	s.epoch, s.seen = t.ledger.epoch, t.ledger.writes
	return nil
}

// olderThan reports whether a database is not the one, or an older copy of the one, that f was
// written for.
func (l *ledger) olderThan(f floor) bool {
	return l.epoch != f.Epoch || l.writes < f.Writes || f.Sealed && l.writes != f.Writes
}

// settle decides what the comparison means.
func (s *Store) settle(t *txn, f floor, found, alone, changed bool) error {
	l := &t.ledger
	older := l.olderThan(f)
	switch {
	case !found && l.epoch == "": // a new state, or one of a program that had no floor
		l.epoch = rand.Text()
		return s.rise(t, floor{Fence: l.reserved})
	case !found:
		return s.raise(t, floor{Fence: l.reserved + fenceLeap}, floorName+" is missing")
	case !alone && (older || !f.Sealed && f.File != s.fileName()):
		return fmt.Errorf("%w: %s was replaced while other processes have the state open; nothing was changed; "+
			"end them (interlock runs --live, ps) and type the command again", store.ErrBusy, s.path)
	case l.epoch == "" && f.Writes == 0: // its making was cut short
		return s.raise(t, f, "")
	case l.epoch == "":
		return s.raise(t, f, "it was restored, or made anew where another one had been")
	case older:
		return s.raise(t, f, "it is an older copy of the one that was in use")
	case changed:
		return damaged(s.path, errors.New("its content has changed since it was closed, by something else than interlock"))
	case alone && !f.Sealed: // not closed properly, so it cannot be known whether this is the latest copy
		return s.rise(t, f)
	}
	s.unsealed = !f.Sealed
	return nil
}

// raise starts a new line of history in a database that is not the one that was used last. Nobody
// else has it open, so nobody stands on its leases; whoever did is fenced.
func (s *Store) raise(t *txn, f floor, why string) error {
	t.ledger.epoch = rand.Text()
	t.ledger.mark = max(t.ledger.mark, time.Duration(f.Mark))
	if _, err := t.exec("UPDATE leases SET released = 1"); err != nil {
		return err
	}
	if why != "" {
		s.raised = fmt.Sprintf("%s: %s; its leases are void and fences go on above %d; what was done since that copy is looked for "+
			"in the world before anything is done again", s.path, why, max(t.ledger.reserved, f.Fence))
		s.warnings = append(s.warnings, s.raised)
		if _, err := t.exec("INSERT OR REPLACE INTO facts (name, value) VALUES ('raised', ?)",
			t.wall.Format(time.RFC3339)+" "+s.raised); err != nil {
			return err
		}
	}
	return s.rise(t, f)
}

// rise makes all fences from now on higher than any that was ever reserved.
func (s *Store) rise(t *txn, f floor) error {
	l := &t.ledger
	l.base = max(l.base, f.Fence)
	l.reserved = max(l.reserved, l.base) + fenceStep
	t.moved = true
	return s.writeFloor(s.floorOf(l))
}

// floorOf is what is known of the database while it is in use.
func (s *Store) floorOf(l *ledger) floor {
	s.unsealed = true
	return floor{Epoch: l.epoch, Fence: l.reserved, Writes: l.writes, Mark: int64(l.mark), File: s.fileName()}
}

// reserve makes sure that fence is below the floor before it is handed out.
func (t *txn) reserve(fence int64) error {
	l := &t.ledger
	if fence <= l.reserved {
		return nil
	}
	f, _, err := t.s.readFloor()
	if err != nil {
		return err
	}
	l.reserved = max(fence, f.Fence) + fenceStep
	return t.s.writeFloor(t.s.floorOf(l))
}

// unseal says that the database goes on from where it was closed. It comes before the first write
// of this process is committed.
func (s *Store) unseal() error {
	if s.unsealed {
		return nil
	}
	f, found, err := s.readFloor()
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("%w: %s was removed while the state is in use; nothing was changed; type the command again",
			store.ErrDamaged, s.floorPath())
	}
	if f.Sealed {
		f.Sealed, f.Digest, f.File = false, "", s.fileName()
		if err := s.writeFloor(f); err != nil {
			return err
		}
	}
	s.unsealed = true
	return nil
}

// seal writes down, when the last process closes the state, how far the database came and what is
// in its file. Where that cannot be done at once it is left: the next one to open then takes the
// long way, and fences rise by a step.
func (s *Store) seal() error {
	if s.epoch == "" || !s.turn.TakeFree() {
		return nil
	}
	defer s.turn.Give()
	alone, err := s.presence.Exclude()
	if !alone || err != nil || s.check() != nil {
		return err
	}
	return s.sealAlone()
}

func (s *Store) sealAlone() error {
	f, found, err := s.readFloor()
	if !found || err != nil || f.Sealed || f.Epoch != s.epoch {
		return err
	}
	ctx := context.Background()
	var busy, pages, moved int
	if err := s.write.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved); err != nil || busy != 0 {
		return err
	}
	l, err := readLedger(ctx, s.write)
	if err != nil || l.epoch != f.Epoch {
		return err
	}
	if err := s.closeWriter(); err != nil {
		return err
	}
	f.Writes, f.Mark, f.Sealed = l.writes, int64(l.mark), true
	if f.Digest, err = statedir.Digest(s.path, checkBytes); err != nil {
		return err
	}
	return s.writeFloor(f)
}

// changedSinceSealed compares the file with its seal.
func (s *Store) changedSinceSealed() (bool, error) {
	f, found, err := s.readFloor()
	if !found || err != nil || !f.Sealed || f.Digest == "" {
		return false, err
	}
	for _, end := range []string{"-wal", "-journal"} {
		if info, err := os.Lstat(s.path + end); err == nil && info.Size() > 0 {
			return false, nil // a power loss brought it back, or somebody wrote; the count of writes tells
		}
	}
	now, err := statedir.Digest(s.path, checkBytes)
	return now != f.Digest, err
}
