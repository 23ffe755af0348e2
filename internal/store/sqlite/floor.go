package sqlite

import (
	"fmt"
	"path/filepath"

	"interlock/internal/statedir"
	"interlock/internal/store"
)

// floorName is the file of what must not go back when the database alone is put back.
const floorName = "state.floor"

// floor is what is known of the database outside of it. It is written before the database needs
// it, and only now and then: fences are reserved in steps, and the seal is set and broken once per
// time in which any process has the state open. Read and write it in turn.
type floor struct {
	Epoch  string `json:"epoch"`  // the line of history that is in use
	Fence  int64  `json:"fence"`  // no fence above this one was ever handed out
	Writes int64  `json:"writes"` // the database had at least so many write transactions
	Mark   int64  `json:"mark"`   // store time had come at least so far
	File   string `json:"file"`   // which file the database was when it was last written to
	// Sealed: the last process has closed the database properly, and since then it has had exactly
	// Writes transactions. Digest is then the content of its file, "" when that is too large.
	Sealed bool   `json:"sealed"`
	Digest string `json:"digest"`
}

func (s *Store) floorPath() string { return filepath.Join(filepath.Dir(s.path), floorName) }

// readFloor returns false when there is none. One that cannot be read is damage: to go on without
// it would be to forget what it is there for.
func (s *Store) readFloor() (f floor, found bool, err error) {
	path := s.floorPath()
	found, err = statedir.ReadRecord(path, &f)
	if err != nil {
		return floor{}, false, fmt.Errorf("%w: %s, which keeps the highest fence, is not what was written; nothing was changed; "+
			"keep a copy of the directory, remove that file, and type the command again: fences then go on far above those that "+
			"the database knows: %w", store.ErrDamaged, path, err)
	}
	return f, found, nil
}

// writeFloor replaces the file as a whole; when it returns nil it is on disk.
func (s *Store) writeFloor(f floor) error {
	path := s.floorPath()
	if err := statedir.WriteRecord(path, f); err != nil {
		return unwritable(path, err)
	}
	return nil
}

func (s *Store) fileName() string {
	if s.identity == nil {
		return ""
	}
	return statedir.Identity(s.identity)
}
