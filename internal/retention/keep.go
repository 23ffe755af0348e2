package retention

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"interlock/internal/run"
	"interlock/internal/statedir"
	"interlock/internal/text"
)

// keptFile says that a run's workspaces and logs are kept. It is in the directory of its workspaces.
const keptFile = "kept.json"

// keptRecord is what is in it.
type keptRecord struct {
	Run   string    `json:"run"`
	Since time.Time `json:"since"`
}

// isKept reports whether a person has said that what is in a run's directory is kept. A record that
// cannot be read keeps it too.
func isKept(dir string) (bool, error) {
	var rec keptRecord
	found, err := statedir.ReadRecord(filepath.Join(dir, keptFile), &rec)
	return found || err != nil, nil
}

// Keep exempts the workspaces and logs of a run from every sweep, or takes that back. When it returns
// nil that is on disk. changed is false where it was so before.
func (k *Keeper) Keep(ctx context.Context, id string, on bool) (changed bool, err error) {
	dir := k.dir(id)
	if on {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return false, err
		}
	}
	unlock, err := k.lockRun(id)
	if errors.Is(err, fs.ErrNotExist) && !on {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer unlock()
	is, err := isKept(dir)
	if err != nil || is == on {
		return false, err
	}
	file := filepath.Join(dir, keptFile)
	if on {
		if err := statedir.WriteRecord(file, keptRecord{id, k.Clock.Wall()}); err != nil {
			return false, err
		}
		return true, statedir.SyncDirectory(k.dir(""))
	}
	if err := os.Remove(file); err != nil {
		return false, err
	}
	if err := statedir.SyncDirectory(dir); err != nil {
		return false, err
	}
	g, err := k.group(ctx, id)
	if err != nil {
		return true, err
	}
	return true, k.tidy(g)
}

// lockRun excludes every other command that keeps, exports or removes workspaces of a run.
func (k *Keeper) lockRun(id string) (unlock func(), err error) {
	unlock, ok, err := lock(k.dir(id))
	if err == nil && !ok {
		err = &RefusedError{
			Exit: run.ExitBusy, What: fmt.Sprintf("another command works with the workspaces of run %s", text.Quote(id)), Safe: "nothing was changed",
		}
	}
	return unlock, err
}
