package claim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"interlock/internal/forge"
	"interlock/internal/store"
)

// Watch remembers since when the claims of others have not been seen to move. It goes by the
// boot-time clock of this machine alone: nobody's wall clock counts, and a reboot begins anew.
// What is remembered survives between commands, in one small file for each issue of a repository.
type Watch struct {
	Dir   string // where the files are; made when there is something to keep
	Clock store.Clock
}

// sighting is what such a file holds: the first time that a claim was seen as it still is.
type sighting struct {
	Boot  string `json:"boot"`
	Hash  string `json:"hash"`
	Wiped bool   `json:"wiped"`
	Since int64  `json:"since"` // store time in nanoseconds
}

// See notes that a claim was just read, and returns how long it has been seen unmoved: 0 at the
// first sight. A claim that moves has another hash at each step, so two sights of one hash mean
// that it stood still between them. What cannot be read back is seen for the first time.
func (w Watch) See(c forge.Claim) (time.Duration, error) {
	now := w.Clock.Now()
	file := filepath.Join(w.Dir, strconv.FormatInt(c.Issue, 10)+".json")
	is := sighting{Boot: w.Clock.Boot(), Hash: c.Hash, Wiped: c.Wiped, Since: int64(now)}
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("read when the claim of issue %d was seen: %w", c.Issue, err)
	}
	var was sighting
	if err == nil && json.Unmarshal(data, &was) == nil &&
		was.Boot == is.Boot && was.Hash == is.Hash && was.Wiped == is.Wiped && was.Since <= is.Since {
		return now - time.Duration(was.Since), nil
	}
	if data, err = json.Marshal(is); err == nil {
		err = write(file, append(data, '\n'))
	}
	if err != nil {
		return 0, fmt.Errorf("note when the claim of issue %d was seen: %w", c.Issue, err)
	}
	return 0, nil
}

// write replaces a file whole or not at all.
func write(file string, data []byte) error {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if serr := f.Sync(); err == nil {
		err = serr
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
