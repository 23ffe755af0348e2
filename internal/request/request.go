// Package request turns what an operator typed for a run into a request of the engine, or refuses it
// with the flag named, before anything is opened. It never looks at a repository or a state directory.
package request

import (
	"errors"
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

// Example is a command line that is understood.
const Example = "interlock run --repo . --issue 1 --command ./agent.sh --checks 'go test ./...'"

// Options are the flags of interlock run as they were typed.
type Options struct {
	Issue        int64
	IssueTyped   bool // --issue was given, with whatever number
	Next         bool
	Command      string
	Checks       []string
	Lane         string
	Base         string
	Wait         time.Duration
	Attempts     int
	AllowNoTests bool
	AllowPaths   []string
	Sandbox      string
	MaxTasks     int64
	MaxMemory    string // a share of the machine's as in 75%, or a size as in 8GiB
	Env          []string
	AgentTotal   time.Duration
	AgentIdle    time.Duration
	CheckTotal   time.Duration
}

// Request checks the flags, before anything is opened, and says them in the engine's words. An error
// names the flag that is wrong.
func (o Options) Request() (engine.Request, error) {
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
		Issue: o.Issue, Next: o.Next, Base: o.Base, Wait: o.Wait, Pass: slices.Compact(slices.Sorted(slices.Values(o.Env))),
		Plan: run.Plan{
			Lane: run.Lane(o.Lane), Command: o.Command, Checks: o.Checks, Attempts: o.Attempts,
			AllowNoTests: o.AllowNoTests, AllowPaths: o.AllowPaths, Sandbox: o.Sandbox,
			AgentTotal: o.AgentTotal, AgentIdle: o.AgentIdle, CheckTotal: o.CheckTotal,
			MaxTasks: o.MaxTasks, MaxMemory: memory,
		},
	}, nil
}

func (o Options) checkIssue() error {
	switch {
	case o.Next && o.IssueTyped:
		return errors.New("--issue and --next exclude each other")
	case !o.Next && !o.IssueTyped:
		return errors.New("which issue? give --issue N, or --next for the next one that may be worked")
	case o.IssueTyped && o.Issue < 1:
		return fmt.Errorf("--issue %d: issues are numbered from 1", o.Issue)
	}
	return nil
}

func (o Options) checkLines() error {
	if strings.TrimSpace(o.Command) == "" {
		return errors.New("--command is missing: the shell line that starts the agent")
	}
	if len(o.Checks) == 0 {
		return errors.New("--checks is missing: at least one shell line that tells whether the work is right")
	}
	for _, line := range append([]string{o.Command}, o.Checks...) {
		if strings.TrimSpace(line) == "" || strings.ContainsRune(line, 0) {
			return errors.New("--command and --checks are shell lines; one of them is empty")
		}
	}
	return nil
}

func (o Options) checkBounds() error {
	for _, d := range []struct {
		flag string
		is   time.Duration
	}{{"--agent-timeout", o.AgentTotal}, {"--idle-timeout", o.AgentIdle}, {"--check-timeout", o.CheckTotal}} {
		if d.is <= 0 {
			return fmt.Errorf("%s %s: a limit has to be longer than nothing", d.flag, d.is)
		}
	}
	switch {
	case o.Wait < 0:
		return fmt.Errorf("--wait %s: a wait cannot be negative", o.Wait)
	case o.MaxTasks != 0 && o.MaxTasks < minTasks:
		return fmt.Errorf("--max-tasks %d: at least %d are needed to build anything, or 0 for no limit", o.MaxTasks, minTasks)
	case o.Attempts < 1:
		return fmt.Errorf("--attempts %d: at least one session has to be allowed", o.Attempts)
	}
	return nil
}

func (o Options) checkWords() error {
	if lane := run.Lane(o.Lane); lane != run.LaneBuild && lane != run.LanePropose {
		return fmt.Errorf("--lane %s: known are build and propose", text.Quote(o.Lane))
	}
	if !slices.Contains([]sandbox.Level{sandbox.Full, sandbox.Landlock, sandbox.None}, sandbox.Level(o.Sandbox)) {
		return fmt.Errorf("--sandbox %s: known are full, landlock and none", text.Quote(o.Sandbox))
	}
	return nil
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// credentials are variables that would let an agent act on a forge in the operator's name, and
// the ways to such variables. An agent never gets them: the engine pushes, agents only commit.
var credentials = regexp.MustCompile(`^(?:(?:GH|GITHUB|GITEA|FORGEJO|GITLAB|CODEBERG|FJ|TEA|GLAB|BITBUCKET|HUB)_(?:.*_)?(?:TOKEN|PAT|PASSWORD|SECRET|KEY)` +
	`|CI_JOB_TOKEN|ACTIONS_(?:RUNTIME|ID_TOKEN_REQUEST)_TOKEN|(?:GIT|SSH)_ASKPASS|SSH_AUTH_SOCK|SSH_AGENT_PID|GIT_.*|NETRC)$`)

func (o Options) checkEnv() error {
	for _, name := range o.Env {
		if key, _, isPair := strings.Cut(name, "="); isPair {
			return fmt.Errorf("--env takes the name of a variable, not its value: --env %s (a value would be seen in the list of processes)", text.Quote(key))
		}
		if !envName.MatchString(name) {
			return fmt.Errorf("--env %s is not the name of a variable", text.Quote(name))
		}
		if credentials.MatchString(strings.ToUpper(name)) {
			return fmt.Errorf("--env %s is refused: no forge credential, and nothing that steers git, is handed to an agent", name)
		}
		if strings.HasPrefix(strings.ToUpper(name), "LD_") {
			return fmt.Errorf("--env %s is refused: it would be loaded into the program that confines the agent", name)
		}
	}
	return nil
}

func (o Options) checkPaths() error {
	for _, p := range o.AllowPaths {
		if p == "" || path.IsAbs(p) || slices.Contains(strings.Split(p, "/"), "..") {
			return fmt.Errorf("--allow-path %s: a path inside the repository, from its root", text.Quote(p))
		}
	}
	return nil
}
