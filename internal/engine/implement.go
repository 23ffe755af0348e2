package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"interlock/internal/agent"
	"interlock/internal/engine/eligibility"
	"interlock/internal/failpoint"
	"interlock/internal/forge"
	"interlock/internal/git"
	"interlock/internal/lease"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/scope"
	"interlock/internal/shell"
	"interlock/internal/text"
	"interlock/internal/workspace"
)

// implement is one attempt: a private workspace, one agent session in it, and the import of what
// it left.
func (e *Engine) implement(h *hold, t *task, r run.Run) (run.Run, error) {
	if r.Attempt == 0 && r.Head.Hash != "" && r.Findings == "" && r.Verdict == nil { // built before, see inherit
		return h.Apply(r, run.Delivered{Head: r.Head})
	}
	if r.Spent >= r.Plan.Attempts {
		return h.Apply(r, e.spent(r))
	}
	if ev := e.guard.Words(r); ev != nil { // what no attempt would help
		return h.Apply(r, untilChanged(r, ev))
	}
	h.Within(3 * run.GitTotal)
	if err := e.Ready(h.Session); err != nil {
		return interruptedBy(h, r, err)
	}
	prompt, err := agent.Prompt(e.promptData(r))
	if err != nil {
		return r, fmt.Errorf("write the prompt: %w", err)
	}
	room, err := e.work.Make(h.Session, r, prompt)
	if err != nil {
		return interruptedBy(h, r, err)
	}
	r, err = h.Apply(r, run.SessionStarted{Sandbox: r.Plan.Sandbox}) // counted before it starts
	if err != nil {
		return r, err
	}
	s, r, err := e.agentSession(h, t, r, room)
	if err != nil && !s.begun { // nothing of the agent ran, so nothing is counted
		back, aerr := h.Apply(r, run.SessionStopped{})
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
	then := "mend the issue, the agent or the checks; to have one session more all the same: interlock retry " + r.ID
	if r.AllowWith != "" {
		then = "mend the issue or the agent; if that may be pushed after all: interlock retry " + r.ID + " " + r.AllowWith
	}
	return run.ParkedBecause{
		Reason: fmt.Sprintf("%d of %d attempts are used; the last one: %s", r.Spent, r.Plan.Attempts, strings.TrimPrefix(r.Reason, fmt.Sprintf("attempt %d: ", r.Attempt))),
		Say:    fmt.Sprintf("%d of %d attempts are used, and none brought work that passes.", r.Spent, r.Plan.Attempts),
		Next:   "interlock logs " + r.ID,
		Then:   then,
		Exit:   run.ExitFailed, Precond: eligibility.Precondition(r.Task.Digest, r.Base.Commit.Hash, r.Plan),
	}
}

// untilChanged has a run that is parked before a session rest until its task or its plan is another
// one: nothing was made yet, so that it does not depend on the base.
func untilChanged(r run.Run, ev run.Event) run.Event {
	if parked, is := ev.(run.ParkedBecause); is {
		parked.Precond = eligibility.Precondition(r.Task.Digest, "", r.Plan)
		return parked
	}
	return ev
}

// hopeless parks a run whose next attempt would end as this one did, until the operator has seen
// to the machine: what it depends on is not in the run, so the same command may try again.
func (e *Engine) hopeless(r run.Run, reason string) run.Event {
	return run.ParkedBecause{
		Reason: reason, Next: "interlock logs " + r.ID, Then: "type the command again with another --command",
		Say: "The agent cannot be started.", Exit: run.ExitFailed,
	}
}

// ended is a session of which the whole tree is gone.
type ended struct {
	room   sandbox.Room
	result sandbox.Result
	begun  bool // the agent was told to start
}

// agentSession starts the agent and waits for the end of its whole tree. The run is returned with
// the claim as it was renewed meanwhile.
func (e *Engine) agentSession(h *hold, t *task, r run.Run, room sandbox.Room) (ended, run.Run, error) {
	h.Within(r.Plan.AgentTotal + run.AgentStartup)
	which := fmt.Sprintf("attempt %d of %d", r.Attempt, r.Plan.Attempts)
	if r.Attempt != r.Spent { // stopped ones are not counted, those of runs before are
		which = fmt.Sprintf("attempt %d, counted as %d of %d", r.Attempt, r.Spent, r.Plan.Attempts)
	}
	e.say(r, "agent", "%s: %s starts, sandbox %s", which, text.Short(text.Line(r.Plan.Command), 40), r.Plan.Sandbox)
	if err := e.guard.Hand(r); err != nil {
		return ended{room: room}, r, fmt.Errorf("note which values the agent is handed: %w", err)
	}
	c := workspace.Command{Argv: t.launch.Argv, Env: slices.Concat(t.launch.Env, passed(e.Env, r.Plan.Env)), Mounts: t.launch.Mounts}
	end := ended{room: room}
	var err error
	end.result, err = e.work.Agent(h.Live, r, room, c, h.Record, func(live *sandbox.Session) (res sandbox.Result, err error) {
		end.begun = true
		err = e.whileHeld(h, &r, func() (err error) {
			res, err = live.Wait(h.Session)
			return err
		})
		return res, err
	})
	return end, r, err
}

// passed are those of the operator's variables that the agent is handed.
func passed(operator, names []string) (env []string) {
	for _, name := range names {
		for _, kv := range operator {
			if strings.HasPrefix(kv, name+"=") {
				env = append(env, kv)
			}
		}
	}
	return env
}

// lifeSign is how often a long step says that it goes on.
const lifeSign = 30 * time.Second

// whileHeld does something long, in which the run is not saved, and meanwhile renews the claim on
// the forge. When the claim is lost the lease is given up too, which ends what runs.
func (e *Engine) whileHeld(h *hold, r *run.Run, long func() error) error {
	done := make(chan error, 1)
	go func() { done <- long() }()
	tick := time.NewTicker(lease.Every)
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
		if now-h.claimed < failpoint.Sooner("RENEWALS", run.ClaimRenew) || h.Session.Err() != nil {
			continue
		}
		h.claimed = now
		e.restore(h.Live)
		if err := e.renewClaim(h, r); err != nil {
			e.say(*r, "claim", "%v", err)
		}
	}
}

