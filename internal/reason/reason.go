// Package reason says why an issue or a run is where it is: what holds it, what it waits for, and
// the command that goes on. It reads the record of runs and looks at the repository; it never
// starts, ends or changes anything.
package reason

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"interlock/internal/claim"
	"interlock/internal/engine/eligibility"
	"interlock/internal/forge"
	"interlock/internal/lease"
	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/text"
)

// Explainer explains the issues of one repository.
type Explainer struct {
	Store store.Store
	Look  *eligibility.Look // nil: the repository is not there, so only what was recorded is told
	Self  run.Holder        // this process
	Clock store.Clock
	// Start is the command that starts an issue that nothing keeps from being started.
	Start func(issue int64) string
}

// Answer is why an issue, or a run, is where it is.
type Answer struct {
	Issue int64  `json:"issue"`
	Title string `json:"title"`
	Run   string `json:"run,omitempty"` // the run that is explained; absent: there is none
	// State is that of the run, or "never picked", or "closed" when the issue is.
	State string    `json:"state"`
	Since time.Time `json:"since,omitzero"` // of the run's last step
	Why   string    `json:"why"`
	Next  string    `json:"next"`           // one command line
	Then  string    `json:"then,omitempty"` // what to do after it, or instead; for people
	// Startable is true when the next run of the issue would begin, or go on.
	Startable bool     `json:"startable"`
	Driven    bool     `json:"driven"`            // a process works it at this moment
	Changed   []string `json:"changed,omitempty"` // what the run depends on and has changed since it began
	Pending   []string `json:"pending,omitempty"` // what is still to happen outside
	Asked     string   `json:"asked,omitempty"`   // what a person asked for and was not done yet
	Last      []Point  `json:"last,omitempty"`    // the newest things that were recorded, oldest first
}

// Point is one thing that was recorded of a run.
type Point struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
	Why  string    `json:"why,omitempty"`
}

// Issue explains an issue: by its newest run, or by what keeps it from having one.
func (x *Explainer) Issue(ctx context.Context, n int64) (Answer, error) {
	is, err := x.Look.Forge.Issue(ctx, n)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Issue: n, Title: is.Title, State: "never picked"}
	last, err := x.Look.Last(ctx, n)
	if damaged := eligibility.Damaged(n, err); damaged != err {
		return a.refused(damaged), nil
	}
	if err != nil {
		return a, err
	}
	if last != nil {
		reviewed := x.reviewed(ctx, *last)
		last = &reviewed
		if a, err = x.record(ctx, a, *last); err != nil || last.State.Live() {
			return a, err
		}
	}
	return x.startable(ctx, a, is, last)
}

// Run explains a run: the newest of its issue as the issue, an older one by what it came to.
func (x *Explainer) Run(ctx context.Context, r run.Run) (Answer, error) {
	newest, err := x.Store.List(ctx, store.Filter{Repo: r.Repo, Issue: r.Issue, Limit: 1})
	if err != nil {
		return Answer{}, err
	}
	if x.Look != nil && (len(newest) == 0 || newest[0].ID == r.ID) {
		return x.Issue(ctx, r.Issue)
	}
	a, err := x.record(ctx, Answer{Issue: r.Issue, Title: r.Task.Title}, x.reviewed(ctx, r))
	switch {
	case err != nil:
		return a, err
	case len(newest) > 0 && newest[0].ID != r.ID:
		a.Why += fmt.Sprintf("; the issue was worked again by run %s, which is %s", newest[0].ID, newest[0].State)
		a.Next = "interlock explain " + newest[0].ID
	default:
		a.Why += "; the repository is not at " + r.RepoPath + " any more, so nothing else can be looked at"
		a.Next, a.Then = "interlock show "+r.ID, "type the command again with --repo and the path that the repository has now"
	}
	return a, nil
}

// Review returns a run as it is to be shown: of one whose change does not wait for a reviewer any
// more with what became of that, and the command that goes on from there.
func (x *Explainer) Review(ctx context.Context, r run.Run) (run.Run, error) {
	shown := x.reviewed(ctx, r)
	if shown.Reason == r.Reason {
		return r, nil
	}
	a, err := x.Run(ctx, r)
	if err != nil {
		return r, err
	}
	shown.Next, shown.Then = a.Next, a.Then
	return shown, nil
}

// reviewed is a run with what became of its change for a reason, which nobody saves when that is
// closed, or merged elsewhere. Where the change cannot be read, what was recorded is told.
func (x *Explainer) reviewed(ctx context.Context, r run.Run) run.Run {
	if r.State != run.InReview || x.Look == nil {
		return r
	}
	changes, err := x.Look.Forge.Changes(ctx, r.Branch)
	i := slices.IndexFunc(changes, func(c forge.Change) bool { return c.Number == r.Change })
	switch {
	case err != nil || i < 0:
	case changes[i].State == "closed":
		r.Reason = fmt.Sprintf("change %d was closed, not merged", r.Change)
	case changes[i].State == "merged":
		r.Reason = fmt.Sprintf("change %d was accepted", r.Change)
	}
	return r
}

