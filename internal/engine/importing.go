package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"interlock/internal/git"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/store"
)

// errSnapshot: files that an agent left uncommitted cannot be taken in.
var errSnapshot = errors.New("files that were left uncommitted cannot be taken in")

// systemPath is where git is looked for inside, when nothing of the operator's is needed.
const systemPath = "/usr/local/bin:/usr/bin:/bin"

// bringIn imports what a session left: its commits, and on top of them, as one commit of the
// engine's, what it left uncommitted. Every git that reads the workspace runs in the sandbox.
func (e *Engine) bringIn(h *hold, r run.Run, room sandbox.Room) (git.Commit, error) {
	head, err := e.importFrom(h, r, room, room.Tree(), sandbox.WorkspaceInside, "HEAD")
	if err != nil {
		return git.Commit{}, err
	}
	snap, err := e.snapshot(h, r, room, head)
	if err != nil {
		return head, err
	}
	if snap == nil {
		return head, nil
	}
	e.say(r, "committed", "the agent left files uncommitted; the engine committed them as %.12s", snap.Hash)
	return *snap, nil
}

// importFrom fetches one ref of a git directory that an agent could write into a fresh ref of the
// engine's repository. The other side of the fetch is confined and sees nothing but that
// directory and the borrowed objects, read-only.
func (e *Engine) importFrom(h *hold, r run.Run, room sandbox.Room, dir, inside, rev string) (git.Commit, error) {
	if inside == sandbox.WorkspaceInside {
		if err := git.CheckSource(dir); err != nil {
			return git.Commit{}, err
		}
	}
	level := sandbox.Level(r.Plan.Sandbox)
	spec := git.ImportSpec{
		Source: inside, Rev: rev, MaxPack: run.PackBytes, Timeout: run.GitTotal,
		Into: fmt.Sprintf("refs/interlock/runs/%s/%d-%s", r.ID, r.Attempt, random(4)),
	}
	p := sandbox.Policy{
		Level: level, Home: room.Home(), Temp: room.Temp(), Network: alone(level), Dir: dir,
		Mounts: []sandbox.Mount{
			{Source: dir, Target: inside},
			{Source: e.repo.Objects(), Target: sandbox.ObjectsInside},
		},
		Argv: []string{"git", "-c", "safe.directory=*", "upload-pack"},
	}
	p.Env = sandbox.BaseEnv(e.Env, level, room, systemPath)
	if level != sandbox.Full {
		spec.Source = dir
	}
	file := filepath.Join(room.Root, "import-"+random(4)+".json")
	command, err := sandbox.UploadPack(p, file)
	if err != nil {
		return git.Commit{}, fmt.Errorf("confine the import: %w", err)
	}
	defer os.Remove(file)
	spec.UploadPack = command
	return e.repo.Import(h.live, spec)
}

// snapshot commits what differs from head in the workspace, inside the sandbox, with a git
// directory of its own; nil when nothing differs.
func (e *Engine) snapshot(h *hold, r run.Run, from sandbox.Room, head git.Commit) (*git.Commit, error) {
	dir, err := freeDir(from.Root, "snapshot")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	room, err := sandbox.NewRoom(dir)
	if err != nil {
		return nil, err
	}
	gitDir := filepath.Join(room.Tree(), "git")
	if err := os.Mkdir(gitDir, 0o700); err != nil {
		return nil, err
	}
	res, err := e.runSnapshot(h, r, from, room, head)
	if err != nil {
		return nil, err
	}
	out, err := os.ReadFile(res)
	if err != nil {
		return nil, err
	}
	var said snapshotResult
	if err := json.Unmarshal(out, &said); err != nil {
		return nil, fmt.Errorf("%w: the answer cannot be read: %.200q", errSnapshot, out)
	}
	if said.Err != "" {
		return nil, fmt.Errorf("%w: %.500q", errSnapshot, said.Err)
	}
	if !said.Changed {
		return nil, nil
	}
	c, err := e.importFrom(h, r, room, gitDir, "/interlock/snapshot", "refs/heads/snapshot")
	if err != nil {
		return nil, err
	}
	if len(c.Parents) != 1 || c.Parents[0] != head.Hash {
		return nil, fmt.Errorf("%w: the snapshot %s is not a child of %s", errSnapshot, c.Hash, head.Hash)
	}
	return &c, nil
}

