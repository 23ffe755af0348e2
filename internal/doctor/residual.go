package doctor

import "interlock/internal/sandbox"

// Residual is something that cannot be promised: how far it can go, and what would show it.
type Residual struct {
	What     string `json:"what"`
	Bound    string `json:"bound"`
	Tripwire string `json:"tripwire"`

	applies func(sandbox.Facts) bool // nil: always
}

// Residuals is the table, also in the project's DESIGN.md.
var Residuals = []Residual{
	{What: "a comment, label or change written by a process that was paused between its check and the write",
		Bound: "one effect; git and the store are fenced", Tripwire: "a probe before each effect that is done again"},
	{What: "claim refs can be forced or deleted by any writer of the repository",
		Bound: "co-operating installations only", Tripwire: "a hash that is not our child is noticed before each effect; a wiped one is restored by its holder"},
	{What: "issue and change refs can be forced by any writer of the repository, and what was written and wiped between two looks is not known here",
		Bound: "what nobody here has seen", Tripwire: "a ref that does not go on from what was seen is said, and what was seen is kept"},
	{What: "a state directory that is put back as a whole, with its state.floor, hands out fences again that it handed out before",
		Bound: "this state directory; claims are in the repositories and are looked at before each effect", Tripwire: "a claim that is not ours, or not the last one we made"},
	{What: "a bit that flips in the database while it is in use, or before it was closed properly, is found only where it breaks its structure",
		Bound: "until the next proper close; records and rows that no longer fit are refused one by one", Tripwire: "interlock state check"},
	{What: "a process that is stopped in the midst of a read keeps the log of the database from being cut back",
		Bound: "the disk; writes go on, and the log shrinks when the process goes on or ends", Tripwire: "interlock state check"},
	{What: "a process that is stopped in the midst of a write keeps all others from the state, also who only wants to cancel or to look",
		Bound: "until it goes on or ends; what it had not committed is undone, and leases run out meanwhile", Tripwire: "after 10 s whoever waits is refused, with its process id"},
	{What: "objects of other attempts of the same repository can be read in the sandbox",
		Bound: "that repository", Tripwire: "none"},
	{What: "an agent can read a key that is handed to it with --env, and the network is the host's",
		Bound: "what that key and that network can reach", Tripwire: "none"},
	{What: "a secret that is of no known shape and not this installation's, or is compressed, encrypted or cut in pieces, is not found before a push",
		Bound: "what the agent can read; own values are found in base64, hex, URL and JSON forms", Tripwire: "the diff of the change"},
	{What: "an agent's mutations inside its workspace are not asked for one by one",
		Bound: "the workspace; protected paths are refused at the import", Tripwire: "the diff of the change"},
	{What: "level none confines nothing: the agent has the operator's own rights",
		Bound: "only where it is asked for by that word, and in the demo without bubblewrap", Tripwire: "recorded with the run and shown with the change"},
	{What: "the system calls that programs need are open, and with them the kernel's own faults",
		Bound: "the kernel, without capabilities; calls that agents and tests never need are closed", Tripwire: "none"},
	{What: "level landlock has gaps, which doctor lists one by one",
		Bound: "only where it is asked for by that word", Tripwire: "recorded with the run and shown with the change"},
	{What: "the import of a workspace has no limit of tasks and memory",
		Bound: "one git process, its deadline and the bound of the pack", Tripwire: "none"},
	{What: "nothing limits the tasks or the memory of a session where no cgroup controller can be had",
		Bound: "the machine; the whole tree is ended all the same", Tripwire: "doctor, and a warning of each run",
		applies: func(f sandbox.Facts) bool { return f.Tasks == "" || f.Memory == "" }},
}

// residuals returns those that apply on this machine.
func residuals(f sandbox.Facts) []Residual {
	var some []Residual
	for _, r := range Residuals {
		if r.applies == nil || r.applies(f) {
			some = append(some, r)
		}
	}
	return some
}
