package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Modes of a tree that are treated apart.
const (
	GitlinkMode = "160000" // a submodule
	LinkMode    = "120000" // a symbolic link
)

// MaxListing bounds a listing of paths, in bytes.
const MaxListing = 256 << 20

// Change is one path that differs between two commits.
type Change struct {
	Status           byte   // A added, D deleted, M modified, R renamed, C copied, T another type
	OldMode, NewMode string // six octal digits; "000000" where it is not there
	OldPath          string // where it was, "" unless renamed or copied
	Path             string // bytes as in the tree: escape it before it is shown
}

// Submodule reports whether the change puts a submodule there or takes one away.
func (c Change) Submodule() bool { return c.OldMode == GitlinkMode || c.NewMode == GitlinkMode }

// Symlink reports whether the change leaves a symbolic link there.
func (c Change) Symlink() bool { return c.NewMode == LinkMode }

func (p *Plumb) twoCommits(ctx context.Context, base, head string) (string, string, error) {
	b, berr := p.Resolve(ctx, base)
	h, herr := p.Resolve(ctx, head)
	return b.Hash, h.Hash, errors.Join(berr, herr)
}

// Diff returns every path that differs between two commits, with renames found. ErrNoCommit. ErrTooBig.
func (p *Plumb) Diff(ctx context.Context, base, head string) ([]Change, error) {
	from, to, err := p.twoCommits(ctx, base, head)
	if err != nil {
		return nil, err
	}
	args := []string{"diff-tree", "-r", "-z", "--raw", "-M", "--full-index", "--no-ext-diff", "--ignore-submodules=none", from, to, "--"}
	out, err := p.RunBounded(ctx, Command{Args: args, MaxOutput: MaxListing})
	if err != nil {
		return nil, err
	}
	return parseRaw(string(out.Stdout))
}

// Touched returns every path that differs between two commits, given by their full hashes, and every
// path that a commit between them changes, each commit looked at by itself: also what a later one takes
// back. Of a merge it is what differs from all its parents; of a commit without parents it is all that
// it holds. Renames are two changes; a path may come more than once. ErrNoCommit, ErrTooBig.
func (p *Plumb) Touched(ctx context.Context, base, head string) ([]Change, error) {
	if err := errors.Join(checkHash(base), checkHash(head)); err != nil {
		return nil, err
	}
	list, err := p.Run(ctx, Command{Args: []string{"rev-list", head + "^{commit}", "^" + base + "^{commit}", "--"}, MaxOutput: MaxListing})
	if err != nil {
		_, _, missing := p.twoCommits(ctx, base, head)
		return nil, cmp.Or(missing, err)
	}
	// The first line has head compared with base, as if that were its one parent.
	out, err := p.RunBounded(ctx, Command{Args: []string{"diff-tree", "--stdin", "--root", "-c", "-r", "-z", "--raw", "--no-renames", "--full-index",
		"--no-commit-id", "--no-ext-diff", "--ignore-submodules=none"}, Stdin: append([]byte(head+" "+base+"\n"), list.Stdout...), MaxOutput: MaxListing})
	if err != nil {
		return nil, err
	}
	if out.Stderr != "" { // a line that it does not understand is no failure to diff-tree
		return nil, fmt.Errorf("git diff-tree: %s", out.Stderr)
	}
	return parseRaw(string(out.Stdout))
}

// RunBounded is Run for what takes memory by what is in the repository, as diff-tree does, which
// collects all paths that differ before it prints the first: a few trees, each used many times, can
// stand for any number of them. ErrTooBig.
func (p *Plumb) RunBounded(ctx context.Context, c Command) (Output, error) {
	c.bounds = &bounds{file: DefaultMaxPack, memory: maxDiffMemory}
	out, err := p.Run(ctx, c)
	var failed *Error
	if errors.As(err, &failed) && failed.Err == nil && outOfMemory(failed) {
		return out, fmt.Errorf("%w: what differs takes more than %d bytes of memory: %w", ErrTooBig, maxDiffMemory, err)
	}
	return out, err
}

const maxDiffMemory = 256 << 20 // bytes; half a million paths take about so much

// parseRaw reads the raw format with -z of commits with any number of parents: as many colons, then a
// mode and a hash for each parent and for the commit, a status, NUL, path, NUL, and a second path
// where it was renamed or copied.
func parseRaw(text string) ([]Change, error) {
	fields := strings.Split(strings.TrimSuffix(text, "\x00"), "\x00")
	var changes []Change
	for i := 0; i < len(fields) && fields[i] != ""; {
		rest := strings.TrimLeft(fields[i], ":")
		parents, meta := len(fields[i])-len(rest), strings.Fields(rest)
		if parents == 0 || len(meta) != 2*(parents+1)+1 || i+1 >= len(fields) {
			return nil, fmt.Errorf("git diff-tree: a line that is not understood: %q", Escape(fields[i]))
		}
		c := Change{Status: meta[len(meta)-1][0], OldMode: meta[0], NewMode: meta[parents], Path: fields[i+1]}
		i += 2
		if c.Status == 'R' || c.Status == 'C' {
			if i >= len(fields) {
				return nil, errors.New("git diff-tree: a rename without its second path")
			}
			c.OldPath, c.Path = c.Path, fields[i]
			i++
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// Patch returns the difference between two commits for people to read, escaped, cut after max
// bytes of what git wrote. It cannot be applied. ErrNoCommit.
func (p *Plumb) Patch(ctx context.Context, base, head string, max int64) (text string, truncated bool, err error) {
	from, to, err := p.twoCommits(ctx, base, head)
	if err != nil {
		return "", false, err
	}
	out, err := p.Run(ctx, Command{Args: []string{"diff-tree", "-r", "-p", "-M", "--no-color", "--no-ext-diff",
		"--no-textconv", "--ignore-submodules=none", "--src-prefix=a/", "--dst-prefix=b/", from, to, "--"},
		MaxOutput: max, cut: true})
	if err != nil {
		return "", false, err
	}
	return Escape(string(out.Stdout)), out.cut, nil
}

// Merges reports whether head merges into base without a conflict, and the paths that do not. No
// ref, index or work tree is touched. ErrNoCommit; ErrRefused when the two have no common history.
func (p *Plumb) Merges(ctx context.Context, base, head string) (clean bool, conflicts []string, err error) {
	into, from, err := p.twoCommits(ctx, base, head)
	if err != nil {
		return false, nil, err
	}
	out, err := p.Run(ctx, Command{Args: []string{"merge-tree", "--write-tree", "-z", "--name-only",
		"--no-messages", into, from}, MaxOutput: MaxListing})
	if err == nil {
		return true, nil, nil
	}
	var failed *Error
	if !errors.As(err, &failed) || failed.Err != nil {
		return false, nil, err
	}
	if failed.Code != 1 {
		if strings.Contains(failed.Stderr, "unrelated histories") {
			err = fmt.Errorf("%w: %w", ErrRefused, err)
		}
		return false, nil, err
	}
	fields := strings.Split(string(out.Stdout), "\x00")
	for _, name := range fields[1:] { // the first is the tree
		if name != "" {
			conflicts = append(conflicts, name)
		}
	}
	slices.Sort(conflicts)
	return false, slices.Compact(conflicts), nil
}
