package run

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

// ErrNotAllowed means that an event does not fit the state a run is in. Nothing has changed.
var ErrNotAllowed = errors.New("event does not fit the state of the run")

// Apply is the whole state machine: it returns the run after the event and the effects that the
// event adds. It never changes its argument. The new effects are also appended to the returned
// run's Effects; save them in the same transaction as the run, then do them in order.
func Apply(r Run, e Event) (Run, []Effect, error) {
	r.Effects = slices.Clone(r.Effects)
	r.Warnings = slices.Clone(r.Warnings)
	old, from := slices.Clone(r.Effects), r.State
	if err := r.apply(e); err != nil {
		return Run{}, nil, fmt.Errorf("%w: %s in state %q of run %s: %w", ErrNotAllowed, kindOf(e), from, r.ID, err)
	}
	var added []Effect
	for _, f := range r.Effects {
		if !slices.ContainsFunc(old, func(o Effect) bool { return o.Key == f.Key }) {
			added = append(added, f)
		}
	}
	return r, added, nil
}

// kindOf names an event for an error; the event may be nil or a pointer, which Apply refuses.
func kindOf(e Event) string {
	if v := reflect.ValueOf(e); !v.IsValid() || v.Kind() == reflect.Pointer {
		return fmt.Sprintf("%T", e)
	}
	return strconv.Quote(e.Kind())
}

func (r *Run) apply(e Event) error {
	switch e := e.(type) {
	case Claimed:
		return r.claimed(e)
	case Refused:
		return r.refused(e)
	case TakenOver, Renewed:
		return r.held(e)
	case Reconfigured:
		return r.reconfigured(e)
	case SessionStarted:
		return r.sessionStarted(e)
	case SessionStopped:
		return r.sessionStopped(e)
	case Crashed:
		return r.crashed(e)
	case Delivered:
		return r.delivered(e)
	case Failed:
		return r.failed(e)
	case Verified:
		return r.verified(e)
	case BaseMoved:
		return r.baseMoved(e)
	case Settled:
		return r.settled(e)
	case ParkedBecause:
		return r.parked(e)
	case CanceledBy, Accepted, Retried:
		return r.decided(e)
	}
	return fmt.Errorf("unknown event %T", e)
}

// need refuses an event outside the states it belongs to.
func (r *Run) need(states ...State) error {
	if slices.Contains(states, r.State) {
		return nil
	}
	return fmt.Errorf("allowed only in %q", states)
}

func (r *Run) add(kind EffectKind, key, text string) {
	r.Effects = append(r.Effects, Effect{Kind: kind, Key: string(kind) + ":" + key, Text: text})
}

func (r *Run) claimed(e Claimed) error {
	if err := r.need(Queued); err != nil {
		return err
	}
	if e.Claim.Nonce == "" || e.Branch == "" || e.Base.Commit.Hash == "" {
		return errors.New("a claim needs a nonce, a branch and a base")
	}
	r.State, r.Base, r.Branch, r.Claim = Claiming, e.Base, e.Branch, e.Claim
	r.Reason = "claiming the issue"
	r.add(EffectClaim, e.Claim.Nonce, "")
	r.add(EffectMark, e.Claim.Nonce, "")
	return nil
}

func (r *Run) refused(e Refused) error {
	if err := r.need(Claiming); err != nil {
		return err
	}
	if r.pending(EffectClaim) == nil {
		return errors.New("the claim is ours already; give it back by parking or canceling")
	}
	r.State, r.Reason, r.Effects = Canceled, e.Reason, nil
	return nil
}

func (r *Run) held(e Event) error {
	switch e := e.(type) {
	case Renewed:
		return r.take(e.Claim)
	case TakenOver:
		if e.Path != "" {
			r.RepoPath = e.Path
		}
	}
	return nil
}

// take keeps what is newly known of the claim ref.
func (r *Run) take(c Claim) error {
	if c.Nonce == "" || c.Nonce != r.Claim.Nonce {
		return errors.New("a claim with another nonce is not ours")
	}
	if c.Hash == "" {
		return errors.New("a claim that was made has a commit")
	}
	r.Claim = c
	return nil
}

func (r *Run) reconfigured(e Reconfigured) error {
	if !r.State.Live() {
		return errors.New("the run is not live")
	}
	if r.State != Landing {
		r.Plan = e.Plan
		return nil
	}
	if r.pending(EffectPush) == nil {
		// What is delivered already was verified by the old checks and goes the old lane's way.
		e.Plan.Lane, e.Plan.Checks, e.Plan.AllowNoTests = r.Plan.Lane, r.Plan.Checks, r.Plan.AllowNoTests
		e.Plan.AllowFewer = r.Plan.AllowFewer
		r.Plan = e.Plan
		return nil
	}
	same := slices.Equal(e.Plan.Checks, r.Plan.Checks) && e.Plan.AllowNoTests == r.Plan.AllowNoTests &&
		e.Plan.AllowFewer == r.Plan.AllowFewer &&
		e.Plan.Lane == r.Plan.Lane && e.Plan.Sandbox == r.Plan.Sandbox
	r.Plan = e.Plan
	// A verdict of other checks says nothing, and another lane has other effects.
	if !same {
		r.State, r.Verdict, r.Effects = Verifying, nil, nil
		r.Reason = "other settings: checking the exact commit again"
	}
	return nil
}

