package cli

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"interlock/internal/engine"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/text"
)

// request checks the flags, before anything is opened, and says them in the engine's words.
func (o runOptions) request() (engine.Request, error) {
	for _, check := range []func() error{o.checkIssue, o.checkLines, o.checkBounds, o.checkWords, o.checkEnv, o.checkPaths} {
		if err := check(); err != nil {
			return engine.Request{}, err
		}
	}
	memory, err := o.memory()
	if err != nil {
		return engine.Request{}, err
	}
	return engine.Request{
		Issue: o.issue, Next: o.next, Base: o.base, Wait: o.wait, Pass: slices.Compact(slices.Sorted(slices.Values(o.env))),
		Plan: run.Plan{
			Lane: run.Lane(o.lane), Command: o.command, Checks: o.checks, Attempts: o.attempts,
			AllowNoTests: o.allowNoTests, AllowFewer: o.allowFewer, AllowPaths: o.allowPaths, Sandbox: o.sandbox,
			AgentTotal: o.agentTotal, AgentIdle: o.agentIdle, CheckTotal: o.checkTotal,
			MaxTasks: o.maxTasks, MaxMemory: memory,
		},
	}, nil
}

// bad is a usage error of `interlock run`.
func bad(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...), runExample}
}

func (o runOptions) checkIssue() error {
	switch {
	case o.next && o.issueTyped:
		return bad("--issue and --next exclude each other")
	case !o.next && !o.issueTyped:
		return bad("which issue? give --issue N, or --next for the next one that may be worked")
	case o.issueTyped && o.issue < 1:
		return bad("--issue %d: issues are numbered from 1", o.issue)
	}
	return nil
}

func (o runOptions) checkLines() error {
	if strings.TrimSpace(o.command) == "" {
		return bad("--command is missing: the shell line that starts the agent")
	}
	if len(o.checks) == 0 {
		return bad("--checks is missing: at least one shell line that tells whether the work is right")
	}
	for _, line := range append([]string{o.command}, o.checks...) {
		if strings.TrimSpace(line) == "" || strings.ContainsRune(line, 0) {
			return bad("--command and --checks are shell lines; one of them is empty")
		}
	}
	return nil
}

func (o runOptions) checkBounds() error {
	for _, d := range []struct {
		flag string
		is   time.Duration
	}{{"--agent-timeout", o.agentTotal}, {"--idle-timeout", o.agentIdle}, {"--check-timeout", o.checkTotal}} {
		if d.is <= 0 {
			return bad("%s %s: a limit has to be longer than nothing", d.flag, d.is)
		}
	}
	switch {
	case o.wait < 0:
		return bad("--wait %s: a wait cannot be negative", o.wait)
	case o.maxTasks != 0 && o.maxTasks < minTasks:
		return bad("--max-tasks %d: at least %d are needed to build anything, or 0 for no limit", o.maxTasks, minTasks)
	case o.attempts < 1:
		return bad("--attempts %d: at least one session has to be allowed", o.attempts)
	}
	return nil
}

func (o runOptions) checkWords() error {
	if lane := run.Lane(o.lane); lane != run.LaneBuild && lane != run.LanePropose {
		return bad("--lane %s: known are build and propose", text.Quote(o.lane))
	}
	if !slices.Contains([]sandbox.Level{sandbox.Full, sandbox.Landlock, sandbox.None}, sandbox.Level(o.sandbox)) {
		return bad("--sandbox %s: known are full, landlock and none", text.Quote(o.sandbox))
	}
	return nil
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// credentials are variables that would let an agent act on a forge in the operator's name, and
// the ways to such variables. An agent never gets them: the engine pushes, agents only commit.
var credentials = regexp.MustCompile(`^(?:(?:GH|GITHUB|GITEA|FORGEJO|GITLAB|CODEBERG|FJ|TEA|GLAB|BITBUCKET|HUB)_(?:.*_)?(?:TOKEN|PAT|PASSWORD|SECRET|KEY)` +
	`|CI_JOB_TOKEN|ACTIONS_(?:RUNTIME|ID_TOKEN_REQUEST)_TOKEN|(?:GIT|SSH)_ASKPASS|SSH_AUTH_SOCK|SSH_AGENT_PID|GIT_.*|NETRC)$`)

func (o runOptions) checkEnv() error {
	for _, name := range o.env {
		if key, _, isPair := strings.Cut(name, "="); isPair {
			return bad("--env takes the name of a variable, not its value: --env %s (a value would be seen in the list of processes)", text.Quote(key))
		}
		if !envName.MatchString(name) {
			return bad("--env %s is not the name of a variable", text.Quote(name))
		}
		if credentials.MatchString(strings.ToUpper(name)) {
			return bad("--env %s is refused: no forge credential, and nothing that steers git, is handed to an agent", name)
		}
		if strings.HasPrefix(strings.ToUpper(name), "LD_") {
			return bad("--env %s is refused: it would be loaded into the program that confines the agent", name)
		}
	}
	return nil
}

func (o runOptions) checkPaths() error {
	for _, p := range o.allowPaths {
		if p == "" || path.IsAbs(p) || slices.Contains(strings.Split(p, "/"), "..") {
			return bad("--allow-path %s: a path inside the repository, from its root", text.Quote(p))
		}
	}
	return nil
}
