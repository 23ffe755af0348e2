package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"interlock/internal/run"
	"interlock/internal/sandbox"
)

// runOptions are the flags of `interlock run` as they were typed.
type runOptions struct {
	repo         string
	issue        int64
	next         bool
	command      string
	checks       []string
	lane         string
	base         string
	wait         time.Duration
	attempts     int
	allowNoTests bool
	allowFewer   bool
	allowPaths   []string
	sandbox      string
	maxTasks     int64
	maxMemory    string
	env          []string
	agentTotal   time.Duration
	agentIdle    time.Duration
	checkTotal   time.Duration

	issueTyped bool // --issue was given, with whatever number
}

const runExample = "interlock run --repo . --issue 1 --command ./agent.sh --checks 'go test ./...'"

func (a *app) runCommand() *cobra.Command {
	var o runOptions
	c := a.command(cobra.Command{
		Use:   "run (--issue N | --next) --command LINE --checks LINE",
		Short: "work one issue from claim to change",
		Long: `run claims an issue, lets an agent work it in a private workspace, checks the exact commit that
the agent delivers, pushes it to a branch of its own and opens one change for review.

The agent is a shell line. It is started in the workspace with the task on stdin; when its first
word is a file of yours, that file is shown to it read-only. It commits, or just leaves its work.
When the checks fail it is started again with the findings, up to --attempts times.

A run that was killed or stopped goes on where it was when the same command is typed again.`,
		Example: "  " + runExample + "\n" +
			"  interlock run --next --command 'my-agent --task -' --checks 'go vet ./...' --checks 'go test ./...' --wait 60s\n" +
			"  interlock run --issue 7 --lane build --command ./agent.sh --checks 'make test' --allow-no-tests --json",
		Args: cobra.NoArgs,
	}, nil)
	runFlags(c, &o)
	a.jsonFlag(c, "print one JSON object per event, and the result last")
	c.RunE = func(c *cobra.Command, _ []string) error {
		o.issueTyped = c.Flags().Changed("issue")
		req, err := o.request()
		if err != nil || a.dry {
			return err
		}
		a.started = true
		return a.work(c.Context(), o.repo, req)
	}
	return c
}

func runFlags(c *cobra.Command, o *runOptions) {
	f := c.Flags()
	repoFlag(c, &o.repo)
	f.Int64Var(&o.issue, "issue", 0, "the issue to work")
	f.BoolVar(&o.next, "next", false, "work the open issue with the lowest number that may be worked")
	f.StringVar(&o.command, "command", "", "the agent: a shell line")
	f.StringArrayVar(&o.checks, "checks", nil, "a shell line that has to exit 0 at the delivered commit (can be given more than once)")
	f.StringVar(&o.lane, "lane", string(run.LanePropose), "propose: ends with a change; build: ends with the verified commit, nothing is pushed")
	f.StringVar(&o.base, "base", "", "the branch to change (default the branch that is checked out)")
	f.DurationVar(&o.wait, "wait", 0, "how long to wait for an issue that is held")
	f.IntVar(&o.attempts, "attempts", run.Attempts, "sessions of the agent that may be started")
	f.BoolVar(&o.allowNoTests, "allow-no-tests", false, "accept checks that run no test")
	f.BoolVar(&o.allowFewer, "allow-fewer-tests", false, "accept that fewer tests run than at the base; the change says so")
	f.StringArrayVar(&o.allowPaths, "allow-path", nil, "a protected path that the agent may change (can be given more than once)")
	f.StringVar(&o.sandbox, "sandbox", string(sandbox.Full), "full: confined; landlock: confined with gaps, which interlock doctor names; none: not confined at all")
	f.Int64Var(&o.maxTasks, "max-tasks", run.MaxTasks, "processes and threads that a session may have at once (0: any)")
	f.StringVar(&o.maxMemory, "max-memory", fmt.Sprintf("%d%%", run.MemoryShare), "memory that a session may have: a share of the machine's, or a size as in 8GiB (0: any)")
	f.StringArrayVar(&o.env, "env", nil, "the name of a variable to hand to the agent (can be given more than once)")
	f.DurationVar(&o.agentTotal, "agent-timeout", run.AgentTotal, "the longest a session may take")
	f.DurationVar(&o.agentIdle, "idle-timeout", run.AgentIdle, "the longest a session may print nothing and change nothing")
	f.DurationVar(&o.checkTotal, "check-timeout", run.CheckTotal, "the longest each check may take")
}
