package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"interlock/internal/agent"
	"interlock/internal/failpoint"
	"interlock/internal/forge"
	"interlock/internal/git"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/scope"
	"interlock/internal/store"
)

// implement is one attempt: a private workspace, one agent session in it, and the import of what
// it left.
func (e *Engine) implement(h *hold, t *task, r run.Run) (run.Run, error) {
	if r.Spent >= r.Plan.Attempts {
		return h.apply(r, e.spent(r))
	}
	h.within(3 * run.GitTotal)
	room, err := e.room(r)
	if err != nil {
		return r, err
	}
	if err := e.furnish(h.session, r, room); err != nil {
		return interruptedBy(h, r, err)
	}
	r, err = h.apply(r, run.SessionStarted{Sandbox: r.Plan.Sandbox}) // counted before it starts
	if err != nil {
		return r, err
	}
	s, r, err := e.agentSession(h, t, r, room)
	if err != nil && !s.begun { // nothing of the agent ran, so nothing is counted
		back, aerr := h.apply(r, run.SessionStopped{})
		if aerr != nil {
			return r, errors.Join(err, aerr)
		}
		return back, err
	}
	if err != nil {
		return r, err
	}
	return e.collect(h, r, s)
}

// spent parks a run whose attempts are used up.
func (e *Engine) spent(r run.Run) run.Event {
	return run.ParkedBecause{
		Reason: fmt.Sprintf("%d of %d attempts are used; the last one: %s", r.Spent, r.Plan.Attempts, r.Reason),
		Say:    fmt.Sprintf("%d of %d attempts are used, and none brought work that passes.", r.Spent, r.Plan.Attempts),
		Next: fmt.Sprintf("interlock logs %s, then mend the issue, the agent or the checks; or type the command again with --attempts %d",
			r.ID, r.Plan.Attempts+3),
		Exit: run.ExitFailed, Precond: preconditionOf(r.Task.Digest, r.Base.Commit.Hash, r.Plan),
	}
}

// hopeless parks a run whose next attempt would end as this one did, until the operator has seen
// to the machine: what it depends on is not in the run, so the same command may try again.
func (e *Engine) hopeless(r run.Run, reason string) run.Event {
	return run.ParkedBecause{
		Reason: reason, Next: "interlock logs " + r.ID + ", then type the command again with another --command",
		Say: "The agent cannot be started.", Exit: run.ExitFailed,
	}
}

func (e *Engine) room(r run.Run) (sandbox.Room, error) {
	dir, err := freeDir(filepath.Join(e.State, "work", r.ID), fmt.Sprint(r.Attempt+1))
	if err != nil {
		return sandbox.Room{}, fmt.Errorf("make a workspace: %w", err)
	}
	return sandbox.NewRoom(dir)
}

// furnish puts the private clone and the prompt into a room.
func (e *Engine) furnish(ctx context.Context, r run.Run, room sandbox.Room) error {
	start := r.Tip
	if start == "" {
		start = r.Base.Commit.Hash
	}
	err := e.repo.Workspace(ctx, git.WorkspaceSpec{
		Dir: room.Tree(), Commit: start, Branch: r.Branch, Objects: e.objects(sandbox.Level(r.Plan.Sandbox)),
	})
	if err != nil {
		return fmt.Errorf("make the workspace of attempt %d: %w", r.Attempt+1, err)
	}
	text, err := agent.Prompt(e.promptData(r))
	if err != nil {
		return fmt.Errorf("write the prompt: %w", err)
	}
	return os.WriteFile(filepath.Join(room.Task(), "prompt.md"), []byte(text), 0o600)
}

// objects is where the borrowed objects are seen from inside.
func (e *Engine) objects(level sandbox.Level) string {
	if level == sandbox.Full {
		return sandbox.ObjectsInside
	}
	return e.repo.Objects()
}

