package engine

import (
	"errors"
	"fmt"
	"io/fs"

	"interlock/internal/git"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/store"
	"interlock/internal/workspace"
)

// recover marks the sessions of a dead holder as gone, which was proved before, and brings in
// what the last agent had left. Its workspace is kept.
func (e *Engine) recover(h *hold, r run.Run) (run.Run, error) {
	hist, err := e.Store.History(h.Live, r.ID)
	if err != nil {
		return r, err
	}
	var last *store.Session
	whole := false // it ended by itself, so what it left uncommitted is not half-written
	for i := range hist.Sessions {
		s := &hist.Sessions[i]
		if s.Kind == "agent" && s.Attempt == r.Attempt {
			last, whole = s, s.Ended
		}
		if s.Ended {
			continue
		}
		s.Ended = true
		if err := h.Record(*s); err != nil {
			return r, err
		}
	}
	if !r.Running {
		return r, nil
	}
	if last == nil { // it was counted, but never begun
		return h.Apply(r, run.SessionStopped{})
	}
	return e.salvage(h, r, sandbox.Room{Root: last.Dir}, whole)
}

// salvage imports what a dead holder's session left.
func (e *Engine) salvage(h *hold, r run.Run, room sandbox.Room, whole bool) (run.Run, error) {
	var head git.Commit
	var err error
	if whole {
		head, err = e.bringIn(h, r, room)
	} else {
		head, err = e.work.Commits(h.Live, r, room)
	}
	if err != nil && !workspace.OfContent(err) && !errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("bring in what attempt %d left in %s: %w", r.Attempt, room.Root, err)
	}
	tip := e.tip(h, r, head)
	switch {
	case err != nil:
		e.say(r, "not imported", "what attempt %d left cannot all be imported (%v); it is kept in %s", r.Attempt, err, room.Root)
	case tip != "":
		e.say(r, "imported", "attempt %d had brought %.12s; its workspace is kept in %s", r.Attempt, tip, room.Root)
	}
	return h.Apply(r, run.Crashed{Tip: tip})
}
