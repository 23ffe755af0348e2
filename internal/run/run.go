// Package run holds the pure heart of Interlock: what a run, a lease, an event, an effect and a
// verdict are, and the one function that moves a run, Apply. It has no clock and does no I/O;
// times arrive as values and effects leave as values.
package run

import "time"

// State is where a run stands. The picture is in DESIGN.md, section "The run".
type State string

// The states of a run. Live states have work left to do; the others are resting or final.
const (
	Queued       State = "queued"       // picked, nothing saved outside yet
	Claiming     State = "claiming"     // claim saved; the forge is being marked
	Implementing State = "implementing" // an agent works, or the next attempt is due
	Verifying    State = "verifying"    // the exact head is being checked
	Landing      State = "landing"      // scope, push, propose, hand off
	InReview     State = "in review"    // handed to a reviewer; nothing left for an agent
	Done         State = "done"         // accepted, or delivered where the lane ends without a change
	Parked       State = "parked"       // set aside with a reason until its precondition changes
	Canceled     State = "canceled"     // a person ended it
)

// Live reports whether a run in this state is to be driven by a holder.
func (s State) Live() bool {
	switch s {
	case Queued, Claiming, Implementing, Verifying, Landing:
		return true
	}
	return false
}

// Known reports whether it is a state of a run at all.
func (s State) Known() bool {
	switch s {
	case InReview, Done, Parked, Canceled:
		return true
	}
	return s.Live()
}

// Lane says how far a run may go.
type Lane string

// The lanes.
const (
	LaneBuild   Lane = "build"   // ends with the verified commit in the engine's repository
	LanePropose Lane = "propose" // ends with one change handed to review
)

// Fence is the fencing token: it grows at each grant of a key and travels with every write.
type Fence int64

// Holder identifies the process that acts. Identity is what can be proved dead later: a process
// id alone is reused, so its start time and the boot it lives in belong to it.
type Holder struct {
	ID           string `json:"id"`           // unique per engine process
	Installation string `json:"installation"` // one state directory
	Host         string `json:"host"`
	PID          int    `json:"pid"`
	Namespace    string `json:"namespace"` // its pid namespace: elsewhere a missing pid proves nothing
	Start        uint64 `json:"start"`     // field 22 of /proc/PID/stat: clock ticks since boot
	Boot         string `json:"boot"`      // /proc/sys/kernel/random/boot_id
}

// Lease is a time-bounded right to act on a key. Times are store time (see store.Clock).
type Lease struct {
	Key     string        `json:"key"`
	Holder  Holder        `json:"holder"`
	Fence   Fence         `json:"fence"`
	Granted time.Duration `json:"granted"`
	Expires time.Duration `json:"expires"`
}

// Commit names a commit and the tree it holds, each as 40 lower-case hex digits.
type Commit struct {
	Hash string `json:"hash,omitempty"`
	Tree string `json:"tree,omitempty"`
}

// Base is the branch a change is proposed against and the commit it was at.
type Base struct {
	Branch string `json:"branch,omitempty"`
	Commit Commit `json:"commit"`
}

// Claim is what the run knows of its claim ref on the forge.
type Claim struct {
	Ref        string `json:"ref,omitempty"`
	Hash       string `json:"hash,omitempty"`  // the last claim commit we know to be ours
	Nonce      string `json:"nonce,omitempty"` // chosen before the first write, so a lost reply is recognised
	Generation int64  `json:"generation,omitempty"`
}

// Task is the issue as it is handed to an agent. The text is frozen when the issue is picked.
type Task struct {
	Title  string `json:"title"`
	Body   string `json:"body"`
	Digest string `json:"digest"` // SHA-256 of title, NUL, body
}

// Plan is what the operator asked for. It is kept with the run and may be replaced on a resume.
type Plan struct {
	Lane          Lane          `json:"lane"`
	Command       string        `json:"command"`                  // the agent's shell line
	CommandDigest string        `json:"command_digest,omitempty"` // SHA-256 of the bound agent file, if any
	Checks        []string      `json:"checks"`
	Attempts      int           `json:"attempts"` // sessions that may be started
	AllowNoTests  bool          `json:"allow_no_tests,omitempty"`
	AllowFewer    bool          `json:"allow_fewer_tests,omitempty"`
	AllowPaths    []string      `json:"allow_paths,omitempty"`   // protected paths this run may touch
	AllowSecrets  []string      `json:"allow_secrets,omitempty"` // findings that are no secrets: fingerprints, patterns of paths
	Sandbox       string        `json:"sandbox"`                 // level asked for
	AgentTotal    time.Duration `json:"agent_total"`
	AgentIdle     time.Duration `json:"agent_idle"`
	CheckTotal    time.Duration `json:"check_total"`
	MaxTasks      int64         `json:"max_tasks,omitempty"`  // processes and threads of a session; 0: any
	MaxMemory     int64         `json:"max_memory,omitempty"` // bytes of a session; 0: any
	Env           []string      `json:"env,omitempty"`        // names of variables handed to the agent
	// Theirs are the settings, by the names of their keys, whose lines the repository's own file
	// chose: they run in the sandbox or not at all.
	Theirs []string `json:"theirs,omitempty"`
}