// policy is what a session of this run may see. The operator's files that the agent needs, and
// nothing else of the host, come with the launch.
func (e *Engine) policy(t *task, r run.Run, room sandbox.Room) sandbox.Policy {
	level := sandbox.Level(r.Plan.Sandbox)
	p := sandbox.Policy{
		Level: level, Tools: e.tools, Home: room.Home(), Temp: room.Temp(), Dir: room.Tree(), Network: "host",
		Mounts: []sandbox.Mount{
			{Source: room.Tree(), Target: sandbox.WorkspaceInside, Write: true},
			{Source: e.repo.Objects(), Target: sandbox.ObjectsInside},
			{Source: room.Task(), Target: sandbox.TaskInside},
		},
		Argv: t.launch.Argv,
	}
	p.Mounts = append(p.Mounts, t.launch.Mounts...)
	p.Env = append(sandbox.BaseEnv(e.Env, level, room, e.path), t.launch.Env...)
	p.Env = append(p.Env,
		"INTERLOCK_PROMPT_FILE="+filepath.Join(p.Inside(room.Task()), "prompt.md"),
		fmt.Sprintf("INTERLOCK_ISSUE=%d", r.Issue), "INTERLOCK_RUN="+r.ID, fmt.Sprintf("INTERLOCK_ATTEMPT=%d", r.Attempt))
	for _, name := range r.Plan.Env {
		for _, kv := range e.Env {
			if strings.HasPrefix(kv, name+"=") {
				p.Env = append(p.Env, kv)
			}
		}
	}
	return p
}

// ended is a session of which the whole tree is gone.
type ended struct {
	room   sandbox.Room
	result sandbox.Result
	begun  bool // the agent was told to start
}

// agentSession starts the agent and waits for the end of its whole tree. Its identity is saved
// before anything of it runs. The run is returned with the claim as it was renewed meanwhile.
func (e *Engine) agentSession(h *hold, t *task, r run.Run, room sandbox.Room) (ended, run.Run, error) {
	s := store.Session{
		ID: r.ID + "-" + random(4), Run: r.ID, Attempt: r.Attempt, Kind: "agent", Dir: room.Root,
		Log: filepath.Join(e.State, "logs", r.ID, fmt.Sprintf("%d-agent.log", r.Attempt)), Started: e.Clock.Wall(),
	}
	end := ended{room: room}
	if err := os.MkdirAll(filepath.Dir(s.Log), 0o700); err != nil {
		return end, r, err
	}
	spec := sandbox.Spec{
		Session: s.ID, Policy: e.policy(t, r, room), Stdin: filepath.Join(room.Task(), "prompt.md"), Log: s.Log,
		Watch:  []string{room.Tree()},
		Limits: limits(r.Plan, sandbox.Limits{Total: r.Plan.AgentTotal, Idle: r.Plan.AgentIdle, Log: run.LogBytes}),
	}
	h.within(r.Plan.AgentTotal + run.AgentStartup)
	e.say(r, "agent", "attempt %d (%d of %d spent): %s starts, sandbox %s", r.Attempt, r.Spent, r.Plan.Attempts, t.agent.Name(), r.Plan.Sandbox)
	var err error
	end.result, err = e.runSession(h, &s, spec, func(live *sandbox.Session) (res sandbox.Result, err error) {
		end.begun = true
		err = e.whileHeld(h, &r, func() (err error) {
			res, err = live.Wait(h.session)
			return err
		})
		return res, err
	})
	return end, r, err
}

// limits adds to the limits of a session what the operator allows each of them.
func limits(p run.Plan, l sandbox.Limits) sandbox.Limits {
	l.Tasks, l.Memory = p.MaxTasks, p.MaxMemory
	return l
}

// runSession is the life of one session: prepared, recorded, started, waited for, recorded as gone.
func (e *Engine) runSession(h *hold, s *store.Session, spec sandbox.Spec, wait func(*sandbox.Session) (sandbox.Result, error)) (sandbox.Result, error) {
	live, err := sandbox.Prepare(h.live, e.Facts, spec)
	if err != nil {
		return sandbox.Result{}, fmt.Errorf("prepare the session: %w", err)
	}
	handle, err := json.Marshal(live.Identity())
	if err == nil {
		s.Handle = string(handle)
		err = h.record(*s)
	}
	if err == nil {
		err = live.Start()
	}
	if err != nil {
		live.Stop()
		return sandbox.Result{}, errors.Join(fmt.Errorf("start the session: %w", err), waitGone(live))
	}
	res, err := wait(live)
	if err != nil {
		return res, err
	}
	s.Ended = true
	return res, h.record(*s)
}

