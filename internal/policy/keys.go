package policy

import (
	"fmt"
	"slices"
	"time"

	"interlock/internal/run"
)

// Bounds of what can be meant.
const (
	minTasks    = 32 // what a session needs at least, the sandbox's own processes included
	maxTasks    = 1 << 22
	maxAttempts = 1000
	longest     = 30 * 24 * time.Hour
	shortest    = time.Second // of a limit: less would end each session and each check as it begins
	maxLine     = 16 << 10    // bytes of a shell line; Linux takes 128 KiB as one argument (MAX_ARG_STRLEN)
	maxWord     = 4 << 10     // bytes of a name or a path, as PATH_MAX has it
	maxLines    = 256         // shell lines in a list
	mostEntries = 1000        // entries of other lists, and sections
)

// keys is the one table of settings. No key is here that has no effect.
var keys = []*Key{
	{
		Name: "base", Flag: "base", Kind: Word, Right: Both, Example: "main",
		Else:  "the branch that is checked out",
		Short: "the branch to change",
		Long: []string{
			"A repository's file is read from the branch that is checked out; when it names another one here,",
			"the file of that branch is the one that counts.",
		},
	},
	{
		Name: "lane", Flag: "lane", Kind: Word, Right: Both, Words: []string{string(run.LanePropose), string(run.LaneBuild)},
		Default: string(run.LanePropose),
		Short:   "propose: ends with a change; build: ends with the verified commit, nothing is pushed",
		apply:   func(p *run.Plan, v any) error { p.Lane = run.Lane(v.(string)); return nil },
	},
	{
		Name: "checks", Flag: "checks", Kind: Lines, Right: Confined, Example: "[\"go test ./...\"]",
		Else:  needed,
		Short: "a shell line that has to exit 0 at the delivered commit",
		Long: []string{
			"Each line runs in a clean tree of the delivered commit, with a home that begins as a copy of what the",
			"same check left at the base, and nothing that an agent wrote. At most 256 lines of 16 KiB. A",
			"repository's are used in the sandbox only: at level none they have to be the operator's.",
		},
		Why:   "at sandbox level none it would run with the operator's own rights",
		apply: func(p *run.Plan, v any) error { p.Checks = v.([]string); return nil },
	},
	{
		Name: "allow-no-tests", Flag: "allow-no-tests", Kind: Switch, Right: Both, Default: "false",
		Short: "accept checks that run no test",
		apply: func(p *run.Plan, v any) error { p.AllowNoTests = v.(bool); return nil },
	},
	{
		Name: "allow-fewer-tests", Flag: "allow-fewer-tests", Kind: Switch, Right: Both, Default: "false",
		Short: "accept that fewer tests run than at the base; the change says so",
		apply: func(p *run.Plan, v any) error { p.AllowFewer = v.(bool); return nil },
	},
	{
		Name: "agent.command", Flag: "command", Kind: Line, Right: Confined, Example: "my-agent --task -",
		Else:  needed,
		Short: "the agent: a shell line",
		Long: []string{
			"It is started in the workspace with the task on stdin. In the operator's file a program is named by a",
			"bare word, an absolute path or one that begins with ~/. A repository's begins with a bare word, and is",
			"used only in the sandbox and only while no variable is handed to the agent. At most 16 KiB.",
		},
		Why:   "at sandbox level none it would run with the operator's own rights",
		apply: func(p *run.Plan, v any) error { p.Command = v.(string); return nil },
	},
	{
		Name: "agent.env", Flag: "env", Kind: Names, Right: Operator, Example: "[MODEL_KEY]", Else: "none",
		Short: "the name of a variable to hand to the agent",
		Long: []string{
			"Names, never values. The agent can read what it is handed. Forge credentials are refused.",
		},
		Why: "it names what of the operator's an agent can read",
		apply: func(p *run.Plan, v any) error {
			p.Env = slices.Compact(slices.Sorted(slices.Values(v.([]string))))
			return nil
		},
	},
	{
		Name: "allow-paths", Flag: "allow-path", Kind: Paths, Right: Operator, Example: "[.github/workflows/]", Else: "none",
		Short: "a protected path that the agent may change",
		Long:  []string{"A path, or a directory with a / at its end. Protected are CI, hooks, agent settings and this directory."},
		Why:   "it lifts a protection",
		apply: func(p *run.Plan, v any) error { p.AllowPaths = v.([]string); return nil },
	},
	{
		Name: "secrets.allow", Flag: "allow-secret", Kind: Secrets, Right: Operator, Example: "[\"testdata/**/*.pem\"]", Else: "none",
		Short: "what looks like a secret in the agent's work, and is none",
		Long: []string{
			"The fingerprint that a refusal names, as in fingerprint:0123456789abcdef, or a pattern of paths: * and ?",
			"stand for characters of one part, ** for any number of parts, a / at the end for all that is below. A",
			"pattern covers known shapes in files; messages, titles, and values of this installation, as those handed",
			"to the agent, are allowed by their fingerprint alone. Fingerprints are of one state directory.",
		},
		Why:   "it lifts a protection",
		apply: func(p *run.Plan, v any) error { p.AllowSecrets = v.([]string); return nil },
	},
	{
		Name: "sandbox.level", Flag: "sandbox", Kind: Word, Right: Operator, Words: []string{"full", "landlock", "none"}, Default: "full",
		Short: "full: confined; landlock: confined with gaps, which interlock doctor names; none: not confined at all",
		Why:   "it decides what an agent can reach on the operator's machine",
		apply: func(p *run.Plan, v any) error { p.Sandbox = v.(string); return nil },
	},
	{
		Name: "wait", Flag: "wait", Kind: Span, Right: Operator, Zero: true, Default: "0s", Example: "20m",
		Short: "how long to wait for an issue that is held",
		Why:   "it decides how long the operator's command waits",
	},
	{
		Name: "limits.attempts", Flag: "attempts", Kind: Count, Right: Lower, Least: 1, Most: maxAttempts, Default: fmt.Sprint(run.Attempts),
		Short: "sessions of the agent that may be started",
		apply: func(p *run.Plan, v any) error { p.Attempts = int(v.(int64)); return nil },
	},
	{
		Name: "limits.agent-timeout", Flag: "agent-timeout", Kind: Span, Right: Lower, Default: short(run.AgentTotal),
		Short: "the longest a session may take",
		apply: func(p *run.Plan, v any) error { p.AgentTotal = v.(time.Duration); return nil },
	},
	{
		Name: "limits.idle-timeout", Flag: "idle-timeout", Kind: Span, Right: Lower, Default: short(run.AgentIdle),
		Short: "the longest a session may print nothing and change nothing",
		apply: func(p *run.Plan, v any) error { p.AgentIdle = v.(time.Duration); return nil },
	},
	{
		Name: "limits.check-timeout", Flag: "check-timeout", Kind: Span, Right: Lower, Default: short(run.CheckTotal),
		Short: "the longest each check may take",
		apply: func(p *run.Plan, v any) error { p.CheckTotal = v.(time.Duration); return nil },
	},
	{
		Name: "limits.max-tasks", Flag: "max-tasks", Kind: Count, Right: Lower, Least: minTasks, Most: maxTasks, Any: true, Default: fmt.Sprint(run.MaxTasks),
		Short: "processes and threads that a session may have at once (0: any)",
		apply: func(p *run.Plan, v any) error { p.MaxTasks = v.(int64); return nil },
	},
	{
		Name: "limits.max-memory", Flag: "max-memory", Kind: Memory, Right: Lower, Default: fmt.Sprintf("%d%%", run.MemoryShare),
		Short: "memory that a session may have: a share of the machine's, or a size as in 8GiB (0: any)",
		apply: func(p *run.Plan, v any) error {
			n, err := Bytes(v.(string))
			p.MaxMemory = n
			return err
		},
	},
	{
		Name: "retention.workspaces", Kind: Span, Right: Machine, Zero: true, Default: "168h",
		Short: "how long the workspaces of a finished run are kept (0s: until they are dropped)",
		Long: []string{
			"Only those whose work was read back from the forge, or that hold none, are ever removed by time.",
		},
		Why: "it decides what of the operator's state is removed",
	},
	{
		Name: "retention.logs", Kind: Span, Right: Machine, Zero: true, Default: "720h",
		Short: "how long the logs of a finished run are kept (0s: for ever)",
		Long:  []string{"They stay at least as long as a workspace of the run does."},
		Why:   "it decides what of the operator's state is removed",
	},
	{
		Name: "disk.least-free", Kind: Size, Right: Machine, Default: "1GiB",
		Short: "what has to be free on the disk of the state before a session is started (0: nothing)",
		Why:   "it decides how full the operator's disk gets",
	},
	{
		Name: "disk.most", Kind: Size, Right: Machine, Default: "200GiB",
		Short: "what the state directory may have on the disk before a session is started (0: any)",
		Why:   "it decides how full the operator's disk gets",
	},
	{
		Name: "state-dir", Kind: Dir, Right: Machine, Example: "/var/lib/interlock", Else: "$XDG_STATE_HOME/interlock or ~/.local/state/interlock",
		Short: "where runs, leases and logs are kept; --state-dir comes first",
		Why:   "it decides where the operator's state is",
	},
}

// needed stands for what holds where a run cannot be started without a value.
const needed = "needed"

// sections is the name of the part of the operator's file that holds settings for one repository.
const sections = "repositories"
