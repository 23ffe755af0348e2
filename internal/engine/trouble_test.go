package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"interlock/internal/engine"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/store"
)

// TestRepositoryIsAway: a repository that cannot be reached leaves the outcome of an effect unknown.
// It is looked for, not repeated blindly, and once the repository is back the same command goes on.
func TestRepositoryIsAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		what func(s *site) string // what is moved away
		exit int
		says string
	}{
		"moved":            {func(s *site) string { return s.repo }, run.ExitRefused, "there is no repository at"},
		"not one, a while": {func(s *site) string { return filepath.Join(s.repo, ".git") }, run.ExitUnknown, "does not appear to be a git repository"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			path := c.what(s)
			s.at["verified"] = func() { must(t, os.Rename(path, path+".away")) }
			_, err := s.work(t.Context(), fixes)
			s.refused(err, c.exit, c.says)
			must(t, os.Rename(path+".away", path))
			r, err := s.work(t.Context(), "false")
			if err != nil || r.State != run.InReview || len(strings.Fields(s.refs("refs/heads/interlock/"))) != 1 {
				t.Errorf("%s, %v\n%s", r.State, err, s.said())
			}
		})
	}
}

// TestLateCancel: what is published already is not taken back by a cancel. A branch is named, an
// open change goes to review.
func TestLateCancel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at    string
		also  func(s *site)
		state run.State
		says  string
	}{
		"pushed":                         {"pushed", func(*site) {}, run.Canceled, "branch interlock/issue-1 is there already"},
		"pushed, and proposed by others": {"pushed", func(s *site) { s.propose("interlock/issue-1") }, run.InReview, "is open already"},
		"proposed":                       {"proposed", func(*site) {}, run.InReview, "change 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.at[c.at] = func() {
				c.also(s)
				runs, err := s.store.List(t.Context(), store.Filter{Limit: 1})
				if err != nil || s.store.Controls().RequestCancel(t.Context(), runs[0].ID, "enough") != nil {
					t.Error(err)
				}
			}
			r, err := s.work(t.Context(), fixes)
			if r.State != c.state || (err == nil) != (c.state == run.InReview) || !strings.Contains(s.said()+r.Reason, c.says) {
				t.Errorf("%s (%s), %v\n%s", r.State, r.Reason, err, s.said())
			}
		})
	}
}

// TestWaitForAHeldIssue: one waits as long as was asked, is told once, and can be interrupted; then
// nothing was begun.
func TestWaitForAHeldIssue(t *testing.T) {
	t.Parallel()
	request := func(s *site) engine.Request {
		return engine.Request{Issue: 1, Cwd: s.repo, Wait: 10 * time.Minute, Plan: run.Plan{
			Lane: run.LanePropose, Command: fixes, Checks: []string{"true"}, AllowNoTests: true, Attempts: 1, Sandbox: string(sandbox.None),
			AgentTotal: run.AgentTotal, AgentIdle: run.AgentIdle, CheckTotal: run.CheckTotal,
		}}
	}
	held := func(t *testing.T) *site {
		s := newSite(t)
		_, err := s.store.Acquire(t.Context(), run.Holder{ID: "x", PID: 4711, Host: "there"}, store.Key(s.forge.Location().Key, 1), time.Hour, 0)
		must(t, err)
		return s
	}
	t.Run("to the end", func(t *testing.T) {
		t.Parallel()
		s := held(t)
		s.at["waiting"] = func() { s.clock.Advance(11 * time.Minute) }
		_, err := s.engine.Work(t.Context(), request(s))
		s.refused(err, run.ExitHeld, "waited 10m")
	})
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		s := held(t)
		ctx, stop := context.WithCancel(t.Context())
		s.at["waiting"] = stop
		_, err := s.engine.Work(ctx, request(s))
		s.refused(err, run.ExitInterrupted, "nothing had been started here")
	})
	t.Run("any, interrupted", func(t *testing.T) {
		t.Parallel()
		s := held(t)
		ctx, stop := context.WithCancel(t.Context())
		s.at["passed over"] = stop
		req := request(s)
		req.Issue, req.Next = 0, true
		_, err := s.engine.Work(ctx, req)
		s.refused(err, run.ExitInterrupted, "nothing had been started here")
	})
	t.Run("any, then free", func(t *testing.T) {
		t.Parallel()
		s := held(t)
		s.at["passed over"] = func() { s.clock.Advance(time.Hour + run.LockDelay) }
		req := request(s)
		req.Issue, req.Next, req.Wait = 0, true, 2*time.Hour
		if r, err := s.engine.Work(t.Context(), req); err != nil || r.State != run.InReview {
			t.Errorf("%s, %v\n%s", r.State, err, s.said())
		}
	})
}