func (r *Run) sessionStarted(e SessionStarted) error {
	if err := r.need(Implementing); err != nil {
		return err
	}
	if r.Spent >= r.Plan.Attempts {
		return fmt.Errorf("all %d attempts are spent", r.Plan.Attempts)
	}
	r.Attempt++
	r.Spent++
	r.Running = true
	r.Sandbox, r.AllowWith = e.Sandbox, ""
	r.Reason = fmt.Sprintf("attempt %d: the agent works", r.Attempt)
	return nil
}

func (r *Run) sessionStopped(e SessionStopped) error {
	if err := r.need(Implementing); err != nil {
		return err
	}
	if r.Running && r.Spent > 0 { // only a session that was counted can be taken off again, once
		r.Spent--
	}
	r.Running = false
	r.tip(e.Tip)
	r.Reason = "stopped by the operator; the work is kept"
	return nil
}

func (r *Run) crashed(e Crashed) error {
	if err := r.need(Implementing); err != nil {
		return err
	}
	r.Running = false
	r.tip(e.Tip)
	r.Reason = "the session died with its holder"
	return nil
}

func (r *Run) tip(hash string) {
	if hash != "" {
		r.Tip = hash
	}
}

func (r *Run) delivered(e Delivered) error {
	if err := r.need(Implementing); err != nil {
		return err
	}
	if e.Head.Hash == "" || e.Head.Tree == "" {
		return errors.New("a delivery needs a commit and its tree")
	}
	r.Running = false
	r.State, r.Head, r.Tip, r.Verdict = Verifying, e.Head, e.Head.Hash, nil
	r.Reason = "checking the exact commit"
	return nil
}

func (r *Run) failed(e Failed) error {
	if err := r.need(Implementing, Verifying, Landing); err != nil {
		return err
	}
	if r.State == Landing && r.pending(EffectPush) == nil {
		return errors.New("work that was delivered cannot fail any more")
	}
	r.State, r.Findings, r.Reason, r.Effects, r.Running = Implementing, e.Findings, e.Reason, nil, false
	r.AllowWith = e.AllowWith
	r.tip(e.Tip)
	return nil
}

func (r *Run) verified(e Verified) error {
	if err := r.need(Verifying); err != nil {
		return err
	}
	v := e.Verdict
	if v.Head != r.Head {
		return fmt.Errorf("the verdict is for %s, the head is %s", v.Head.Hash, r.Head.Hash)
	}
	if v.Base != r.Base.Commit.Hash {
		return fmt.Errorf("the verdict is on base %q, the run's base is %q", v.Base, r.Base.Commit.Hash)
	}
	r.Verdict = &v
	if !v.Passed {
		r.State, r.Reason, r.Findings = Implementing, "the checks failed: "+v.Why, v.Findings()
		return nil
	}
	r.State, r.Reason, r.Findings = Landing, "the checks passed", ""
	if r.Plan.Lane == LaneBuild {
		r.Precond, r.Next, r.Then = e.Precond, e.Next, e.Then
		r.note("built", fmt.Sprintf("Built %s on %s; the checks passed. Lane build: nothing was pushed.", v.Head.Hash, r.Base.Branch))
		r.giveBack()
		return nil
	}
	r.add(EffectPush, r.Branch+":"+r.Head.Hash, "")
	return nil
}

func (r *Run) baseMoved(e BaseMoved) error {
	if err := r.need(Landing); err != nil {
		return err
	}
	if r.pending(EffectPush) == nil {
		return errors.New("the head was pushed already")
	}
	if e.Base.Commit.Hash == "" || e.Base.Branch != r.Base.Branch {
		return fmt.Errorf("a base that moved is another commit of %q", r.Base.Branch)
	}
	r.State, r.Base, r.Verdict, r.Effects = Implementing, e.Base, nil, nil
	r.Tip, r.Findings, r.Reason = r.Head.Hash, e.Findings, "the base moved and no longer merges"
	return nil
}

func (r *Run) settled(e Settled) error {
	i := slices.IndexFunc(r.Effects, func(f Effect) bool { return f.Key == e.Key })
	if i < 0 {
		return fmt.Errorf("no pending effect has the key %q", e.Key)
	}
	if i > 0 {
		return fmt.Errorf("effect %q comes before it", r.Effects[0].Key)
	}
	kind := r.Effects[0].Kind
	r.Effects = r.Effects[1:]
	if e.Claim != nil {
		if err := r.take(*e.Claim); err != nil {
			return err
		}
	}
	return r.after(kind, e)
}