// alone is the network of what needs none. Only level full can take it away.
func alone(level sandbox.Level) string {
	if level == sandbox.Full {
		return "none"
	}
	return "host"
}

// runSnapshot runs our own binary in the sandbox and returns the file that holds its answer.
func (e *Engine) runSnapshot(h *hold, r run.Run, from, room sandbox.Room, head git.Commit) (string, error) {
	level := sandbox.Level(r.Plan.Sandbox)
	p := sandbox.Policy{
		Level: level, Home: room.Home(), Temp: room.Temp(), Dir: room.Tree(), Network: alone(level),
		Mounts: []sandbox.Mount{
			{Source: from.Tree(), Target: sandbox.WorkspaceInside},
			{Source: e.repo.Objects(), Target: sandbox.ObjectsInside},
			{Source: room.Tree(), Target: "/interlock/snapshot", Write: true},
		},
	}
	p.Env = sandbox.BaseEnv(e.Env, level, room, systemPath)
	binary := sandbox.BinaryInside
	if level != sandbox.Full {
		binary = "/proc/self/exe"
		if exe, err := os.Executable(); err == nil {
			binary = exe
		}
	}
	out := filepath.Join(room.Tree(), "answer.json")
	p.Argv = []string{
		binary, snapshotWord, filepath.Join(p.Inside(room.Tree()), "git"), p.Inside(from.Tree()), p.Inside(e.repo.Objects()),
		head.Hash, fmt.Sprintf("Work on issue %d\n\nLeft uncommitted by the agent of attempt %d, committed by Interlock.", r.Issue, r.Attempt),
		p.Inside(out),
	}
	rec := store.Session{
		ID: r.ID + "-" + random(4), Run: r.ID, Attempt: r.Attempt, Kind: "snapshot", Dir: room.Root,
		Log: filepath.Join(e.State, "logs", r.ID, fmt.Sprintf("%d-snapshot.log", r.Attempt)), Started: e.Clock.Wall(),
	}
	spec := sandbox.Spec{
		Session: rec.ID, Policy: p, Log: rec.Log, Limits: limits(r.Plan, sandbox.Limits{Total: run.GitTotal, Log: 1 << 20}),
	}
	res, err := e.runSession(h, &rec, spec, func(live *sandbox.Session) (sandbox.Result, error) {
		return live.Wait(h.live) // it is short: an interrupt lets it finish
	})
	if err != nil {
		return "", err
	}
	if res.Exit != 0 {
		return "", fmt.Errorf("%w: git in the workspace ended with %d (%s)", errSnapshot, res.Exit, res.Why)
	}
	return out, nil
}

// recover marks the sessions of a dead holder as gone, which was proved before, and brings in
// what the last agent had left. Its workspace is kept.
func (e *Engine) recover(h *hold, r run.Run) (run.Run, error) {
	hist, err := e.Store.History(h.live, r.ID)
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
		if err := h.record(*s); err != nil {
			return r, err
		}
	}
	if !r.Running {
		return r, nil
	}
	if last == nil { // it was counted, but never begun
		return h.apply(r, run.SessionStopped{})
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
		head, err = e.importFrom(h, r, room, room.Tree(), sandbox.WorkspaceInside, "HEAD")
	}
	if err != nil && !ofContent(err) && !errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("bring in what attempt %d left in %s: %w", r.Attempt, room.Root, err)
	}
	tip := e.tip(h, r, head)
	switch {
	case err != nil:
		e.say(r, "not imported", "what attempt %d left cannot all be imported (%v); it is kept in %s", r.Attempt, err, room.Root)
	case tip != "":
		e.say(r, "imported", "attempt %d had brought %.12s; its workspace is kept in %s", r.Attempt, tip, room.Root)
	}
	return h.apply(r, run.Crashed{Tip: tip})
}
