package git

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Modes of a tree that are treated apart.
const (
	gitlinkMode = "160000"
	linkMode    = "120000"
)

// Change is one path that differs between two commits.
type Change struct {
	Status           byte   // A added, D deleted, M modified, R renamed, C copied, T another type
	OldMode, NewMode string // six octal digits; "000000" where it is not there
	OldPath          string // where it was, "" unless renamed or copied
	Path             string // bytes as in the tree: escape it before it is shown
}

// Submodule reports whether the change puts a submodule there or takes one away.
func (c Change) Submodule() bool { return c.OldMode == gitlinkMode || c.NewMode == gitlinkMode }

// Symlink reports whether the change leaves a symbolic link there.
func (c Change) Symlink() bool { return c.NewMode == linkMode }

func (p *Plumb) twoCommits(ctx context.Context, base, head string) (string, string, error) {
	b, err := p.Resolve(ctx, base)
	if err != nil {
		return "", "", err
	}
	h, err := p.Resolve(ctx, head)
	return b.Hash, h.Hash, err
}

// Diff returns every path that differs between two commits, with renames found. ErrNoCommit. ErrTooBig.
func (p *Plumb) Diff(ctx context.Context, base, head string) ([]Change, error) {
	from, to, err := p.twoCommits(ctx, base, head)
	if err != nil {
		return nil, err
	}
	out, err := p.diffTree(ctx, nil, "-r", "-z", "--raw", "-M", "--full-index", "--no-ext-diff", "--ignore-submodules=none", from, to, "--")
	if err != nil {
		return nil, err
	}
	return parseRaw(string(out.Stdout))
}

// Steps returns every path that a commit between base and head changes, each commit looked at by
// itself: also what a later one takes back. Of a merge it is what differs from all its parents; of
// a commit without parents it is all that it holds. Renames are two changes. ErrNoCommit,
// ErrTooBig.
func (p *Plumb) Steps(ctx context.Context, base, head string) ([]Change, error) {
	from, to, err := p.twoCommits(ctx, base, head)
	if err != nil {
		return nil, err
	}
	list, err := p.run(ctx, Command{Args: []string{"rev-list", to, "^" + from, "--"}, MaxOutput: maxListing})
	if err != nil || len(list.Stdout) == 0 {
		return nil, err
	}
	out, err := p.diffTree(ctx, list.Stdout, "--stdin", "--root", "-c", "-r", "-z", "--raw", "--no-renames", "--full-index",
		"--no-commit-id", "--no-ext-diff", "--ignore-submodules=none")
	if err != nil {
		return nil, err
	}
	return parseSteps(string(out.Stdout))
}

// diffTree runs diff-tree, which collects all paths that differ before it prints the first: a few
// trees, each used many times, can stand for any number of them. ErrTooBig.
func (p *Plumb) diffTree(ctx context.Context, stdin []byte, args ...string) (Output, error) {
	out, err := p.run(ctx, Command{Args: append([]string{"diff-tree"}, args...), Stdin: stdin, MaxOutput: maxListing,
		bounds: &bounds{file: DefaultMaxPack, memory: maxDiffMemory}})
	var failed *Error
	if errors.As(err, &failed) && failed.Err == nil && outOfMemory(failed) {
		return out, fmt.Errorf("%w: the paths that differ take more than %d bytes of memory: %w", ErrTooBig, maxDiffMemory, err)
	}
	return out, err
}

const maxDiffMemory = 256 << 20 // bytes; half a million paths take about so much

// parseSteps reads the raw format with -z of commits with any number of parents: as many colons,
// then a mode and a hash for each parent and for the commit.
func parseSteps(text string) ([]Change, error) {
	fields := strings.Split(strings.TrimSuffix(text, "\x00"), "\x00")
	var changes []Change
	for i := 0; i < len(fields) && fields[i] != ""; i += 2 {
		rest := strings.TrimLeft(fields[i], ":")
		parents, meta := len(fields[i])-len(rest), strings.Fields(rest)
		if parents == 0 || len(meta) != 2*(parents+1)+1 || i+1 >= len(fields) {
			return nil, fmt.Errorf("git diff-tree: a line that is not understood: %q", Escape(fields[i]))
		}
		changes = append(changes, Change{Status: meta[len(meta)-1][0], OldMode: meta[0], NewMode: meta[parents], Path: fields[i+1]})
	}
	return changes, nil
}

