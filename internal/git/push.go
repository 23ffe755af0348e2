package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// PushSpec is a push of refs to a remote, all or nothing.
type PushSpec struct {
	Remote  string // absolute path or file URL
	Updates []Update
	Timeout time.Duration // 0: DefaultTimeout
}

// PushReport is what the other side said.
type PushReport struct {
	Remote string // what its hooks printed, escaped and capped
}

// Push moves refs of a remote from where each Update expects them, in one atomic transaction when
// there are several; it moves whatever the ancestry of Old and New. The server-side hooks of the
// remote run. ErrStaleRef: one was elsewhere, nothing was moved. ErrRefused: a hook or a
// permission, nothing was moved. ErrLocked: a lock file of the remote, nothing was moved.
// ErrUnknown: read back. An update whose New is its Old is ErrInvalid: git does not send it, so
// that it would prove nothing.
func (r *Repo) Push(ctx context.Context, spec PushSpec) (PushReport, error) {
	args, err := r.pushArgs(ctx, spec)
	if err != nil {
		return PushReport{}, err
	}
	var report PushReport
	err = retryLocked(ctx, func() error {
		out, err := r.Run(ctx, Command{Args: args, Timeout: spec.Timeout})
		report.Remote = hookText(out.Stderr)
		answers := pushAnswers(string(out.Stdout))
		if err = judge(spec, answers, out, err); err != nil && errors.Is(err, errUpdateFailed) {
			return r.explain(ctx, spec, out, err)
		}
		return err
	})
	return report, err
}

func (r *Repo) pushArgs(ctx context.Context, spec PushSpec) ([]string, error) {
	if err := checkUpdates(spec.Updates); err != nil {
		return nil, err
	}
	url, err := remoteURL(spec.Remote)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(remotePath(spec.Remote)); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%w: there is no repository at %s", ErrRefused, Escape(spec.Remote))
	}
	args := []string{"push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags",
		"--recurse-submodules=no", "--receive-pack=" + r.git.remoteProgram("receive-pack")}
	if len(spec.Updates) > 1 {
		args = append(args, "--atomic")
	}
	var refspecs []string
	for _, u := range spec.Updates {
		if u.New == u.Old {
			return nil, fmt.Errorf("%w: a push of %s to where it is proves nothing", ErrInvalid, u.Ref)
		}
		if u.New != "" {
			if _, err := r.Resolve(ctx, u.New); err != nil {
				return nil, err
			}
		}
		args = append(args, "--force-with-lease="+u.Ref+":"+u.Old)
		refspecs = append(refspecs, u.New+":"+u.Ref)
	}
	return append(append(args, "--", url), refspecs...), nil
}

// answer is what the other side, or git itself, said of one ref.
type answer struct {
	flag byte   // ' ', '+', '-', '*': moved; '=': was there; '!': refused
	text string // summary and reason
}

// pushAnswers reads the lines of --porcelain: flag, TAB, from:to, TAB, summary (reason).
func pushAnswers(out string) map[string]answer {
	answers := map[string]answer{}
	for line := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		if len(f) != 3 || len(f[0]) != 1 {
			continue
		}
		_, ref, ok := strings.Cut(f[1], ":")
		if ok {
			answers[ref] = answer{flag: f[0][0], text: f[2]}
		}
	}
	return answers
}

// errUpdateFailed marks an answer that says only that the other side could not move the ref.
var errUpdateFailed = errors.New("the ref could not be moved")

// tally counts the refs that were moved, and those that were at the new commit already; unclear is
// why an answer says nothing, "" if each does.
func tally(updates []Update, answers map[string]answer) (moved, there int, refusals []error, unclear string) {
	for _, u := range updates {
		a, ok := answers[u.Ref]
		switch {
		case !ok:
			return 0, 0, nil, "no answer for " + u.Ref
		case a.flag == '=':
			there++
		case a.flag == '!':
			refusals = append(refusals, refusal(u.Ref, a.text))
		case strings.IndexByte(" +-*", a.flag) >= 0:
			moved++
		default:
			return 0, 0, nil, "an answer that is not understood for " + u.Ref
		}
	}
	return moved, there, refusals, ""
}