func waitGone(live *sandbox.Session) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err := live.Wait(ctx)
	return err
}

// lifeSign is how often a long step says that it goes on.
const lifeSign = 30 * time.Second

// whileHeld does something long, in which the run is not saved, and meanwhile renews the claim on
// the forge. When the claim is lost the lease is given up too, which ends what runs.
func (e *Engine) whileHeld(h *hold, r *run.Run, long func() error) error {
	done := make(chan error, 1)
	go func() { done <- long() }()
	tick := time.NewTicker(controlEvery)
	defer tick.Stop()
	begin := e.Clock.Now()
	said := begin
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
		}
		now := e.Clock.Now()
		if now-begin > time.Second {
			failpoint.Here("agent-running")
		}
		if now-said >= lifeSign {
			said = now
			e.say(*r, "still running", "%s so far", (now - begin).Round(time.Second))
		}
		if now-h.claimed < run.ClaimRenew || h.session.Err() != nil {
			continue
		}
		h.claimed = now
		if err := e.renewClaim(h, r); err != nil {
			e.say(*r, "claim", "%v", err)
		}
	}
}

// renewClaim writes the next commit of the claim while a long step runs. Only the certainty that
// the claim is somebody else's ends the step; an answer that is missing is asked for again.
func (e *Engine) renewClaim(h *hold, r *run.Run) error {
	c, err := e.claims.Renew(h.live, *r)
	if errors.Is(err, forge.ErrLost) {
		h.lose(err)
	}
	if err != nil {
		return fmt.Errorf("renew the claim of issue %d: %w", r.Issue, err)
	}
	next, err := h.apply(*r, run.Renewed{Claim: c})
	if err != nil {
		return err
	}
	*r = next
	return nil
}

// collect imports what a session left and judges the attempt. What can be imported is kept, even
// where the rest cannot; a fault of our own is not the agent's, so it is tried again by whoever
// goes on.
func (e *Engine) collect(h *hold, r run.Run, s ended) (run.Run, error) {
	h.within(10 * run.GitTotal)
	head, err := e.bringIn(h, r, s.room)
	cause := context.Cause(h.session)
	if cause != nil && s.result.Why != "exit" {
		return e.stopped(h, r, s, head, err)
	}
	if err != nil && !ofContent(err) {
		return r, err
	}
	if err != nil {
		e.say(r, "not imported", "attempt %d: %v; all that it left is kept in %s", r.Attempt, err, s.room.Root)
		return h.apply(r, run.Failed{
			Reason:   fmt.Sprintf("attempt %d: the work cannot be imported: %v", r.Attempt, err),
			Findings: fmt.Sprintf("What you left could not be imported: %v", err), Tip: e.tip(h, r, head),
		})
	}
	e.clear(s.room)
	return e.judge(h, r, s, head)
}

// ofContent reports whether an import failed by what is in the workspace.
func ofContent(err error) bool {
	return errors.Is(err, git.ErrRefused) || errors.Is(err, git.ErrTooBig) || errors.Is(err, git.ErrNoRef) ||
		errors.Is(err, git.ErrNoCommit) || errors.Is(err, errSnapshot)
}

// tip returns the hash of a head that goes on from the base or from where the attempt started,
// "" for any other: what was there is never given up for it.
func (e *Engine) tip(h *hold, r run.Run, head git.Commit) string {
	for _, from := range []string{r.Base.Commit.Hash, r.Tip} {
		if head.Hash == "" || from == "" {
			continue
		}
		if ok, err := e.repo.IsAncestor(h.live, from, head.Hash); err == nil && ok {
			return head.Hash
		}
	}
	return ""
}

// stopped keeps the work of a session that was ended by an interrupt, a cancel or a loss.
func (e *Engine) stopped(h *hold, r run.Run, s ended, head git.Commit, err error) (run.Run, error) {
	cause := context.Cause(h.session)
	if !errors.Is(cause, errInterrupted) && !errors.Is(cause, errCanceled) {
		return r, cause
	}
	if err != nil {
		e.say(r, "not imported", "%v; all that attempt %d left is kept in %s", err, r.Attempt, s.room.Root)
	}
	return h.apply(r, run.SessionStopped{Tip: e.tip(h, r, head)})
}