// after moves the run on when an effect of this kind has happened.
func (r *Run) after(kind EffectKind, e Settled) error {
	switch kind {
	case EffectClaim:
		if e.Claim == nil {
			return errors.New("a claim ref settles with the claim that was made")
		}
	case EffectMark:
		if r.State == Claiming {
			r.State, r.Reason = Implementing, "claimed"
		}
	case EffectPush:
		r.Pushed = r.Head.Hash
		if e.Branch != "" {
			r.Branch = e.Branch
		}
		r.add(EffectPropose, r.Branch, "")
	case EffectPropose:
		if e.Change <= 0 {
			return errors.New("a proposal settles with the number of its change")
		}
		r.Change = e.Change
		r.add(EffectHandoff, fmt.Sprintf("%s:%d", r.Branch, r.Change), "")
	case EffectHandoff:
		r.State, r.Reason = InReview, fmt.Sprintf("change %d waits for a reviewer", r.Change)
		r.add(EffectRelease, r.Claim.Nonce, "")
	case EffectRelease:
		if r.State == Landing { // lane build
			r.State, r.Reason = Done, "built and verified; nothing was pushed"
		}
	}
	return nil
}

func (r *Run) parked(e ParkedBecause) error {
	if !r.State.Live() {
		return errors.New("the run is not live")
	}
	// Whoever lost the claim must be able to stop at any point; everybody else hands off first.
	if r.Change != 0 && !e.Silent {
		return fmt.Errorf("change %d is open already", r.Change)
	}
	claimed := r.claimSettled()
	r.State, r.Reason, r.Next, r.Then, r.Exit, r.Precond = Parked, e.Reason, e.Next, e.Then, e.Exit, e.Precond
	r.Effects, r.Running = nil, false
	if e.Say == "" {
		e.Say = e.Reason
	}
	if !e.Silent {
		r.withdraw(claimed, "parked", e.Say)
	}
	return nil
}

func (r *Run) canceled(e CanceledBy) error {
	if !r.State.Live() {
		return errors.New("the run is not live")
	}
	claimed := r.claimSettled()
	r.State, r.Reason, r.Effects, r.Running = Canceled, e.Reason, nil, false
	text := "Canceled: " + e.Reason
	if r.Change != 0 {
		text += fmt.Sprintf("\n\nChange %d stays open.", r.Change)
	}
	r.withdraw(claimed, "canceled", text)
	return nil
}

// decided moves the run by what a person said.
func (r *Run) decided(e Event) error {
	switch e := e.(type) {
	case CanceledBy:
		return r.canceled(e)
	case Accepted:
		return r.accepted(e)
	case Retried:
		return r.retried(e)
	}
	return nil
}

// retried takes away what keeps the issue of a run that rests from being worked again: of one in
// review, whose change was turned down, that its sessions are used. What the run spent stays spent; a
// person may allow more.
func (r *Run) retried(e Retried) error {
	if err := r.need(Parked, Done, Canceled, InReview); err != nil {
		return err
	}
	switch {
	case r.Change != 0 && r.State == Done:
		return fmt.Errorf("its change %d was accepted", r.Change)
	case len(r.Effects) > 0:
		return fmt.Errorf("effect %q comes before it", r.Effects[0].Key)
	case r.Retry != "":
		return errors.New("it is to go again already")
	case e.Reason == "":
		return errors.New("a retry has a reason")
	}
	r.Retry, r.Precond, r.Allowed = e.Reason, "", max(r.Allowed, e.Allowed)
	return nil
}

func (r *Run) accepted(e Accepted) error {
	if err := r.need(InReview); err != nil {
		return err
	}
	r.State, r.Reason = Done, "change accepted"
	return nil
}

func (r *Run) note(what, text string) {
	sum := sha256.Sum256([]byte(text))
	r.add(EffectNote, r.ID+":"+what+":"+hex.EncodeToString(sum[:6]), text)
}

// claimSettled reports whether the claim ref is known to have been made.
func (r *Run) claimSettled() bool { return r.Claim.Nonce != "" && r.pending(EffectClaim) == nil }

// withdraw plans what gives the issue back with a note. A run that was never claimed has nothing
// outside; while the claim ref is not settled the issue may be somebody else's, so nothing is said
// there, and the release finds out whether the ref became ours.
func (r *Run) withdraw(claimed bool, what, text string) {
	switch {
	case r.Claim.Nonce == "":
	case !claimed:
		r.add(EffectRelease, r.Claim.Nonce, "")
	default:
		r.note(what, text)
		r.giveBack()
	}
}

// giveBack takes the mark off and releases the claim.
func (r *Run) giveBack() {
	r.add(EffectUnmark, r.Claim.Nonce, "")
	r.add(EffectRelease, r.Claim.Nonce, "")
}

// pending returns the pending effect of this kind, nil if there is none.
func (r *Run) pending(kind EffectKind) *Effect {
	for i := range r.Effects {
		if r.Effects[i].Kind == kind {
			return &r.Effects[i]
		}
	}
	return nil
}