// renewClaim writes the next commit of the claim while a long step runs. Only the certainty that
// the claim is somebody else's ends the step; an answer that is missing is asked for again.
func (e *Engine) renewClaim(h *hold, r *run.Run) error {
	c, err := e.claims.Renew(h.Live, *r)
	if errors.Is(err, forge.ErrLost) {
		h.Lose(err)
	}
	if err != nil {
		return fmt.Errorf("renew the claim of issue %d: %w", r.Issue, err)
	}
	next, err := h.Apply(*r, run.Renewed{Claim: c})
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
	h.Within(10 * run.GitTotal)
	head, err := e.bringIn(h, r, s.room)
	cause := context.Cause(h.Session)
	if cause != nil && s.result.Why != "exit" {
		return e.stopped(h, r, s, head, err)
	}
	if err != nil && !workspace.OfContent(err) {
		return r, err
	}
	if err != nil {
		why := e.guard.Redact(err.Error()) // it may quote what is in the workspace
		e.say(r, "not imported", "attempt %d: %s; all that it left is kept in %s", r.Attempt, why, s.room.Root)
		return h.Apply(r, run.Failed{
			Reason:   fmt.Sprintf("attempt %d: the work cannot be imported: %s", r.Attempt, why),
			Findings: "What you left could not be imported: " + why, Tip: e.tip(h, r, head),
		})
	}
	if err := workspace.Clear(s.room); err != nil {
		e.say(r, "left behind", "%v", err)
	}
	return e.judge(h, r, s, head)
}

// bringIn imports what a session left, and says what was not committed.
func (e *Engine) bringIn(h *hold, r run.Run, room sandbox.Room) (git.Commit, error) {
	head, extra, err := e.work.BringIn(h.Live, r, room, h.Record)
	if extra {
		e.say(r, "committed", "the agent left files uncommitted; the engine committed them as %.12s", head.Hash)
	}
	return head, err
}

// tip returns the hash of a head that goes on from the base or from where the attempt started,
// "" for any other: what was there is never given up for it.
func (e *Engine) tip(h *hold, r run.Run, head git.Commit) string {
	for _, from := range []string{r.Base.Commit.Hash, r.Tip} {
		if head.Hash == "" || from == "" {
			continue
		}
		if ok, err := e.repo.IsAncestor(h.Live, from, head.Hash); err == nil && ok {
			return head.Hash
		}
	}
	return ""
}

// stopped keeps the work of a session that was ended by an interrupt, a cancel or a loss.
func (e *Engine) stopped(h *hold, r run.Run, s ended, head git.Commit, err error) (run.Run, error) {
	cause := context.Cause(h.Session)
	if !errors.Is(cause, lease.ErrInterrupted) && !errors.Is(cause, lease.ErrCanceled) {
		return r, cause
	}
	if err != nil {
		e.say(r, "not imported", "%v; all that attempt %d left is kept in %s", err, r.Attempt, s.room.Root)
	}
	return h.Apply(r, run.SessionStopped{Tip: e.tip(h, r, head)})
}

// judge decides what an attempt was worth, by how the session ended and by what is there.
func (e *Engine) judge(h *hold, r run.Run, s ended, head git.Commit) (run.Run, error) {
	fail := func(findings, format string, args ...any) (run.Run, error) {
		reason := fmt.Sprintf("attempt %d: ", r.Attempt) + fmt.Sprintf(format, args...)
		e.say(r, "attempt failed", "%s", reason)
		return h.Apply(r, run.Failed{Reason: reason, Findings: findings, Tip: e.tip(h, r, head)})
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
	case nothing && (res.Exit == 127 || res.Exit == 126) && e.absent(r.Plan):
		return h.Apply(r, e.hopeless(r, fmt.Sprintf("the agent's command was not found (exit %d): %s", res.Exit, r.Plan.Command)))
	case res.Exit != 0:
		how := strings.TrimSpace(fmt.Sprintf("%d %s", res.Exit, res.Signal))
		return fail(fmt.Sprintf("You ended with exit code %s. What you had done is in the workspace.", how), "the agent ended with exit %s%s", how, called(res.Exit))
	}
	base := r.Base.Commit
	onBase, err := e.repo.IsAncestor(h.Live, base.Hash, head.Hash)
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
	return h.Apply(r, run.Delivered{Head: run.Commit{Hash: head.Hash, Tree: head.Tree}})
}

// absent reports whether the program that the agent's line begins with is known not to be where
// sessions run. A file that was found before the start was hashed, so that it was there.
func (e *Engine) absent(p run.Plan) bool {
	_, found := shell.Look(p.Command, e.path(p))
	return p.CommandDigest == "" && found == shell.Missing
}

// called says what the shells' two codes mean of an agent that was started itself.
func called(exit int) string {
	switch exit {
	case 126:
		return ": a command that it calls cannot be executed; see the log"
	case 127:
		return ": a command that it calls was not found; see the log"
	}
	return ""
}

// interruptedBy replaces an error that an interrupt made by the interrupt; a cancel is carried out
// by the next look at the run.
func interruptedBy(h *hold, r run.Run, err error) (run.Run, error) {
	switch cause := context.Cause(h.Session); {
	case errors.Is(cause, lease.ErrCanceled):
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
