package cli

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"interlock/internal/run"
)

// fine are options that are accepted.
func fine() runOptions {
	return runOptions{
		repo: ".", issue: 1, issueTyped: true, command: "./agent.sh", checks: []string{"go test ./..."}, lane: "propose",
		attempts: 3, sandbox: "full", maxMemory: "0", agentTotal: time.Minute, agentIdle: time.Minute, checkTotal: time.Minute,
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	o := fine()
	o.env, o.wait, o.base, o.allowPaths = []string{"MODEL_KEY", "HTTP_PROXY", "MODEL_KEY"}, time.Second, "dev", []string{".github/workflows"}
	req, err := o.request()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"HTTP_PROXY", "MODEL_KEY"}, req.Pass); diff != "" {
		t.Errorf("names handed on (-want +got):\n%s", diff)
	}
	want := run.Plan{
		Lane: run.LanePropose, Command: "./agent.sh", Checks: []string{"go test ./..."}, Attempts: 3, Sandbox: "full",
		AllowPaths: []string{".github/workflows"}, AgentTotal: time.Minute, AgentIdle: time.Minute, CheckTotal: time.Minute,
	}
	if diff := cmp.Diff(want, req.Plan); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if req.Issue != 1 || req.Next || req.Base != "dev" || req.Wait != time.Second {
		t.Errorf("request %+v", req)
	}
}

// TestRequestRefused: each is refused before anything is opened, names the flag, and shows a
// command that would be understood.
func TestRequestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		names  string
		change func(*runOptions)
	}{
		{"--issue", func(o *runOptions) { o.issueTyped = false }},
		{"--next", func(o *runOptions) { o.next = true }},
		{"--issue 0", func(o *runOptions) { o.issue = 0 }},
		{"--issue -1", func(o *runOptions) { o.issue = -1 }},
		{"--command", func(o *runOptions) { o.command = "" }},
		{"--command", func(o *runOptions) { o.command = "  " }},
		{"--command", func(o *runOptions) { o.command = "a\x00b" }},
		{"--checks", func(o *runOptions) { o.checks = nil }},
		{"--checks", func(o *runOptions) { o.checks = []string{"go vet", " "} }},
		{"--agent-timeout", func(o *runOptions) { o.agentTotal = 0 }},
		{"--idle-timeout", func(o *runOptions) { o.agentIdle = -time.Second }},
		{"--check-timeout", func(o *runOptions) { o.checkTotal = 0 }},
		{"--wait", func(o *runOptions) { o.wait = -1 }},
		{"--attempts", func(o *runOptions) { o.attempts = 0 }},
		{"--max-tasks", func(o *runOptions) { o.maxTasks = -1 }},
		{"--max-tasks", func(o *runOptions) { o.maxTasks = 3 }},
		{"--max-memory", func(o *runOptions) { o.maxMemory = "much" }},
		{"--max-memory", func(o *runOptions) { o.maxMemory = "101%" }},
		{"--max-memory", func(o *runOptions) { o.maxMemory = "63MiB" }},
		{"--max-memory", func(o *runOptions) { o.maxMemory = "-1" }},
		{"--max-memory", func(o *runOptions) { o.maxMemory = "" }},
		{"--lane", func(o *runOptions) { o.lane = "merge" }},
		{"--sandbox", func(o *runOptions) { o.sandbox = "most" }},
		{"--env", func(o *runOptions) { o.env = []string{"2X"} }},
		{"--env", func(o *runOptions) { o.env = []string{""} }},
		{"--env LD_PRELOAD", func(o *runOptions) { o.env = []string{"LD_PRELOAD"} }},
		{"--allow-path", func(o *runOptions) { o.allowPaths = []string{"/etc"} }},
		{"--allow-path", func(o *runOptions) { o.allowPaths = []string{"a/../../b"} }},
	} {
		o := fine()
		c.change(&o)
		_, err := o.request()
		var usage *usageError
		if !errors.As(err, &usage) || !strings.Contains(usage.what, c.names) {
			t.Errorf("%s: %v", c.names, err)
			continue
		}
		if err := Check(words(strings.TrimPrefix(usage.next, "interlock "))); err != nil {
			t.Errorf("%s: the next command %q would be refused: %v", c.names, usage.next, err)
		}
	}
}

// TestNoCredentialForAgents: what would let an agent act on a forge, or steer git, is refused, and
// a value is never repeated.
func TestNoCredentialForAgents(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"GITHUB_TOKEN", "GH_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GITHUB_PAT", "GITEA_TOKEN", "GITEA_SERVER_TOKEN",
		"FORGEJO_TOKEN", "FJ_TOKEN", "GITLAB_TOKEN", "CI_JOB_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
		"GIT_ASKPASS", "SSH_ASKPASS", "SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "GIT_DIR", "gh_token", "BITBUCKET_PASSWORD",
	} {
		o := fine()
		o.env = []string{name}
		if _, err := o.request(); err == nil {
			t.Errorf("--env %s is handed to an agent", name)
		}
		o.env = []string{name + "=s3cret"}
		if _, err := o.request(); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("--env %s=...: %v", name, err)
		}
	}
	for _, name := range []string{"MODEL_API_KEY", "HTTPS_PROXY", "GHOST", "HUBRIS", "GOFLAGS", "DIGIT_COUNT"} {
		o := fine()
		o.env = []string{name}
		if _, err := o.request(); err != nil {
			t.Errorf("--env %s is refused: %v", name, err)
		}
	}
}