// parseRaw reads the raw format with -z: ":mode mode hash hash status" NUL path NUL [path NUL].
func parseRaw(text string) ([]Change, error) {
	fields := strings.Split(strings.TrimSuffix(text, "\x00"), "\x00")
	var changes []Change
	for i := 0; i < len(fields) && fields[i] != ""; {
		meta := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(meta) != 5 || i+1 >= len(fields) {
			return nil, fmt.Errorf("git diff-tree: a line that is not understood: %q", Escape(fields[i]))
		}
		c := Change{Status: meta[4][0], OldMode: meta[0], NewMode: meta[1], Path: fields[i+1]}
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
	out, err := p.run(ctx, Command{Args: []string{"diff-tree", "-r", "-p", "-M", "--no-color", "--no-ext-diff",
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
	out, err := p.run(ctx, Command{Args: []string{"merge-tree", "--write-tree", "-z", "--name-only",
		"--no-messages", into, from}, MaxOutput: maxListing})
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

// Traits are what a commit needs beside its own objects to be complete in a work tree.
type Traits struct {
	Submodules []string // paths
	LFS        []string // patterns with filter=lfs, with the directory of their file in front
}

const maxAttributes = 1 << 20 // bytes of one .gitattributes; git itself stops at 100 MiB

// Traits finds submodules and patterns of large files kept elsewhere. ErrNoCommit.
func (p *Plumb) Traits(ctx context.Context, commit string) (Traits, error) {
	c, err := p.Resolve(ctx, commit)
	if err != nil {
		return Traits{}, err
	}
	out, err := p.run(ctx, Command{Args: []string{"ls-tree", "-r", "-z", "--full-tree", c.Hash}, MaxOutput: maxListing})
	if err != nil {
		return Traits{}, err
	}
	var t Traits
	macros := map[string]bool{}
	var files []string // hash and path of each attribute file, the root's first
	for entry := range strings.SplitSeq(string(out.Stdout), "\x00") {
		meta, name, _ := strings.Cut(entry, "\t")
		f := strings.Fields(meta) // mode, type, hash
		switch {
		case len(f) != 3:
		case f[0] == gitlinkMode:
			t.Submodules = append(t.Submodules, name)
		case name == attributesFile:
			files = slices.Insert(files, 0, f[2]+name)
		case path.Base(name) == attributesFile && f[0] != linkMode:
			files = append(files, f[2]+name)
		}
	}
	for _, file := range files {
		hash, name := file[:len(zeroHash)], file[len(zeroHash):]
		text, err := p.Blob(ctx, hash, maxAttributes)
		if err != nil {
			return Traits{}, fmt.Errorf("%s: %w", Escape(name), err)
		}
		t.LFS = append(t.LFS, lfsPatterns(path.Dir(name), string(text), macros)...)
	}
	return t, nil
}

const attributesFile = ".gitattributes"

// lfsPatterns finds the patterns of one attribute file that set filter=lfs, by itself or through a
// macro; macros of the root's file are added to macros, others are none.
func lfsPatterns(dir, text string, macros map[string]bool) (patterns []string) {
	for line := range strings.Lines(text) {
		pattern, attributes := splitAttributes(strings.TrimSpace(line))
		if pattern == "" || pattern[0] == '#' {
			continue
		}
		lfs := slices.ContainsFunc(attributes, func(a string) bool { return a == "filter=lfs" || macros[a] })
		macro, isMacro := strings.CutPrefix(pattern, "[attr]")
		switch {
		case !lfs:
		case !isMacro:
			patterns = append(patterns, path.Join(dir, pattern))
		case dir == ".":
			macros[macro] = true
		}
	}
	return patterns
}

// splitAttributes splits a line into its pattern, which may be quoted as in C, and the rest.
func splitAttributes(line string) (string, []string) {
	if strings.HasPrefix(line, `"`) {
		for i := 1; i < len(line); i++ {
			switch line[i] {
			case '\\':
				i++
			case '"':
				return line[:i+1], strings.Fields(line[i+1:])
			}
		}
	}
	f := strings.Fields(line)
	if len(f) == 0 {
		return "", nil
	}
	return f[0], f[1:]
}