// Command is one check as it ran.
type Command struct {
	Line   string  `json:"line"`
	Exit   int     `json:"exit"`             // -1: ended by a signal or a limit
	Tests  *int    `json:"tests,omitempty"`  // tests that ran; nil: not counted
	Counts []Count `json:"counts,omitempty"` // what each source said of them
	// BaseTests is how many ran at the base; nil: not compared, or not counted there.
	BaseTests *int          `json:"base_tests,omitempty"`
	Why       string        `json:"why,omitempty"`    // why it failed
	Output    string        `json:"output,omitempty"` // the tail, capped
	Duration  time.Duration `json:"duration"`
}

// Count is what one source said of the tests of a check. The code that is checked can print and
// write what it likes, so it is no proof.
type Count struct {
	Source  string `json:"source"` // a test runner, or a format
	Passed  int    `json:"passed"`
	Failed  int    `json:"failed"`
	Skipped int    `json:"skipped"`
}

// Verdict is what the checks said of one exact commit.
type Verdict struct {
	Passed   bool      `json:"passed"`
	Head     Commit    `json:"head"`
	Base     string    `json:"base"`            // hash of the base it was verified on
	Tests    *int      `json:"tests,omitempty"` // sum over the commands that count
	Commands []Command `json:"commands"`
	Why      string    `json:"why,omitempty"`
	Sandbox  string    `json:"sandbox"`
	// Warnings name what a reviewer should look at: tests that are gone or weaker, as far as that
	// can be seen, and counts that cannot be relied on. They refuse nothing.
	Warnings []string `json:"warnings,omitempty"`
}

// Run is the durable execution of one issue.
type Run struct {
	ID       string `json:"id"`
	Repo     string `json:"repo"`      // canonical repository key
	RepoPath string `json:"repo_path"` // as the operator can find it
	Issue    int64  `json:"issue"`
	Task     Task   `json:"task"`
	Plan     Plan   `json:"plan"`

	State    State  `json:"state"`
	Reason   string `json:"reason,omitempty"` // why it is where it is, for a person
	Next     string `json:"next,omitempty"`   // a command that goes on from here
	Then     string `json:"then,omitempty"`   // what to do after it, or instead; for people
	Exit     int    `json:"exit"`             // the exit code a resting state maps to
	Retry    string `json:"retry,omitempty"`  // why a person wants its issue worked again, though nothing has changed
	Precond  string `json:"precond,omitempty"`
	Attempt  int    `json:"attempt"`           // number of the newest session, 0 before the first
	Spent    int    `json:"spent"`             // sessions counted against Plan.Attempts
	Allowed  int    `json:"allowed,omitempty"` // what a person has raised Plan.Attempts to, by a retry; 0: nothing
	Running  bool   `json:"running,omitempty"` // the newest session is counted and has not been heard of again
	Findings string `json:"findings,omitempty"`
	// AllowWith are the flags with which the operator allows what refused the last attempt; "" where none do.
	AllowWith string `json:"allow_with,omitempty"`

	Base     Base     `json:"base"`
	Branch   string   `json:"branch,omitempty"`
	Tip      string   `json:"tip,omitempty"` // where the next attempt starts; "" means at the base
	Head     Commit   `json:"head"`          // what the last attempt delivered
	Verdict  *Verdict `json:"verdict,omitempty"`
	Claim    Claim    `json:"claim"`
	Change   int64    `json:"change,omitempty"`
	Pushed   string   `json:"pushed,omitempty"` // hash the forge's branch was last seen at by us
	Sandbox  string   `json:"sandbox,omitempty"`
	Warnings []string `json:"warnings,omitempty"`

	Effects []Effect `json:"effects"` // not yet settled, in the order they must be done

	Revision int64     `json:"revision"` // grows with each save
	Fence    Fence     `json:"fence"`    // of the last holder that saved
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`
}

// EffectKind says what must happen outside.
type EffectKind string

// The kinds of effect.
const (
	EffectClaim   EffectKind = "claim-ref" // create or take up the claim ref
	EffectMark    EffectKind = "mark"      // make the claim visible on the issue
	EffectPush    EffectKind = "push"      // claim child and branch, atomically
	EffectPropose EffectKind = "propose"   // exactly one open change for the head branch
	EffectHandoff EffectKind = "hand-off"  // tell the issue that it is in review
	EffectNote    EffectKind = "note"      // one comment with a reason or a delivery
	EffectUnmark  EffectKind = "unmark"    // take our mark off
	EffectRelease EffectKind = "release"   // give the claim ref back
)

// Known reports whether it is a kind of effect at all.
func (k EffectKind) Known() bool {
	switch k {
	case EffectClaim, EffectMark, EffectPush, EffectPropose, EffectHandoff, EffectNote, EffectUnmark, EffectRelease:
		return true
	}
	return false
}

// Effect is one thing that must happen outside, written down before it is done. Key names what
// is delivered, not the attempt, so that a second try is recognised as the same.
type Effect struct {
	Kind EffectKind `json:"kind"`
	Key  string     `json:"key"`
	Text string     `json:"text,omitempty"` // what a note says
}
