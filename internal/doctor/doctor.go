// Package doctor says whether this machine is fit for unattended work, what is missing, and what
// cannot be promised even when nothing is. It tries things; it never mends or installs any.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"interlock/internal/git"
	"interlock/internal/sandbox"
	"interlock/internal/text"
)

// The marks of a finding.
const (
	OK      = "ok"
	Weaker  = "weaker"  // it works, with less than there could be
	Missing = "missing" // not fit until the remedy is done
	Wrong   = "wrong"   // it is there with mistakes: not fit either
)

// ErrNotTried says of the state directory that the configuration, which may name it, cannot be read.
var ErrNotTried = errors.New("not tried: the configuration, which may name it, has to be mended first")

// Finding is one thing that was tried.
type Finding struct {
	What   string `json:"what"`
	Mark   string `json:"mark"`
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"`
}

// Report is all that was found.
type Report struct {
	Fit       bool       `json:"fit"` // for unattended work, which is at sandbox level full
	Findings  []Finding  `json:"findings"`
	Residuals []Residual `json:"residuals"`

	Gaps []sandbox.Gap `json:"landlock_gaps"` // what sandbox level landlock does not stop on this kernel
}

// Examine tries everything. state opens the state directory and returns what is to be said of it;
// also are findings of the caller, about what is the operator's own.
func Examine(ctx context.Context, state func(context.Context) (found, warning string, err error), also ...Finding) Report {
	facts := sandbox.Inspect(ctx)
	r := Report{Fit: true, Findings: []Finding{platform(facts), gitProgram(ctx), stateDirectory(ctx, state)}}
	r.Findings = append(append(r.Findings, also...), confinement(facts)...)
	for _, f := range r.Findings {
		r.Fit = r.Fit && f.Mark != Missing && f.Mark != Wrong
	}
	r.Residuals, r.Gaps = residuals(facts), sandbox.GapsAt(facts.Landlock)
	return r
}

// platform names the platform; whether its kernel is new enough is judged with the sandbox.
func platform(f sandbox.Facts) Finding {
	found := Finding{What: "platform", Mark: OK, Found: fmt.Sprintf("%s/%s, kernel %s", runtime.GOOS, runtime.GOARCH, f.Kernel)}
	if runtime.GOOS != "linux" {
		found.Mark, found.Remedy = Missing, "run Interlock on Linux"
	}
	return found
}

func gitProgram(ctx context.Context) Finding {
	g, err := git.Find(ctx)
	if err != nil {
		return Finding{What: "git", Mark: Missing, Found: err.Error(), Remedy: "install a git with the security fixes of its line, for example: apt-get install git"}
	}
	return Finding{What: "git", Mark: OK, Found: g.Version()}
}

func stateDirectory(ctx context.Context, state func(context.Context) (string, string, error)) Finding {
	found, warning, err := state(ctx)
	switch {
	case errors.Is(err, ErrNotTried):
		return Finding{What: "state directory", Mark: Missing, Found: err.Error()}
	case err != nil:
		return Finding{What: "state directory", Mark: Missing, Found: err.Error(), Remedy: "name a directory of yours on a local disk: interlock --state-dir DIR doctor"}
	case warning != "":
		return Finding{What: "state directory", Mark: Weaker, Found: warning}
	}
	return Finding{What: "state directory", Mark: OK, Found: found}
}

// confinement says what the sandbox stands on, and whether level full can be had.
func confinement(f sandbox.Facts) []Finding {
	all := []Finding{
		{What: "bubblewrap", Mark: OK, Found: strings.TrimSpace(f.Bwrap + " " + f.BwrapVersion)},
		{What: "user namespaces", Mark: OK, Found: "bubblewrap could start a program in its own"},
		{What: "Landlock", Mark: OK, Found: fmt.Sprintf("ABI %d", f.Landlock)},
		{What: "cgroup", Mark: OK, Found: f.Cgroup},
		{What: "seccomp", Mark: OK, Found: "system calls can be filtered"},
		limit("task limit", f.Tasks, f.Unheld(sandbox.Limits{Tasks: 1})),
		limit("memory limit", f.Memory, f.Unheld(sandbox.Limits{Memory: 1})),
		landlock(f),
		{What: "sandbox level full", Mark: OK, Found: "can be had"},
	}
	last := len(all) - 1
	if f.Bwrap == "" {
		all[0].Mark, all[0].Found, all[0].Remedy = Missing, "not installed", "apt-get install bubblewrap"
		all[1].Mark, all[1].Found = Missing, "not tried: there is no bubblewrap"
	} else if f.UserNS != nil {
		all[1].Mark, all[1].Found = Missing, f.UserNS.Error()
	}
	if f.Landlock == 0 {
		all[2].Mark, all[2].Found = Missing, "the kernel has none, or it is not active"
	}
	if f.Cgroup == "" {
		all[3].Mark, all[3].Found = Weaker, "none of its own ("+f.CgroupReason+"); the pid namespace ends the trees instead"
	}
	if f.Seccomp != nil {
		all[4].Mark, all[4].Found = Missing, f.Seccomp.Error()
	}
	var unfit *sandbox.UnfitError
	if err := f.Check(sandbox.Full); errors.As(err, &unfit) {
		all[last] = Finding{"sandbox level full", Missing, unfit.Reason, unfit.Remedy}
	} else if err != nil {
		all[last] = Finding{"sandbox level full", Missing, err.Error(), ""}
	} else { // level full can do without what is only weaker
		for i := range all {
			if all[i].Mark == Missing {
				all[i].Mark = Weaker
			}
		}
	}
	return all
}

// limit is where a limit of sessions is held.
func limit(what, dir, unheld string) Finding {
	if dir != "" {
		return Finding{What: what, Mark: OK, Found: dir}
	}
	found, remedy, _ := strings.Cut(unheld, "; start it")
	return Finding{What: what, Mark: Weaker, Found: found, Remedy: "start it" + remedy}
}

// landlock says whether the level of that name can be had. Unattended work does not need it.
func landlock(f sandbox.Facts) Finding {
	var unfit *sandbox.UnfitError
	if err := f.Check(sandbox.Landlock); errors.As(err, &unfit) {
		return Finding{"sandbox landlock", Weaker, "level landlock cannot be had: " + unfit.Reason, unfit.Remedy}
	}
	return Finding{What: "sandbox landlock", Mark: OK, Found: "can be had, with the gaps below"}
}

// Text is the report for people.
func (r Report) Text() string {
	var b strings.Builder
	if r.Fit {
		b.WriteString("fit for unattended work\n\n")
	} else {
		b.WriteString("NOT fit for unattended work; do what the remedies say and ask again: interlock doctor\n\n")
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%-8s %-19s %s\n", f.Mark, f.What, text.Line(f.Found))
		if f.Remedy != "" {
			fmt.Fprintf(&b, "%-8s %-19s remedy: %s\n", "", "", text.Line(f.Remedy))
		}
	}
	b.WriteString("\nwhat remains, on this machine at this moment:\n")
	for _, x := range r.Residuals {
		fmt.Fprintf(&b, "- %s\n  bound: %s; noticed by: %s\n", x.What, x.Bound, x.Tripwire)
	}
	b.WriteString("\nsandbox level landlock, where it is asked for by that word, does not stop here:\n")
	for _, g := range r.Gaps {
		fmt.Fprintf(&b, "- %s\n  bound: %s\n", g.What, g.Bound)
	}
	return b.String()
}
