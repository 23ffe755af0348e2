package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Plumb reads and writes objects and refs of one repository. It is safe for use by many goroutines.
// Made by Git.At it works on a repository of the operator's, made by Git.Engine on the engine's own.
type Plumb struct {
	git *Git
	dir string   // where git is started
	pre []string // options in front of each subcommand
}

// At returns the plumbing of the operator's repository that dir is in. Its owner may be another
// user: the operator named the path, and no configuration of it is obeyed that runs a program at
// the calls made here, except filters when Status must compare a changed file.
func (g *Git) At(dir string) *Plumb {
	return &Plumb{git: g, dir: dir, pre: []string{"-c", "safe.directory=*"}}
}

// Commit is a commit as it was read.
type Commit struct {
	Hash, Tree string
	Parents    []string
}

// Run runs git in the repository, with what leads it there in front of the arguments. Dir of the
// command is not looked at. Errors as of Git.Run.
func (p *Plumb) Run(ctx context.Context, c Command) (Output, error) {
	c.Dir = p.dir
	c.Args = slices.Concat(p.pre, c.Args)
	return p.git.Run(ctx, c)
}

// object reads one object by name. The name travels on standard input: it cannot be an option.
// ok is false when there is no such object.
func (p *Plumb) object(ctx context.Context, rev string, max int64) (hash, kind string, data []byte, ok bool, err error) {
	if err := checkRev(rev); err != nil {
		return "", "", nil, false, err
	}
	out, err := p.Run(ctx, Command{Args: []string{"cat-file", "--batch"}, Stdin: []byte(rev + "\n"), MaxOutput: max + 128})
	if err != nil {
		return "", "", nil, false, err
	}
	head, rest, _ := bytes.Cut(out.Stdout, []byte("\n"))
	f := strings.Fields(string(head))
	if len(f) != 3 || !ValidHash(f[0]) {
		return "", "", nil, false, nil // "<rev> missing" or "<rev> ambiguous"
	}
	size, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil || int64(len(rest)) != size+1 {
		return "", "", nil, false, fmt.Errorf("git cat-file: answer of the wrong length for %s", Escape(rev))
	}
	if size > max {
		return "", "", nil, false, fmt.Errorf("%w: %s has %d bytes, the bound is %d", ErrTooBig, Escape(rev), size, max)
	}
	return f[0], f[1], rest[:size], true, nil
}

const maxCommit = 4 << 20 // bytes of a commit object

func (p *Plumb) commit(ctx context.Context, rev string) (Commit, string, error) {
	if err := checkRev(rev); err != nil {
		return Commit{}, "", err
	}
	hash, kind, data, ok, err := p.object(ctx, rev+"^{commit}", maxCommit)
	if err != nil {
		return Commit{}, "", err
	}
	if !ok || kind != "commit" {
		return Commit{}, "", fmt.Errorf("%w: %s in %s", ErrNoCommit, Escape(rev), Escape(p.dir))
	}
	head, message, _ := strings.Cut(string(data), "\n\n")
	c := Commit{Hash: hash}
	for line := range strings.SplitSeq(head, "\n") {
		if tree, is := strings.CutPrefix(line, "tree "); is && c.Tree == "" {
			c.Tree = tree
		} else if parent, is := strings.CutPrefix(line, "parent "); is {
			c.Parents = append(c.Parents, parent)
		}
	}
	if !ValidHash(c.Tree) {
		return Commit{}, "", fmt.Errorf("git cat-file: %s names no tree", hash)
	}
	return c, message, nil
}

// Resolve returns the commit that rev stands for; tags are followed. ErrNoCommit.
func (p *Plumb) Resolve(ctx context.Context, rev string) (Commit, error) {
	c, _, err := p.commit(ctx, rev)
	return c, err
}

// Message returns a commit's message as it is stored, and its parents. The message is text from
// outside: escape it before it is shown. ErrNoCommit.
func (p *Plumb) Message(ctx context.Context, hash string) (message string, parents []string, err error) {
	c, message, err := p.commit(ctx, hash)
	return message, c.Parents, err
}