// record says what the record of a run says. That is all there is to say of one that is live.
func (x *Explainer) record(ctx context.Context, a Answer, r run.Run) (Answer, error) {
	a.Run, a.State, a.Since = r.ID, string(r.State), r.Updated
	a.Why, a.Next, a.Then = r.Reason, r.Next, r.Then
	for _, f := range r.Effects {
		a.Pending = append(a.Pending, f.Key)
	}
	h, err := x.Store.History(ctx, r.ID)
	if err != nil {
		return a, err
	}
	a.Last = newest(h.Events, 5)
	if reason, asked, err := x.Store.Controls().Cancel(ctx, r.ID); err != nil {
		return a, err
	} else if asked && r.State != run.Canceled {
		a.Asked = "to be canceled: " + reason
	}
	if !r.State.Live() {
		return a, nil
	}
	d, err := claim.Drives(ctx, x.Store, x.Self, r)
	if err != nil {
		return a, err
	}
	a.Driven, a.Startable = d.Alive, d.By == "" || d.Gone
	goOn := fmt.Sprintf("interlock run --repo %s --issue %d", text.Quote(r.RepoPath), r.Issue)
	switch {
	case d.By == "":
		a.Why, a.Next, a.Then = a.Why+"; nobody drives it at this moment", goOn, "to end it instead: interlock cancel "+r.ID
	case d.Gone:
		a.Why, a.Next, a.Then = a.Why+"; it was stopped: "+d.By+" is gone", goOn, "to end it instead: interlock cancel "+r.ID
	case d.Alive:
		a.Why, a.Next, a.Then = a.Why+"; "+d.By+" works on it", "interlock watch "+r.ID, "to end it: interlock cancel "+r.ID
	default:
		a.Why += "; " + d.By + " holds it, which cannot be looked at from here: its lease runs out in " + max(0, d.Expires-x.Clock.Now()).Round(time.Second).String()
		a.Next, a.Then = "interlock watch "+r.ID, ""
	}
	return a, nil
}

// startable says whether an issue whose run rests, or that has none, may be started, and why not.
func (x *Explainer) startable(ctx context.Context, a Answer, is forge.Issue, last *run.Run) (Answer, error) {
	if is.State != "open" {
		a.Why = fmt.Sprintf("issue %d is closed, so it is not worked", a.Issue) + became(last)
		a.State, a.Next, a.Then = is.State, fmt.Sprintf("interlock issue show %d --repo %s", a.Issue, text.Quote(x.Look.RepoPath)), ""
		return a, nil
	}
	a, err := x.refusal(ctx, a, is, last)
	var held *eligibility.HeldError
	if errors.As(err, &held) {
		err = held.Refusal(0, x.Look.RepoPath)
	}
	if errors.As(err, new(*eligibility.Refusal)) {
		return a.refused(err), nil
	}
	if err != nil {
		return a, err
	}
	a.Startable, a.Then, a.Next = true, "", x.Start(a.Issue)
	if last != nil {
		a.Next = "interlock retry " + last.ID // with the settings that it had
		if last.State == run.InReview {
			a.Then = fmt.Sprintf("to give it up instead: interlock issue close %d --repo %s", a.Issue, text.Quote(x.Look.RepoPath))
		}
	}
	a.Why = "nothing keeps it from being worked" + became(last)
	if last != nil && last.Retry != "" {
		a.Why += "; it is to go again: " + last.Retry
	}
	before, err := x.before(ctx, a.Issue)
	if last == nil {
		a.Why += "; nobody has picked it yet" + before
	}
	return a, err
}

// refusal asks each rule in the order of a run that is started, and returns what the first says
// that does not allow it.
func (x *Explainer) refusal(ctx context.Context, a Answer, is forge.Issue, last *run.Run) (_ Answer, err error) {
	err = x.Look.Titled(is)
	if err == nil && last != nil {
		if a.Changed, err = x.Look.Changed(ctx, *last); err == nil {
			_, err = x.Look.Rests(ctx, last.Base.Branch, last.Plan, *last)
		}
	}
	for _, may := range []func(context.Context, int64) error{x.Look.Proposed, x.Look.Claimable} {
		if err == nil {
			err = may(ctx, a.Issue)
		}
	}
	if err == nil && last != nil {
		fresh := run.Run{Issue: a.Issue, Plan: last.Plan, Task: run.Task{Digest: forge.TaskDigest(is.Title, is.Body)}}
		err = x.Look.Spent(&fresh, last)
	}
	return a, err
}

// became says what the last run of an issue came to.
func became(last *run.Run) string {
	if last == nil {
		return ""
	}
	return fmt.Sprintf("; run %s is %s: %s", last.ID, last.State, last.Reason)
}

// before says which open issues come before one where the next is to be picked.
func (x *Explainer) before(ctx context.Context, n int64) (string, error) {
	open, err := x.Look.Forge.Issues(ctx, forge.Filter{State: "open"})
	if err != nil {
		return "", err
	}
	lower := slices.DeleteFunc(open, func(is forge.Issue) bool { return is.Number >= n })
	if len(lower) == 0 {
		return ", and it is the first of the open ones", nil
	}
	return fmt.Sprintf("; %d open issues have lower numbers, and of those that may be worked the lowest comes first", len(lower)), nil
}

// refused takes over the words of a refusal.
func (a Answer) refused(err error) Answer {
	var r *eligibility.Refusal
	if errors.As(err, &r) {
		a.Why, a.Next, a.Then = r.What, r.Next, r.Then
	}
	return a
}

// Stopped says why nobody drives a run that is still to be driven: the process that holds it is
// proved gone. It is "" when it is driven, when it rests, and when nothing is proved from here.
func Stopped(ctx context.Context, s store.Store, r run.Run) (string, error) {
	if !r.State.Live() {
		return "", nil
	}
	self, err := lease.Self(ctx, s)
	if err != nil {
		return "", err
	}
	d, err := claim.Drives(ctx, s, self, r)
	if err != nil || !d.Gone {
		return "", err
	}
	return fmt.Sprintf("process %d is gone", d.PID), nil
}
