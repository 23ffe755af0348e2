package retention

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"interlock/internal/failpoint"
	"interlock/internal/filetree"
	"interlock/internal/run"
	"interlock/internal/statedir"
	"interlock/internal/store"
	"interlock/internal/workspace"
)

// gone begins the names of what was taken away and is still to be deleted.
const gone = "gone-"

// Swept says what a sweep removed.
type Swept struct {
	Workspaces []Workspace `json:"workspaces"`
	Bytes      int64       `json:"bytes"`    // that the workspaces took
	Logs       int         `json:"logs"`     // runs whose logs were removed
	Finished   int         `json:"finished"` // removals that had been cut short, and are whole now
	// Left names what was due and could not be removed, with the reason.
	Left []string `json:"left"`
}

// Hint says how far a sweep goes.
type Hint struct {
	AnyAge   bool // also what has not been kept as long as the operator wants
	Imported bool // also work that is only in the engine's own repository: an operator's word
	// Enough, if there is one, is asked before each removal whether the sweep may end.
	Enough func() (bool, error)
}

// Sweep removes what is due: workspaces of finished runs whose work was read back from the forge just
// now, or that hold none, and logs. What an earlier removal that was cut short has left goes first. Of
// several sweeps at once one works; the others are refused with exit code 6.
func (k *Keeper) Sweep(ctx context.Context, hint Hint) (s Swept, err error) {
	s = Swept{Workspaces: []Workspace{}, Left: []string{}}
	ids, err := k.ids()
	if err != nil || !exists(k.dir("")) {
		return s, err
	}
	unlock, ok, err := lock(k.dir(""))
	if err != nil {
		return s, err
	}
	if !ok {
		return s, &RefusedError{Exit: run.ExitBusy, What: "another command is removing workspaces in this state directory", Safe: "nothing was removed here"}
	}
	defer unlock()
	if s.Finished, err = k.finish(ctx); err != nil {
		return s, err
	}
	for _, id := range k.oldestFirst(ctx, ids) {
		if hint.Enough != nil {
			if enough, err := hint.Enough(); enough || err != nil {
				return s, err
			}
		}
		if err := k.sweepRun(ctx, id, hint, &s); err != nil {
			return s, err
		}
	}
	if s.Logs, err = k.sweepLogs(ctx); err != nil {
		return s, err
	}
	return s, k.packRefs(ctx)
}

// oldestFirst orders runs by when they came to rest.
func (k *Keeper) oldestFirst(ctx context.Context, ids []string) []string {
	at := map[string]time.Time{}
	for _, id := range ids {
		if r, err := k.Store.Load(ctx, id); err == nil {
			at[id] = r.Updated
		}
	}
	slices.SortStableFunc(ids, func(a, b string) int { return at[a].Compare(at[b]) })
	return ids
}

// sweepRun removes the workspaces of one run that are due.
func (k *Keeper) sweepRun(ctx context.Context, id string, hint Hint, s *Swept) error {
	unlock, ok, err := lock(k.dir(id))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !ok {
		return nil // it is gone, or somebody works with it
	}
	if err != nil {
		return err
	}
	defer unlock()
	g, err := k.group(ctx, id)
	if err != nil {
		return err
	}
	if g.inUse != "" || g.kept || g.unknown != "" || !hint.AnyAge && !k.old(g.run, k.Limits.Workspaces) {
		return nil
	}
	for _, name := range g.names {
		if err := k.sweepOne(ctx, g, name, hint, s); err != nil {
			return err
		}
	}
	return k.tidy(g)
}

// sweepOne removes one workspace, if its work is safe.
func (k *Keeper) sweepOne(ctx context.Context, g *group, name string, hint Hint, s *Swept) error {
	w, err := k.judge(ctx, g, name)
	if err != nil {
		return err
	}
	ok, why := k.maySweep(ctx, g, w, hint)
	if why != "" {
		s.Left = append(s.Left, fmt.Sprintf("%s/%s: %s", g.id, name, why))
	}
	if !ok {
		return nil
	}
	if err := k.remove(ctx, w); err != nil {
		return err
	}
	s.Workspaces = append(s.Workspaces, w)
	s.Bytes += w.Bytes
	return nil
}