// Blob returns the content of a blob, by hash or as "<commit>:<path>". ErrNoRef when it is not
// there or is no blob, ErrTooBig when it has more than max bytes.
func (p *Plumb) Blob(ctx context.Context, rev string, max int64) ([]byte, error) {
	_, kind, data, ok, err := p.object(ctx, rev, max)
	if errors.Is(err, ErrTooBig) {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrTooBig, Escape(rev), max)
	}
	if err != nil {
		return nil, err
	}
	if !ok || kind != "blob" {
		return nil, fmt.Errorf("%w: no file %s in %s", ErrNoRef, Escape(rev), Escape(p.dir))
	}
	return data, nil
}

// IsAncestor reports whether old is new or is among its ancestors. ErrNoCommit.
func (p *Plumb) IsAncestor(ctx context.Context, old, new string) (bool, error) {
	for _, rev := range []string{old, new} {
		if err := checkRev(rev); err != nil {
			return false, err
		}
	}
	_, err := p.Run(ctx, Command{Args: []string{"merge-base", "--is-ancestor", old, new}})
	var failed *Error
	if !errors.As(err, &failed) {
		return err == nil, err
	}
	if failed.Code == 1 && failed.Err == nil {
		return false, nil
	}
	for _, rev := range []string{old, new} {
		if _, missing := p.Resolve(ctx, rev); errors.Is(missing, ErrNoCommit) {
			return false, missing
		}
	}
	return false, err
}

// Refs returns all refs whose full name begins with prefix ("refs/" and whole parts of a name, for
// example "refs/interlock/claims/"), with the hash each holds.
func (p *Plumb) Refs(ctx context.Context, prefix string) (map[string]string, error) {
	trimmed := strings.TrimSuffix(prefix, "/")
	if trimmed != "refs" {
		if err := checkRef(trimmed); err != nil {
			return nil, err
		}
	}
	out, err := p.Run(ctx, Command{Args: []string{"for-each-ref", "--format=%(objectname) %(refname)", trimmed},
		MaxOutput: 256 << 20})
	if err != nil {
		return nil, err
	}
	refs := map[string]string{}
	for line := range strings.Lines(string(out.Stdout)) {
		hash, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if ValidHash(hash) && strings.HasPrefix(ref, prefix) {
			refs[ref] = hash
		}
	}
	return refs, nil
}

// HeadBranch returns the short name of the branch that HEAD names, whether or not it has a commit.
// ErrDetached.
func (p *Plumb) HeadBranch(ctx context.Context) (string, error) {
	out, err := p.Run(ctx, Command{Args: []string{"symbolic-ref", "--quiet", "HEAD"}})
	var failed *Error
	if errors.As(err, &failed) && failed.Code == 1 && failed.Err == nil {
		return "", fmt.Errorf("%w in %s", ErrDetached, Escape(p.dir))
	}
	if err != nil {
		return "", err
	}
	ref := strings.TrimSuffix(string(out.Stdout), "\n")
	branch, ok := strings.CutPrefix(ref, "refs/heads/")
	if !ok {
		return "", fmt.Errorf("%w: it names %s in %s", ErrDetached, Escape(ref), Escape(p.dir))
	}
	return branch, nil
}

// Status returns the tracked paths of the work tree that differ from HEAD, index or work tree,
// sorted. Untracked files are no difference. It writes nothing, not even a refreshed index.
func (p *Plumb) Status(ctx context.Context) ([]string, error) {
	out, err := p.Run(ctx, Command{Args: []string{"status", "--porcelain=v1", "-z", "--untracked-files=no",
		"--ignore-submodules=untracked", "--no-renames"}, MaxOutput: 64 << 20})
	if err != nil {
		return nil, err
	}
	var dirty []string
	for entry := range strings.SplitSeq(string(out.Stdout), "\x00") {
		if len(entry) > 3 {
			dirty = append(dirty, entry[3:])
		}
	}
	slices.Sort(dirty)
	return dirty, nil
}