// judge decides what an attempt was worth, by how the session ended and by what is there.
func (e *Engine) judge(h *hold, r run.Run, s ended, head git.Commit) (run.Run, error) {
	fail := func(findings, format string, args ...any) (run.Run, error) {
		reason := fmt.Sprintf("attempt %d: ", r.Attempt) + fmt.Sprintf(format, args...)
		e.say(r, "attempt failed", "%s", reason)
		return h.apply(r, run.Failed{Reason: reason, Findings: findings, Tip: e.tip(h, r, head)})
	}
	res := s.result
	nothing := head.Hash == r.Tip || r.Tip == "" && head.Hash == r.Base.Commit.Hash
	switch {
	case res.Why == "total":
		return fail(fmt.Sprintf("You were ended after %s. Do less, and finish.", r.Plan.AgentTotal), "the agent was ended after %s", r.Plan.AgentTotal)
	case res.Why == "idle":
		return fail(fmt.Sprintf("You were ended after %s without output or a change.", r.Plan.AgentIdle), "the agent was ended after %s without output or a change", r.Plan.AgentIdle)
	case res.Why == "tasks":
		return fail(fmt.Sprintf("You were ended because you had more than %d processes and threads at once. Start fewer.", r.Plan.MaxTasks), "the agent ran into --max-tasks %d", r.Plan.MaxTasks)
	case res.Why == "memory":
		return fail(fmt.Sprintf("You were ended because you needed more than %d bytes of memory. Need less.", r.Plan.MaxMemory), "the agent ran into --max-memory (%d bytes)", r.Plan.MaxMemory)
	case res.Exit == 127 && nothing:
		return h.apply(r, e.hopeless(r, "the agent's command was not found (exit 127): "+r.Plan.Command))
	case res.Exit == 126 && nothing:
		return h.apply(r, e.hopeless(r, "the agent's command cannot be executed (exit 126): "+r.Plan.Command))
	case res.Exit != 0:
		return fail(fmt.Sprintf("You ended with exit code %d %s. What you had done is in the workspace.", res.Exit, res.Signal), "the agent ended with exit %d %s", res.Exit, res.Signal)
	}
	base := r.Base.Commit
	onBase, err := e.repo.IsAncestor(h.live, base.Hash, head.Hash)
	if err != nil {
		return r, fmt.Errorf("compare the work with its base: %w", err)
	}
	switch {
	case !onBase:
		return fail(fmt.Sprintf("Your branch does not hold the base commit %s. If the base has moved, merge that commit; never rewrite what was there.", base.Hash), "the work is not built on its base")
	case head.Tree == base.Tree:
		return fail("You changed nothing. The issue asks for a change.", "the agent changed nothing")
	}
	e.say(r, "delivered", "attempt %d brought %.12s", r.Attempt, head.Hash)
	return h.apply(r, run.Delivered{Head: run.Commit{Hash: head.Hash, Tree: head.Tree}})
}

// clear removes the caches of a session that is over. The workspace itself is kept.
func (e *Engine) clear(room sandbox.Room) {
	for _, dir := range []string{room.Temp(), filepath.Join(room.Home(), ".cache")} {
		if err := os.RemoveAll(dir); err != nil {
			e.Notify(Notice{At: e.Clock.Wall(), Kind: "left behind", Text: fmt.Sprintf("caches in %s could not be removed: %v", dir, err)})
		}
	}
}

// interruptedBy replaces an error that an interrupt made by the interrupt; a cancel is carried out
// by the next look at the run.
func interruptedBy(h *hold, r run.Run, err error) (run.Run, error) {
	switch cause := context.Cause(h.session); {
	case errors.Is(cause, errCanceled):
		return r, nil
	case cause != nil:
		return r, cause
	}
	return r, err
}

func (e *Engine) promptData(r run.Run) agent.PromptData {
	return agent.PromptData{
		Issue: r.Issue, Title: r.Task.Title, Body: r.Task.Body, Base: r.Base.Branch, BaseCommit: r.Base.Commit.Hash,
		Branch: r.Branch, Checks: r.Plan.Checks, Attempt: r.Attempt + 1, Attempts: r.Plan.Attempts, Findings: r.Findings,
		Allowed: r.Plan.AllowPaths, Protected: scope.Defaults(),
	}
}
