package run

import "time"

// The defaults. Each has its reason in Defaults, which --help prints.
const (
	AgentTotal   = 30 * time.Minute
	AgentIdle    = 10 * time.Minute
	AgentStartup = 60 * time.Second
	CheckTotal   = 15 * time.Minute
	GitTotal     = 2 * time.Minute
	Attempts     = 3

	LeaseTTL    = 30 * time.Second
	LeaseRenew  = 10 * time.Second
	LeaseMargin = 3 * time.Second
	LockDelay   = 15 * time.Second

	ClaimTTL   = 10 * time.Minute
	ClaimRenew = 4 * time.Minute
	// ClaimMargin is for the delays of a forge. ClaimAbandoned is how long a claim has to be seen
	// unmoved, on one's own clock, before it may be taken over.
	ClaimMargin    = time.Minute
	ClaimAbandoned = ClaimTTL*3/2 + ClaimMargin

	LogBytes  = 64 << 20
	PackBytes = 512 << 20

	MaxTasks    = 4096
	MemoryShare = 75 // per cent of the machine's
)

// Default is one row of the table of defaults.
type Default struct {
	What, Value, Why string
}

// Defaults is the table that --help prints.
var Defaults = []Default{
	{"agent, in all", "30m", "longer than most issues take; a hung agent costs half an hour at most"},
	{"agent, idle", "10m", "no output and no change in the workspace for so long means that it hangs"},
	{"agent, start-up", "60s", "what has not started by then will not"},
	{"checks", "15m", "each declared command; a test that hangs is a failed test"},
	{"one git operation", "2m", "a remote that does not answer must not hold an issue"},
	{"attempts per issue", "3", "sessions that may be started; a retry never resets it"},
	{"store lease", "30s, renewed each 10s, margin 3s", "a dead holder is noticed soon, a slow disk is not a death"},
	{"lock-delay", "15s", "after a death that could not be proved, before the next grant"},
	{"forge claim", "10m, renewed each 4m", "a push is dear; other installations wait longer"},
	{"abandoned claim", "16m", "of another installation, seen unmoved for 1.5 times 10m, and 1m: taken over"},
	{"log per session", "64 MiB", "what an agent prints beyond it is counted and dropped"},
	{"pack per import", "512 MiB", "what an agent may add to the repository at once"},
	{"finished workspaces", "168h", "kept for a look; then removed if their work is read back from the repository"},
	{"logs of finished runs", "720h", "what happened stays recorded without them"},
	{"free disk, size of state", "1GiB, 200GiB", "else no session is started; retention and disk are in your configuration"},
	{"--max-tasks", "4096", "processes and threads of a session at once; a fork storm stops there"},
	{"--max-memory", "75%", "of the machine's, per session; what is left keeps the machine alive"},
	{"--wait", "0s", "an issue that is held is refused at once; 20m outlasts an abandoned claim"},
	{"network", "host", "agents need their model, checks their registries"},
}
