package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/store"
	"interlock/internal/toolchain"
)

// Record saves a session durably, under the authority of whoever drives the run: before it is
// started, and again when its whole tree is gone.
type Record func(store.Session) error

// Wait waits for the end of a session's whole tree.
type Wait func(*sandbox.Session) (sandbox.Result, error)

// Command is what an agent's session runs, and what of the operator's it needs for that.
type Command struct {
	Argv   []string
	Env    []string // NAME=value, beside what every session gets
	Mounts []sandbox.Mount
}

// Agent starts an agent in a room and has wait wait for it. Its identity is recorded before
// anything of it runs. live ends when the run must not go on.
func (h *Host) Agent(live context.Context, r run.Run, room sandbox.Room, c Command, record Record, wait Wait) (sandbox.Result, error) {
	s := h.session(r, room, "agent")
	if err := os.MkdirAll(filepath.Dir(s.Log), 0o700); err != nil {
		return sandbox.Result{}, err
	}
	spec := sandbox.Spec{
		Session: s.ID, Policy: h.policy(r, room, c), Stdin: filepath.Join(room.Task(), "prompt.md"), Log: s.Log,
		Watch:  []string{room.Tree()},
		Limits: Limits(r.Plan, sandbox.Limits{Total: r.Plan.AgentTotal, Idle: r.Plan.AgentIdle, Log: run.LogBytes}),
	}
	return h.runSession(live, r.Plan, &s, spec, record, wait)
}

// session is the record of a session that is about to be started.
func (h *Host) session(r run.Run, room sandbox.Room, kind string) store.Session {
	return store.Session{
		ID: r.ID + "-" + random(), Run: r.ID, Attempt: r.Attempt, Kind: kind, Dir: room.Root,
		Log: filepath.Join(LogDir(h.State, r.ID), fmt.Sprintf("%d-%s.log", r.Attempt, kind)), Started: h.Now(),
	}
}

// policy is what a session of this run may see. The operator's files that the agent needs, and
// nothing else of the host, come with the command.
func (h *Host) policy(r run.Run, room sandbox.Room, c Command) sandbox.Policy {
	level := sandbox.Level(r.Plan.Sandbox)
	p := sandbox.Policy{
		Level: level, Tools: h.Tools, Home: room.Home(), Temp: room.Temp(), Dir: room.Tree(), Network: "host",
		Mounts: []sandbox.Mount{
			{Source: room.Tree(), Target: sandbox.WorkspaceInside, Write: true},
			{Source: h.Repo.Objects(), Target: sandbox.ObjectsInside},
			{Source: room.Task(), Target: sandbox.TaskInside},
		},
		Argv: c.Argv,
	}
	p.Mounts = append(p.Mounts, c.Mounts...)
	p.Env = append(toolchain.Env(h.Env, level, room, h.Path),
		"INTERLOCK_PROMPT_FILE="+filepath.Join(p.Inside(room.Task()), "prompt.md"),
		fmt.Sprintf("INTERLOCK_ISSUE=%d", r.Issue), "INTERLOCK_RUN="+r.ID, fmt.Sprintf("INTERLOCK_ATTEMPT=%d", r.Attempt))
	p.Env = append(p.Env, c.Env...)
	return p
}

// Limits adds to the limits of a session what the operator allows each of them.
func Limits(p run.Plan, l sandbox.Limits) sandbox.Limits {
	l.Tasks, l.Memory = p.MaxTasks, p.MaxMemory
	return l
}

// runSession is the life of one session: prepared, recorded, started, waited for, recorded as gone.
func (h *Host) runSession(live context.Context, plan run.Plan, s *store.Session, spec sandbox.Spec, record Record, wait Wait) (sandbox.Result, error) {
	if h.Secrets != nil {
		spec.Secrets = h.Secrets(plan)
	}
	tree, err := sandbox.Prepare(live, h.Facts, spec)
	if err != nil {
		return sandbox.Result{}, fmt.Errorf("prepare the session: %w", err)
	}
	handle, err := json.Marshal(tree.Identity())
	if err == nil {
		s.Handle = string(handle)
		err = record(*s)
	}
	if err == nil {
		err = tree.Start()
	}
	if err != nil {
		tree.Stop()
		return sandbox.Result{}, errors.Join(fmt.Errorf("start the session: %w", err), waitGone(tree))
	}
	res, err := wait(tree)
	if err != nil {
		return res, err
	}
	s.Ended = true
	return res, record(*s)
}

func waitGone(tree *sandbox.Session) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err := tree.Wait(ctx)
	return err
}

// EndSessions ends what is left of sessions that are not recorded as ended, and proves each gone.
// The proof is a sentence for people.
func EndSessions(ctx context.Context, all []store.Session) (proof string, err error) {
	ended := 0
	for _, s := range all {
		if s.Ended {
			continue
		}
		var id sandbox.Identity
		if err := json.Unmarshal([]byte(s.Handle), &id); err != nil {
			return "", fmt.Errorf("session %s: its record cannot be read: %w", s.ID, err)
		}
		if _, err := sandbox.End(ctx, id); err != nil {
			return "", fmt.Errorf("session %s: %w", s.ID, err)
		}
		ended++
	}
	if ended == 0 {
		return "no session of it was left", nil
	}
	return fmt.Sprintf("what was left of its session was ended and is proved gone (%d)", ended), nil
}
