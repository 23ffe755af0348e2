// Package local is the embedded forge: issues and changes kept in refs of a git repository itself,
// so that a repository without any forge can be worked. Each issue and each change is a chain of
// commits that hold one JSON document; every write is a compare-and-set of the ref. It never
// touches the index or a work tree (Accept alone fast-forwards a clean one), runs no hook of the
// repository for its own data, and needs no git identity.
package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"time"

	"interlock/internal/forge"
	"interlock/internal/git"
)

const (
	branchPrefix = "refs/heads/"
	dataPrefix   = "refs/interlock/"
	issuePrefix  = dataPrefix + "issues/"
	changePrefix = dataPrefix + "changes/"
	claimPrefix  = dataPrefix + "claims/"
	headPrefix   = dataPrefix + "heads/" // one per head branch that has an open change

	self = "interlock" // the author of what Interlock itself writes
)

// Forge is the embedded forge of one repository. Its methods may be called by many goroutines,
// and by many processes at once.
type Forge struct {
	git  *git.Git
	repo *git.Plumb
	at   git.Location
	dir  string        // where git is run: the work tree, or the bare repository
	turn chan struct{} // one writer of this process at a time; others are met by compare-and-set
}

var _ forge.Forge = (*Forge)(nil)

// Open opens the forge embedded in the repository that path is in, by whatever path: bare or not,
// a subdirectory, a linked work tree. git.ErrNotRepository.
func Open(ctx context.Context, g *git.Git, path string) (*Forge, error) {
	at, err := g.Locate(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open the forge of %s: %w", git.Escape(path), err)
	}
	dir := at.Worktree
	if dir == "" {
		dir = at.CommonDir
	}
	return &Forge{git: g, repo: g.At(dir), at: at, dir: dir, turn: make(chan struct{}, 1)}, nil
}

// Location says where the repository is.
func (f *Forge) Location() git.Location { return f.at }

// Name implements forge.Forge.
func (f *Forge) Name() string { return "local repository " + git.Escape(f.dir) }

// Remote implements forge.Forge: the repository's common git directory.
func (f *Forge) Remote() string { return f.at.CommonDir }

// Base implements forge.Forge. The default branch is the one that HEAD names in the work tree the
// forge was opened in.
func (f *Forge) Base(ctx context.Context, branch string) (name, hash string, err error) {
	name = branch
	if name == "" {
		if name, err = f.repo.HeadBranch(ctx); errors.Is(err, git.ErrDetached) {
			return "", "", fmt.Errorf("%s: %w; name the base branch, or check one out", f.Name(), forge.ErrDetached)
		} else if err != nil {
			return "", "", err
		}
	}
	if !git.ValidBranch(name) {
		return "", "", fmt.Errorf("branch %q: %w", name, forge.ErrNotFound)
	}
	hash, err = f.ref(ctx, branchPrefix+name)
	if err != nil || hash != "" {
		return name, hash, err
	}
	if branch == "" {
		return "", "", fmt.Errorf("%s: %w on %s; commit something first", f.Name(), forge.ErrEmpty, git.Escape(name))
	}
	return "", "", fmt.Errorf("branch %s: %w", git.Escape(branch), forge.ErrNotFound)
}

// ref returns the commit a ref is at, "" if there is no such ref.
func (f *Forge) ref(ctx context.Context, ref string) (string, error) {
	refs, err := f.repo.Refs(ctx, ref)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", git.Escape(ref), err)
	}
	return refs[ref], nil
}

// operator is the login of the person at this machine.
func operator() string {
	if name := os.Getenv("USER"); name != "" {
		return forge.OneLine(name, maxLogin)
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return forge.OneLine(u.Username, maxLogin)
	}
	return "uid " + strconv.Itoa(os.Getuid())
}

// now has no monotonic part: it is written down and compared after it was read again.
func now() time.Time { return time.Now().UTC().Round(0) }
