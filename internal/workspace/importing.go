package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"interlock/internal/git"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/snapshot"
	"interlock/internal/toolchain"
)

// OfContent reports whether an import failed by what is in the workspace: it would fail again.
func OfContent(err error) bool {
	return errors.Is(err, git.ErrRefused) || errors.Is(err, git.ErrTooBig) || errors.Is(err, git.ErrNoRef) ||
		errors.Is(err, git.ErrNoCommit) || errors.Is(err, snapshot.ErrContent)
}

// systemPath is where git is looked for inside, when nothing of the operator's is needed.
const systemPath = "/usr/local/bin:/usr/bin:/bin"

// BringIn imports what a session left: its commits, and on top of them, as one commit of the
// engine's, what it left uncommitted; extra says whether there was such. With an error, head is what
// was imported all the same. That all is imported is recorded beside the tree. Every git that reads the workspace runs in the sandbox. live ends when
// the run must not go on; an interrupt lets the import finish.
func (h *Host) BringIn(live context.Context, r run.Run, room sandbox.Room, record Record) (head git.Commit, extra bool, err error) {
	if head, err = h.Commits(live, r, room); err != nil {
		return head, false, err
	}
	snap, err := h.snapshot(live, r, room, head, record)
	if err != nil {
		return head, false, err
	}
	if snap != nil {
		head = *snap
	}
	return head, snap != nil, noteImported(live, r, room, head)
}

// Commits imports only what a session committed.
func (h *Host) Commits(live context.Context, r run.Run, room sandbox.Room) (git.Commit, error) {
	return h.importFrom(live, r, room, room.Tree(), sandbox.WorkspaceInside, "HEAD")
}

// importFrom fetches one ref of a git directory that an agent could write into a fresh ref of the
// engine's repository. The other side of the fetch is confined and sees nothing but that
// directory and the borrowed objects, read-only.
func (h *Host) importFrom(live context.Context, r run.Run, room sandbox.Room, dir, inside, rev string) (git.Commit, error) {
	if inside == sandbox.WorkspaceInside {
		if err := CheckSource(dir); err != nil {
			return git.Commit{}, err
		}
	}
	level := sandbox.Level(r.Plan.Sandbox)
	spec := git.ImportSpec{
		Source: inside, Rev: rev, MaxPack: run.PackBytes, Timeout: run.GitTotal,
		Into: fmt.Sprintf("refs/interlock/runs/%s/%d-%s", r.ID, r.Attempt, random()),
	}
	p := sandbox.Policy{
		Level: level, Home: room.Home(), Temp: room.Temp(), Network: alone(level), Dir: dir,
		Mounts: []sandbox.Mount{
			{Source: dir, Target: inside},
			{Source: h.Repo.Objects(), Target: sandbox.ObjectsInside},
		},
		Argv: []string{"git", "-c", "safe.directory=*", "upload-pack"},
	}
	p.Env = toolchain.Env(h.Env, level, room, systemPath)
	if level != sandbox.Full {
		spec.Source = dir
	}
	file := filepath.Join(room.Root, "import-"+random()+".json")
	command, err := sandbox.UploadPack(p, file)
	if err != nil {
		return git.Commit{}, fmt.Errorf("confine the import: %w", err)
	}
	defer os.Remove(file)
	spec.UploadPack = command
	return h.Repo.Import(live, spec)
}

// snapshot commits what differs from head in the workspace, inside the sandbox, with a git
// directory of its own; nil when nothing differs.
func (h *Host) snapshot(live context.Context, r run.Run, from sandbox.Room, head git.Commit, record Record) (*git.Commit, error) {
	dir, err := FreeDir(from.Root, "snapshot")
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
	file, err := h.runSnapshot(live, r, from, room, head, record)
	if err != nil {
		return nil, err
	}
	if changed, err := snapshot.ReadAnswer(file); err != nil || !changed {
		return nil, err
	}
	c, err := h.importFrom(live, r, room, gitDir, snapshotInside, snapshot.Ref)
	if err != nil {
		return nil, err
	}
	if len(c.Parents) != 1 || c.Parents[0] != head.Hash {
		return nil, fmt.Errorf("%w: the snapshot %s is not a child of %s", snapshot.ErrContent, c.Hash, head.Hash)
	}
	return &c, nil
}

// snapshotInside is where the snapshot's own room is seen at level Full.
const snapshotInside = "/interlock/snapshot"

// alone is the network of what needs none. Only level full can take it away.
func alone(level sandbox.Level) string {
	if level == sandbox.Full {
		return "none"
	}
	return "host"
}

// runSnapshot runs our own binary in the sandbox and returns the file that holds its answer.
func (h *Host) runSnapshot(live context.Context, r run.Run, from, room sandbox.Room, head git.Commit, record Record) (string, error) {
	level := sandbox.Level(r.Plan.Sandbox)
	p := sandbox.Policy{
		Level: level, Home: room.Home(), Temp: room.Temp(), Dir: room.Tree(), Network: alone(level),
		Mounts: []sandbox.Mount{
			{Source: from.Tree(), Target: sandbox.WorkspaceInside},
			{Source: h.Repo.Objects(), Target: sandbox.ObjectsInside},
			{Source: room.Tree(), Target: snapshotInside, Write: true},
		},
	}
	p.Env = toolchain.Env(h.Env, level, room, systemPath)
	binary := sandbox.BinaryInside
	if level != sandbox.Full {
		binary = "/proc/self/exe"
		if exe, err := os.Executable(); err == nil {
			binary = exe
		}
	}
	out := filepath.Join(room.Tree(), "answer.json")
	p.Argv = snapshot.Argv(binary, snapshot.Spec{
		GitDir: filepath.Join(p.Inside(room.Tree()), "git"), WorkTree: p.Inside(from.Tree()), Objects: p.Inside(h.Repo.Objects()),
		Parent: head.Hash, Message: message(r),
	}, p.Inside(out))
	rec := h.session(r, room, "snapshot")
	spec := sandbox.Spec{
		Session: rec.ID, Policy: p, Log: rec.Log, Limits: Limits(r.Plan, sandbox.Limits{Total: run.GitTotal, Log: 1 << 20}),
	}
	res, err := h.runSession(live, r.Plan, &rec, spec, record, func(s *sandbox.Session) (sandbox.Result, error) {
		return s.Wait(live) // it is short: an interrupt lets it finish
	})
	if err != nil {
		return "", err
	}
	if res.Exit != 0 {
		return "", fmt.Errorf("%w: git in the workspace ended with %d (%s)", snapshot.ErrContent, res.Exit, res.Why)
	}
	return out, nil
}

// message is that of a commit of what an agent left uncommitted: the title of its issue, on one line
// of a length that lists of commits show whole.
func message(r run.Run) string {
	const most = 72
	after := fmt.Sprintf(" (issue %d)", r.Issue)
	title := []rune(strings.Join(strings.Fields(r.Task.Title), " "))
	if room := most - len(after); len(title) > room {
		title = append(title[:room-3], []rune("...")...)
	}
	return fmt.Sprintf("%s%s\n\nLeft uncommitted by the agent of attempt %d, committed by Interlock.", string(title), after, r.Attempt)
}
