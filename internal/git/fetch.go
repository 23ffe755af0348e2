package git

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
)

// remoteProgram is the shell command for the other side of a local transport. The owner of the
// operator's repository may be another user than ours, which git accepts only when told on that
// side as well.
func (g *Git) remoteProgram(subcommand string) string {
	return shellQuote(g.program) + " -c safe.directory='*' -c core.fsync=committed,loose-object" +
		" -c receive.autogc=false " + subcommand
}

// LsRemote returns the refs of a remote with the hash each holds: those whose full name is one of
// patterns, or begins with one that ends in "/" or "/*"; all refs without patterns. A remote that
// is not there is ErrRefused.
func (g *Git) LsRemote(ctx context.Context, remote string, patterns ...string) (map[string]string, error) {
	url, err := remoteURL(remote)
	if err != nil {
		return nil, err
	}
	args := []string{"--git-dir=/nonexistent", "ls-remote", "--quiet", "--refs",
		"--upload-pack=" + g.remoteProgram("upload-pack"), "--", url}
	for _, pattern := range patterns {
		name := strings.TrimSuffix(strings.TrimSuffix(pattern, "*"), "/")
		if err := checkRef(name); err != nil && name != "refs" {
			return nil, err
		}
		if strings.HasSuffix(pattern, "/") {
			pattern += "*"
		}
		args = append(args, pattern)
	}
	out, err := g.Run(ctx, Command{Args: args, MaxOutput: 256 << 20})
	if err != nil {
		return nil, remoteFailure(err)
	}
	refs := map[string]string{}
	for line := range strings.Lines(string(out.Stdout)) {
		hash, ref, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if ok && ValidHash(hash) && wanted(ref, patterns) {
			refs[ref] = hash
		}
	}
	return refs, nil
}

// wanted is needed because ls-remote matches the end of a name too.
func wanted(ref string, patterns []string) bool {
	for _, pattern := range patterns {
		prefix := strings.TrimSuffix(pattern, "*")
		if ref == pattern || strings.HasSuffix(prefix, "/") && strings.HasPrefix(ref, prefix) {
			return true
		}
	}
	return len(patterns) == 0
}

// remoteFailure gives the failure of a fetch or of ls-remote its class.
func remoteFailure(err error) error {
	var failed *Error
	switch {
	case !errors.As(err, &failed) || failed.Err != nil:
		return err
	case locked(err) != nil:
		return locked(err)
	case strings.Contains(failed.Stderr, "couldn't find remote ref"):
		return fmt.Errorf("%w: %w", ErrNoRef, err)
	}
	return fmt.Errorf("%w: %w", ErrRefused, err)
}

// FetchBranch fetches one branch of a remote into a ref of the engine's own, which is created or
// moved to where the branch is, and returns the commit. ErrNoRef when the remote has no such
// branch, ErrRefused when it is shallow or corrupt.
func (r *Repo) FetchBranch(ctx context.Context, remote, branch, into string) (Commit, error) {
	if !ValidBranch(branch) {
		return Commit{}, fmt.Errorf("%w: %q cannot be a branch", ErrInvalid, Escape(branch))
	}
	return r.FetchRef(ctx, remote, "refs/heads/"+branch, into)
}

// FetchRef fetches one ref of a remote, by its full name, as FetchBranch does.
func (r *Repo) FetchRef(ctx context.Context, remote, ref, into string) (Commit, error) {
	url, err := remoteURL(remote)
	if err != nil {
		return Commit{}, err
	}
	for _, name := range []string{ref, into} {
		if err := checkRef(name); err != nil {
			return Commit{}, err
		}
	}
	unlock, err := r.turn(ctx)
	if err != nil {
		return Commit{}, err
	}
	defer unlock()
	fresh := freshRef("fetch")
	out, err := r.Run(ctx, Command{Args: fetchArgs(r.git.remoteProgram("upload-pack"), url, ref, fresh)})
	if err != nil {
		return Commit{}, remoteFailure(err)
	}
	defer r.drop(ctx, fresh)
	c, err := r.Resolve(ctx, fresh)
	if errors.Is(err, ErrNoCommit) && strings.Contains(out.Stderr, "shallow") {
		return Commit{}, fmt.Errorf("%w: %s is a shallow clone, which cannot be fetched from whole; run git fetch --unshallow there: %s",
			ErrRefused, Escape(remote), out.Stderr)
	}
	if errors.Is(err, ErrNoCommit) {
		return Commit{}, noRef(ref, remote, out.Stderr)
	}
	if err != nil {
		return Commit{}, err
	}
	return c, r.Pin(ctx, into, c.Hash)
}

