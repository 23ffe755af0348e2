package cli

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"interlock/internal/engine"
	"interlock/internal/policy"
	"interlock/internal/run"
)

// asked is what a command line of `interlock run` asks for, without any configuration.
func asked(t *testing.T, args ...string) (engine.Request, error) {
	t.Helper()
	c := &cobra.Command{}
	var issue int64
	var next bool
	c.Flags().Int64Var(&issue, "issue", 0, "")
	c.Flags().BoolVar(&next, "next", false, "")
	typed := settingFlags(c)
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	w, err := whichIssue(c.Flags().Args(), issue, c.Flags().Changed("issue"), next)
	if err != nil {
		return engine.Request{}, err
	}
	values, err := values(typed)
	if err != nil {
		return engine.Request{}, err
	}
	req, err := (&app{args: append([]string{"run"}, args...)}).request(w, policy.Settle(policy.Layers{Typed: values}))
	if err == nil {
		err = req.Missing
	}
	return req, err
}

// fine are options that are accepted.
var fine = []string{"--command", "./agent.sh", "--checks", "go test ./...", "--max-memory", "0", "--max-tasks", "0"}

func TestRequest(t *testing.T) {
	t.Parallel()
	req, err := asked(t, append([]string{
		"7", "--env", "MODEL_KEY", "--env", "HTTP_PROXY", "--env", "MODEL_KEY", "--wait", "1s", "--base", "dev",
		"--allow-path", ".github/workflows", "--attempts=2", "--allow-no-tests",
	}, fine...)...)
	if err != nil {
		t.Fatal(err)
	}
	want := run.Plan{
		Lane: run.LanePropose, Command: "./agent.sh", Checks: []string{"go test ./..."}, Attempts: 2, Sandbox: "full", AllowNoTests: true,
		AllowPaths: []string{".github/workflows"}, AgentTotal: 30 * time.Minute, AgentIdle: 10 * time.Minute, CheckTotal: 15 * time.Minute,
		Env: []string{"HTTP_PROXY", "MODEL_KEY"},
	}
	if diff := cmp.Diff(want, req.Plan); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if req.Issue != 7 || req.Next || req.Base != "dev" || req.Wait != time.Second {
		t.Errorf("request %+v", req)
	}
}

// TestRequestRefused: each is refused before anything is opened, names the flag, and shows a
// command that would be understood.
func TestRequestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		names string
		args  []string
	}{
		{"--next", []string{"--issue", "1", "--next"}},
		{"--next", []string{"1", "--next"}},
		{"--issue", []string{"1", "--issue", "2"}},
		{"--issue 0", []string{"--issue", "0"}},
		{"--issue -1", []string{"--issue", "-1"}},
		{"--command", []string{"--command", ""}},
		{"--command", []string{"--command", "  "}},
		{"--command", []string{"--command", "a\x00b"}},
		{"--base", []string{"--base", "a\u202eb"}},
		{"--command", []string{"--checks", "true"}},
		{"--checks", []string{"--command", "true"}},
		{"--checks", []string{"--checks", " "}},
		{"--agent-timeout", []string{"--agent-timeout", "0"}},
		{"--agent-timeout", []string{"--agent-timeout", "soon"}},
		{"--idle-timeout", []string{"--idle-timeout", "-1s"}},
		{"--idle-timeout", []string{"--idle-timeout", "1ms"}},
		{"--check-timeout", []string{"--check-timeout", "0s"}},
		{"--check-timeout", []string{"--check-timeout", "721h"}},
		{"--wait", []string{"--wait", "-1s"}},
		{"--attempts", []string{"--attempts", "0"}},
		{"--attempts", []string{"--attempts", "99999999999999999999"}},
		{"--max-tasks", []string{"--max-tasks", "-1"}},
		{"--max-tasks", []string{"--max-tasks", "3"}},
		{"--max-memory", []string{"--max-memory", "much"}},
		{"--max-memory", []string{"--max-memory", "101%"}},
		{"--max-memory", []string{"--max-memory", "63MiB"}},
		{"--max-memory", []string{"--max-memory", "-1"}},
		{"--max-memory", []string{"--max-memory", ""}},
		{"--lane", []string{"--lane", "merge"}},
		{"--sandbox", []string{"--sandbox", "most"}},
		{"--allow-no-tests", []string{"--allow-no-tests=maybe"}},
		{"--env", []string{"--env", "2X"}},
		{"--env", []string{"--env", ""}},
		{"--env LD_PRELOAD", []string{"--env", "LD_PRELOAD"}},
		{"--allow-path", []string{"--allow-path", "/etc"}},
		{"--allow-path", []string{"--allow-path", "a/../../b"}},
	} {
		_, err := asked(t, c.args...)
		var usage *usageError
		if !errors.As(err, &usage) || !strings.Contains(usage.what, c.names) {
			t.Errorf("%q: %v", c.args, err)
			continue
		}
		if err := Check(words(strings.TrimPrefix(usage.next, "interlock "))); err != nil {
			t.Errorf("%q: the next command %q would be refused: %v", c.args, usage.next, err)
		}
	}
}

// TestNextIsForTheIssue: what is to be typed is for the issue that was typed.
func TestNextIsForTheIssue(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{"2": "interlock run 2 --command ", "--issue=3": "interlock run --issue=3 --command ", "--next": "interlock run --next --command "} {
		_, err := asked(t, typed)
		var usage *usageError
		if !errors.As(err, &usage) || !strings.HasPrefix(usage.next, want) || Check(words(strings.TrimPrefix(usage.next, "interlock "))) != nil {
			t.Errorf("%s: %v, next %q", typed, err, usage.next)
		}
	}
}

// TestNoCredentialForAgents: what would let an agent act on a forge, or steer git, is refused, and
// a value is never repeated.
func TestNoCredentialForAgents(t *testing.T) {
	t.Parallel()
	with := func(name string) error {
		_, err := asked(t, slices.Concat([]string{"--issue", "1", "--env", name}, fine)...)
		return err
	}
	for _, name := range []string{
		"GITHUB_TOKEN", "GH_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GITHUB_PAT", "GITEA_TOKEN", "GITEA_SERVER_TOKEN",
		"FORGEJO_TOKEN", "FJ_TOKEN", "GITLAB_TOKEN", "CI_JOB_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
		"GIT_ASKPASS", "SSH_ASKPASS", "SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "GIT_DIR", "gh_token", "BITBUCKET_PASSWORD",
	} {
		if with(name) == nil {
			t.Errorf("--env %s is handed to an agent", name)
		}
		if err := with(name + "=s3cret"); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("--env %s=...: %v", name, err)
		}
	}
	for _, name := range []string{"MODEL_API_KEY", "HTTPS_PROXY", "GHOST", "HUBRIS", "GOFLAGS", "DIGIT_COUNT"} {
		if err := with(name); err != nil {
			t.Errorf("--env %s is refused: %v", name, err)
		}
	}
}