// TestNoNameIsFree: branches of others are never moved; when every name is taken the work is kept.
func TestNoNameIsFree(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.at["verified"] = func() {
		s.git("-C", s.repo, "branch", "interlock/issue-1")
		for i := 2; i <= 20; i++ {
			s.git("-C", s.repo, "branch", fmt.Sprintf("interlock/issue-1-%d", i))
		}
	}
	_, err := s.work(t.Context(), fixes)
	s.refused(err, run.ExitRefused, "all names")
	s.git("-C", s.repo, "branch", "-D", "interlock/issue-1-7")
	if r, err := s.work(t.Context(), "false"); err != nil || r.Branch != "interlock/issue-1-7" {
		t.Errorf("%s, %v", r.Branch, err)
	}
}

// TestTheRemoteSpeaks: what a hook of the repository says to a push is told.
func TestTheRemoteSpeaks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	hook := filepath.Join(s.repo, ".git", "hooks", "post-receive")
	must(t, os.MkdirAll(filepath.Dir(hook), 0o700))
	must(t, os.WriteFile(hook, []byte("#!/bin/sh\necho welcome here\n"), 0o700))
	if r, err := s.work(t.Context(), fixes); err != nil || r.State != run.InReview || !strings.Contains(s.said(), "welcome here") {
		t.Errorf("%s, %v\n%s", r.State, err, s.said())
	}
}

// TestSilentAfterTheLoss: a run that rests without its claim leaves unsaid what it had to say: the
// issue is another's to speak about.
func TestSilentAfterTheLoss(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.at["attempt failed"] = func() {
		at := s.git("-C", s.repo, "rev-parse", "refs/interlock/claims/1")
		message := strings.Replace(s.git("-C", s.repo, "log", "-1", "--format=%B", at), `"nonce":"`, `"nonce":"0`, 1)
		s.git("-C", s.repo, "update-ref", "refs/interlock/claims/1", s.git("-C", s.repo, "-c", "user.name=T", "-c", "user.email=t@localhost", "commit-tree", at+"^{tree}", "-m", message))
	}
	r, err := s.work(t.Context(), "exit 3")
	if err == nil || r.State != run.Parked {
		t.Errorf("%s, %v\n%s", r.State, err, s.said())
	}
	is, err := s.forge.Issue(t.Context(), 1)
	if err != nil || len(is.Comments) != 1 || !strings.HasPrefix(is.Comments[0].Key, "mark:") { // that one was made before the loss
		t.Errorf("it was said all the same: %+v, %v", is.Comments, err)
	}
}

// TestLimits: an agent that runs into a limit is ended for that reason, and told so; where the
// machine holds no limits that is said before anything begins.
func TestLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit       sandbox.Limits
		agent, says string
	}{
		"tasks": {sandbox.Limits{Tasks: 40}, "for i in $(seq 200); do sleep 600 & done; sleep 600", "ran into --max-tasks 40"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			held := sandbox.Inspect(t.Context()).Unheld(c.limit) == ""
			agent := c.agent
			if !held {
				agent = "false"
			}
			r, err := s.engine.Work(t.Context(), engine.Request{Issue: 1, Cwd: s.repo, Plan: run.Plan{
				Lane: run.LanePropose, Command: agent, Checks: []string{"true"}, AllowNoTests: true, Attempts: 1, Sandbox: string(sandbox.None),
				AgentTotal: run.AgentTotal, AgentIdle: run.AgentIdle, CheckTotal: run.CheckTotal, MaxTasks: c.limit.Tasks, MaxMemory: c.limit.Memory,
			}})
			if held {
				s.refused(err, run.ExitFailed, c.says)
			}
			if r.State != run.Parked || held == strings.Contains(s.said(), "weaker: ") {
				t.Errorf("%s, held %t\n%s", r.State, held, s.said())
			}
		})
	}
}

// TestNoRoom: without room nothing is claimed; where it goes between two sessions the run stays as it is,
// and the same command goes on when there is room again. What needs no session needs no room.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	full := errors.New("the disk is full")
	s.ready = func() error { return full }
	if _, err := s.work(t.Context(), fixes); !errors.Is(err, full) {
		t.Fatalf("%v\n%s", err, s.said())
	}
	if got := s.refs("refs/interlock/claims/"); got != "" {
		t.Errorf("claimed without room: %s", got)
	}
	asked := 0
	s.ready = func() error {
		if asked++; asked == 3 { // before the claim, the first session, the second
			return full
		}
		return nil
	}
	r, err := s.work(t.Context(), "test $INTERLOCK_ATTEMPT = 2 && "+fixes)
	if !errors.Is(err, full) || r.State != run.Implementing || r.Attempt != 1 || r.Spent != 1 {
		t.Fatalf("%+v, %v\n%s", r, err, s.said())
	}
	asked = 3
	if r, err = s.work(t.Context(), "test $INTERLOCK_ATTEMPT = 2 && "+fixes); err != nil || r.State != run.InReview || r.Attempt != 2 {
		t.Errorf("%+v, %v\n%s", r, err, s.said())
	}
}