// FetchObjects brings what refs of another repository are at, with all their history, into this one
// and makes no ref for it: here nothing is ever collected. ErrNoRef when one is not there.
func (r *Repo) FetchObjects(ctx context.Context, remote string, refs ...string) error {
	url, err := remoteURL(remote)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		if err := checkRef(ref); err != nil {
			return err
		}
	}
	if len(refs) == 0 {
		return nil
	}
	unlock, err := r.turn(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	_, err = r.Run(ctx, Command{Stdin: []byte(strings.Join(refs, "\n") + "\n"), Args: []string{"fetch", "--quiet", "--no-tags",
		"--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance", "--no-prune", "--refmap=",
		"--upload-pack=" + r.git.remoteProgram("upload-pack"), "--stdin", "--", url}})
	var failed *Error
	if errors.As(err, &failed) && strings.Contains(failed.Stderr, "not our ref") { // it moved between list and fetch
		return fmt.Errorf("%w: %w", ErrNoRef, err)
	}
	if err != nil {
		return remoteFailure(err)
	}
	return nil
}

// TakeObjects copies commits with all their history out of an engine's repository, as far as no ref
// here has it. No ref is made, and none is looked at but by name: it works where a ref is broken,
// which no fetch does.
func (p *Plumb) TakeObjects(ctx context.Context, from *Repo, commits ...string) error {
	have, err := p.Refs(ctx, "refs/")
	if err != nil {
		return err
	}
	var ask strings.Builder
	for _, hash := range commits {
		if err := checkHash(hash); err != nil {
			return err
		}
		ask.WriteString(hash + "\n")
	}
	for _, hash := range have {
		if _, err := p.Resolve(ctx, hash); err == nil { // what a broken ref names is not here
			ask.WriteString("^" + hash + "\n")
		}
	}
	list, err := from.Run(ctx, Command{Args: []string{"rev-list", "--objects", "--ignore-missing", "--stdin"}, Stdin: []byte(ask.String()), MaxOutput: MaxListing})
	if err != nil || len(list.Stdout) == 0 {
		return err
	}
	pack, err := from.Run(ctx, Command{Args: []string{"pack-objects", "--quiet", "--stdout"}, Stdin: list.Stdout, MaxOutput: DefaultMaxPack})
	if err != nil {
		return err
	}
	_, err = p.Run(ctx, Command{Args: []string{"unpack-objects", "-q", "--strict"}, Stdin: pack.Stdout})
	return err
}

// noRef is the error of a fetch that ended well and left no commit: git does so for a shallow
// repository, and for what is no commit.
func noRef(ref, remote, said string) error {
	if said == "" {
		said = "the other repository is shallow, or this is no commit"
	}
	return fmt.Errorf("%w: the fetch of %s from %s left no commit: %s", ErrNoRef, Escape(ref), Escape(remote), said)
}

func fetchArgs(uploadPack, url, from, into string) []string {
	return []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
		"--no-auto-maintenance", "--no-prune", "--upload-pack=" + uploadPack, "--",
		url, from + ":" + into}
}

// freshRef is a name that no other fetch uses.
func freshRef(kind string) string {
	return fmt.Sprintf("refs/interlock/%s/%d-%s", kind, os.Getpid(), rand.Text())
}

// drop deletes a ref of our own that has served; what is left of it after a crash does no harm.
func (r *Repo) drop(ctx context.Context, ref string) {
	_, _ = r.Run(context.WithoutCancel(ctx), Command{Args: []string{"update-ref", "--no-deref", "-d", ref}})
}