// tidy removes the directory of a finished run if there is nothing in it any more.
func (k *Keeper) tidy(g *group) error {
	if g.inUse != "" || g.unknown != "" {
		return nil
	}
	err := os.Remove(k.dir(g.id))
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// old reports whether a run has rested for longer than d.
func (k *Keeper) old(r run.Run, d time.Duration) bool {
	return d > 0 && k.Clock.Wall().Sub(r.Updated) > d
}

// maySweep reports whether a workspace may go without a word of a person, or why not yet.
func (k *Keeper) maySweep(ctx context.Context, g *group, w Workspace, hint Hint) (ok bool, why string) {
	switch {
	case w.InUse != "" || w.Kept || w.Work == Open:
		return false, ""
	case w.Work == None:
		return true, ""
	case w.Work == Imported:
		return hint.Imported, ""
	case hint.Imported:
		return true, ""
	}
	on, err := k.onForge(ctx, g, w.head)
	switch {
	case err != nil:
		return false, "its repository cannot be read: " + err.Error()
	case !on:
		return false, fmt.Sprintf("%.12s is not on the branch %s of its repository any more, nor on %s", w.head, g.run.Branch, g.run.Base.Branch)
	}
	return true, ""
}

// remove takes a workspace away under its name, which is done or not done, and then deletes it. Who
// is killed between the two leaves the rest to the next sweep.
func (k *Keeper) remove(ctx context.Context, w Workspace) error {
	away := filepath.Join(k.dir(""), gone+w.Run+"-"+w.Name+"-"+rand.Text()[:8])
	failpoint.Here("before take workspace away")
	if err := os.Rename(w.Dir, away); err != nil {
		return fmt.Errorf("take workspace %s of run %s away: %w", w.Name, w.Run, err)
	}
	if err := errors.Join(statedir.SyncDirectory(k.dir(w.Run)), statedir.SyncDirectory(k.dir(""))); err != nil {
		return err
	}
	failpoint.Here("after take workspace away")
	return k.delete(ctx, away, fmt.Sprintf("workspace %s of run %s", w.Name, w.Run), w.Files)
}

// told is how often a long removal says how far it is.
const told = 2 * time.Second

// delete deletes a tree that nobody finds under its name any more.
func (k *Keeper) delete(ctx context.Context, path, what string, files int64) error {
	n, last := int64(0), time.Now()
	err := filetree.Remove(ctx, path, func() {
		failpoint.Here("in the midst of remove")
		if n++; n%512 == 0 && time.Since(last) > told {
			last = time.Now()
			k.say("removing %s: %d of %d files", what, n, max(files, n))
		}
	})
	if err != nil {
		return fmt.Errorf("remove %s (the next sweep goes on with %s): %w", what, path, err)
	}
	return nil
}

// finish deletes what earlier removals have taken away and not deleted.
func (k *Keeper) finish(ctx context.Context) (n int, err error) {
	for _, parent := range []string{k.dir(""), workspace.LogDir(k.State, "")} {
		entries, err := os.ReadDir(parent)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return n, err
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), gone) {
				continue
			}
			if err := k.delete(ctx, filepath.Join(parent, e.Name()), "what an earlier removal has left", 0); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}

// sweepLogs removes the logs of runs that are finished for long, and have no workspace any more. The
// record of what happened stays in the store.
func (k *Keeper) sweepLogs(ctx context.Context) (n int, err error) {
	if k.Limits.Logs == 0 {
		return 0, nil
	}
	parent := workspace.LogDir(k.State, "")
	entries, err := os.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if err := context.Cause(ctx); err != nil {
			return n, err
		}
		ok, err := k.logsDue(ctx, e)
		if err != nil {
			return n, err
		}
		if !ok {
			continue
		}
		away := filepath.Join(parent, gone+e.Name()+"-"+rand.Text()[:8])
		if err := os.Rename(filepath.Join(parent, e.Name()), away); err != nil {
			return n, err
		}
		if err := k.delete(ctx, away, "the logs of run "+e.Name(), 0); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// logsDue reports whether the logs of a run may go. The store is asked last: there may be very many.
func (k *Keeper) logsDue(ctx context.Context, e fs.DirEntry) (bool, error) {
	info, err := e.Info()
	if err != nil || !e.IsDir() || k.Clock.Wall().Sub(info.ModTime()) < k.Limits.Logs || exists(k.dir(e.Name())) {
		return false, nil // a log was begun not long ago, or a workspace is kept
	}
	r, err := k.Store.Load(ctx, e.Name())
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamagedRun) {
		return false, nil
	}
	return err == nil && !r.State.Live() && !r.Running && len(r.Effects) == 0 && k.old(r, k.Limits.Logs), err
}

// Begin sweeps beside what else is done, until that is over: stop ends the sweep, which the next one
// goes on with, and returns what it has removed.
func (k *Keeper) Begin(ctx context.Context) (stop func() Swept) {
	ctx, cancel := context.WithTimeout(ctx, sweepMost)
	done := make(chan Swept, 1)
	go func() {
		s, err := k.Sweep(ctx, Hint{})
		var refused *RefusedError
		if err != nil && ctx.Err() == nil && !errors.As(err, &refused) {
			k.say("a sweep of old workspaces did not end: %v", err)
		}
		done <- s
	}()
	return func() Swept {
		cancel()
		return <-done
	}
}

// sweepMost bounds the sweep that runs beside other work.
const sweepMost = 10 * time.Minute
