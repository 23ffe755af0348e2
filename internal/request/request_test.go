package request_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"interlock/internal/request"
	"interlock/internal/run"
)

// fine are options that are accepted.
func fine() request.Options {
	return request.Options{
		Issue: 1, IssueTyped: true, Command: "./agent.sh", Checks: []string{"go test ./..."}, Lane: "propose",
		Attempts: 3, Sandbox: "full", MaxMemory: "0", AgentTotal: time.Minute, AgentIdle: time.Minute, CheckTotal: time.Minute,
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	o := fine()
	o.Env, o.Wait, o.Base, o.AllowPaths = []string{"MODEL_KEY", "HTTP_PROXY", "MODEL_KEY"}, time.Second, "dev", []string{".github/workflows"}
	req, err := o.Request()
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

// TestRequestRefused: each is refused before anything is opened, and names the flag.
func TestRequestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		names  string
		change func(*request.Options)
	}{
		{"--issue", func(o *request.Options) { o.IssueTyped = false }},
		{"--next", func(o *request.Options) { o.Next = true }},
		{"--issue 0", func(o *request.Options) { o.Issue = 0 }},
		{"--issue -1", func(o *request.Options) { o.Issue = -1 }},
		{"--command", func(o *request.Options) { o.Command = "" }},
		{"--command", func(o *request.Options) { o.Command = "  " }},
		{"--command", func(o *request.Options) { o.Command = "a\x00b" }},
		{"--checks", func(o *request.Options) { o.Checks = nil }},
		{"--checks", func(o *request.Options) { o.Checks = []string{"go vet", " "} }},
		{"--agent-timeout", func(o *request.Options) { o.AgentTotal = 0 }},
		{"--idle-timeout", func(o *request.Options) { o.AgentIdle = -time.Second }},
		{"--check-timeout", func(o *request.Options) { o.CheckTotal = 0 }},
		{"--wait", func(o *request.Options) { o.Wait = -1 }},
		{"--attempts", func(o *request.Options) { o.Attempts = 0 }},
		{"--max-tasks", func(o *request.Options) { o.MaxTasks = -1 }},
		{"--max-tasks", func(o *request.Options) { o.MaxTasks = 3 }},
		{"--max-memory", func(o *request.Options) { o.MaxMemory = "much" }},
		{"--max-memory", func(o *request.Options) { o.MaxMemory = "101%" }},
		{"--max-memory", func(o *request.Options) { o.MaxMemory = "63MiB" }},
		{"--max-memory", func(o *request.Options) { o.MaxMemory = "-1" }},
		{"--max-memory", func(o *request.Options) { o.MaxMemory = "" }},
		{"--lane", func(o *request.Options) { o.Lane = "merge" }},
		{"--sandbox", func(o *request.Options) { o.Sandbox = "most" }},
		{"--env", func(o *request.Options) { o.Env = []string{"2X"} }},
		{"--env", func(o *request.Options) { o.Env = []string{""} }},
		{"--env LD_PRELOAD", func(o *request.Options) { o.Env = []string{"LD_PRELOAD"} }},
		{"--allow-path", func(o *request.Options) { o.AllowPaths = []string{"/etc"} }},
		{"--allow-path", func(o *request.Options) { o.AllowPaths = []string{"a/../../b"} }},
	} {
		o := fine()
		c.change(&o)
		_, err := o.Request()
		if err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: %v", c.names, err)
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
		o.Env = []string{name}
		if _, err := o.Request(); err == nil {
			t.Errorf("--env %s is handed to an agent", name)
		}
		o.Env = []string{name + "=s3cret"}
		if _, err := o.Request(); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("--env %s=...: %v", name, err)
		}
	}
	for _, name := range []string{"MODEL_API_KEY", "HTTPS_PROXY", "GHOST", "HUBRIS", "GOFLAGS", "DIGIT_COUNT"} {
		o := fine()
		o.Env = []string{name}
		if _, err := o.Request(); err != nil {
			t.Errorf("--env %s is refused: %v", name, err)
		}
	}
}