// judge turns the answers of a push into one error, nil when every ref was moved.
func judge(spec PushSpec, answers map[string]answer, out Output, err error) error {
	unknown := func(why string) error {
		if err == nil {
			err = errors.New(why)
		}
		return fmt.Errorf("push to %s: %w: %w", Escape(spec.Remote), ErrUnknown, err)
	}
	if code := exitCode(err); err != nil && code <= 0 {
		return unknown("") // ended by us or by a signal, or never started
	}
	if err != nil && len(answers) == 0 && nothingSent.MatchString(ownText(out.Stderr)) {
		return fmt.Errorf("push to %s: %w: %w", Escape(spec.Remote), ErrRefused, err)
	}
	moved, there, refusals, unclear := tally(spec.Updates, answers)
	switch {
	case unclear != "":
		return unknown(unclear)
	case moved == len(spec.Updates) && err == nil:
		return nil
	case moved > 0:
		return unknown("some refs were moved, others were not")
	case there > 0 && len(refusals) == 0:
		return fmt.Errorf("push to %s: %w: it is at the new commit already", Escape(spec.Remote), ErrStaleRef)
	}
	return fmt.Errorf("push to %s: %w%s", Escape(spec.Remote), gravest(refusals), said(out.Stderr))
}

// ownText is standard error without what the other side printed, which could say anything.
func ownText(stderr string) string {
	var b strings.Builder
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(line, "remote:") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// nothingSent are failures before any update leaves our side.
var nothingSent = regexp.MustCompile(`does not appear to be a git repository|does not support --atomic push|dubious ownership|not our ref`)

func exitCode(err error) int {
	var failed *Error
	if errors.As(err, &failed) && failed.Err == nil {
		return failed.Code
	}
	return -1
}

func said(stderr string) string {
	if stderr == "" {
		return ""
	}
	return ": " + tidy(stderr, shownText)
}

// refusal gives one refused ref its class. Those that only follow another ref's refusal are nil.
func refusal(ref, text string) error {
	text = Escape(text)
	switch {
	case strings.Contains(text, "atomic push fail") || strings.Contains(text, "atomic transaction failed"):
		return nil
	case strings.Contains(text, "stale info") || strings.Contains(text, "fetch first") ||
		strings.Contains(text, "non-fast-forward") || strings.Contains(text, "incorrect old value"):
		return fmt.Errorf("%w: %s: %s", ErrStaleRef, ref, text)
	case strings.Contains(text, "failed to report status") || strings.Contains(text, "[remote failure]"):
		return fmt.Errorf("%w: %s: %s", ErrUnknown, ref, text)
	case strings.Contains(text, "failed to update ref") || strings.Contains(text, "failed to lock") ||
		strings.Contains(text, "failed to delete") || strings.Contains(text, "cannot lock ref") ||
		strings.Contains(text, "reference already exists"):
		return fmt.Errorf("%w: %s: %s", errUpdateFailed, ref, text)
	}
	return fmt.Errorf("%w: %s: %s", ErrRefused, ref, text)
}

// gravest chooses the one refusal that decides: what is unknown before what is refused before what
// is stale.
func gravest(refusals []error) error {
	for _, class := range []error{ErrUnknown, ErrRefused, ErrStaleRef, errUpdateFailed} {
		for _, err := range refusals {
			if errors.Is(err, class) {
				return err
			}
		}
	}
	return errUpdateFailed // an atomic transaction failed and no ref says why
}

// explain finds out why the other side could not move a ref: it was moved by somebody else in the
// same moment, a lock file is in the way, or it cannot write. Nothing was moved by us.
func (r *Repo) explain(ctx context.Context, spec PushSpec, out Output, cause error) error {
	if staleTexts.MatchString(out.Stderr) {
		return fmt.Errorf("%w: %w", ErrStaleRef, cause)
	}
	if lock := locked(&Error{Op: "push", Stderr: out.Stderr}); lock != nil {
		return lock
	}
	refs := make([]string, len(spec.Updates))
	for i, u := range spec.Updates {
		refs[i] = u.Ref
	}
	now, err := r.git.LsRemote(ctx, spec.Remote, refs...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, cause)
	}
	for _, u := range spec.Updates {
		if now[u.Ref] != u.Old {
			return fmt.Errorf("%w: %w", ErrStaleRef, cause)
		}
	}
	return fmt.Errorf("%w: %w", ErrRefused, cause)
}

// hookText takes the lines of the other side out of standard error.
func hookText(stderr string) string {
	var b strings.Builder
	for line := range strings.Lines(stderr) {
		if text, ok := strings.CutPrefix(line, "remote: "); ok {
			b.WriteString(text)
		}
	}
	return tidy(b.String(), shownText)
}
