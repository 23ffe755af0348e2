package run

// The exit codes of interlock. This table is the only one: help, errors and runs use it.
const (
	ExitDone        = 0
	ExitRefused     = 1
	ExitUsage       = 2
	ExitHeld        = 3
	ExitWaits       = 4
	ExitUnknown     = 5
	ExitBusy        = 6
	ExitUnfit       = 7
	ExitFailed      = 8
	ExitLost        = 9
	ExitInterrupted = 130
)

// ExitCode is one row of the table of exit codes.
type ExitCode struct {
	Code    int
	Meaning string
}

// ExitCodes is the table, in order.
var ExitCodes = []ExitCode{
	{ExitDone, "done"},
	{ExitRefused, "refused: a rule or a state says no"},
	{ExitUsage, "usage or configuration"},
	{ExitHeld, "held by another"},
	{ExitWaits, "waits for a person, or is in review"},
	{ExitUnknown, "unknown outcome, will be probed"},
	{ExitBusy, "busy, try later"},
	{ExitUnfit, "this machine is not fit (sandbox, filesystem, platform, git)"},
	{ExitFailed, "agent or checks failed for good"},
	{ExitLost, "authority lost"},
	{ExitInterrupted, "interrupted"},
}
