package run

// Event is something that happened to a run. Each event type is a plain value; Kind names it in
// the store and in output.
type Event interface{ Kind() string }

// Claimed: the lease is held and the claim is about to be made on the forge.
type Claimed struct {
	Base   Base   `json:"base"`
	Branch string `json:"branch"`
	Claim  Claim  `json:"claim"` // ref and nonce; the hash comes with its settlement
}

// Refused: the forge says that somebody else holds the issue. Nothing of ours is there.
type Refused struct {
	Reason string `json:"reason"`
}

// TakenOver: another holder goes on with the run after the last one died.
type TakenOver struct {
	From  Holder `json:"from"`
	Proof string `json:"proof"` // how the death was proved, or that the lease expired
	Path  string `json:"path"`  // where the repository is found now
}

// Reconfigured: the operator typed other settings for a run that is still live.
type Reconfigured struct {
	Plan Plan `json:"plan"`
}

// SessionStarted: an agent is about to be started. It is counted before it starts.
type SessionStarted struct {
	Sandbox string `json:"sandbox"`
}

// SessionStopped: the operator stopped a session cleanly; it is not counted.
type SessionStopped struct {
	Tip string `json:"tip"` // what it had committed, "" if nothing
}

// Crashed: the session died with its holder. What it had committed is the next tip.
type Crashed struct {
	Tip string `json:"tip"`
}

// Delivered: an agent ended and left this head.
type Delivered struct {
	Head Commit `json:"head"`
}

// Failed: an attempt brought nothing that can go on. Findings go into the next prompt.
type Failed struct {
	Reason   string `json:"reason"`
	Findings string `json:"findings"`
	Tip      string `json:"tip"` // where the next attempt starts; "" keeps the present tip

	AllowWith string `json:"allow_with,omitempty"` // as in Run
}

// Verified: the checks have spoken of the exact head.
type Verified struct {
	Verdict Verdict `json:"verdict"`
	Precond string  `json:"precond"` // what a run that ends with the verdict depends on
	Next    string  `json:"next"`    // where its work is found

	Then string `json:"then,omitempty"` // what to do after it
}

// BaseMoved: the base branch has moved and the head no longer merges into it.
type BaseMoved struct {
	Base     Base   `json:"base"`
	Findings string `json:"findings"`
}

// Settled: an effect has happened (or was found to have happened).
type Settled struct {
	Key    string `json:"key"`
	Claim  *Claim `json:"claim,omitempty"`  // after claim-ref and push
	Change int64  `json:"change,omitempty"` // after propose
	Branch string `json:"branch,omitempty"` // after push, where the planned name was taken
	Found  bool   `json:"found,omitempty"`  // adopted by a probe instead of done
	Note   string `json:"note,omitempty"`
}

// Renewed: the claim ref was renewed or taken up again; its newest commit is ours.
type Renewed struct {
	Claim Claim `json:"claim"`
}

// ParkedBecause sets the run aside.
type ParkedBecause struct {
	Reason  string `json:"reason"`
	Next    string `json:"next"`
	Then    string `json:"then,omitempty"` // what to do after it; for people
	Exit    int    `json:"exit"`
	Precond string `json:"precond"`
	Say     string `json:"say,omitempty"`    // what the forge is told; "" is the reason itself
	Silent  bool   `json:"silent,omitempty"` // nothing may be written to the forge any more
}

// CanceledBy: a person ended the run.
type CanceledBy struct {
	Reason string `json:"reason"`
}

// Accepted: the change was merged.
type Accepted struct {
	Head string `json:"head"`
}

// Retried: a person wants the issue of a run that rests to be worked again, though nothing that it
// depends on has changed.
type Retried struct {
	Reason  string `json:"reason"`
	Allowed int    `json:"allowed,omitempty"` // sessions that may be spent in all; 0: as many as before
}

// Kind implements Event.
func (Claimed) Kind() string        { return "claimed" }
func (Refused) Kind() string        { return "refused" }
func (TakenOver) Kind() string      { return "taken over" }
func (Reconfigured) Kind() string   { return "reconfigured" }
func (SessionStarted) Kind() string { return "session started" }
func (SessionStopped) Kind() string { return "session stopped" }
func (Crashed) Kind() string        { return "session crashed" }
func (Delivered) Kind() string      { return "delivered" }
func (Failed) Kind() string         { return "attempt failed" }
func (Verified) Kind() string       { return "verified" }
func (BaseMoved) Kind() string      { return "base moved" }
func (Settled) Kind() string        { return "settled" }
func (Renewed) Kind() string        { return "claim renewed" }
func (ParkedBecause) Kind() string  { return "parked" }
func (CanceledBy) Kind() string     { return "canceled" }
func (Accepted) Kind() string       { return "accepted" }
func (Retried) Kind() string        { return "retried" }
