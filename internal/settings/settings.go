// Package settings finds the configuration files that hold for a repository, checks them and
// writes new ones. What a value means is policy's; here nothing is ever read of a work tree but to
// check it or to propose from it.
package settings

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"interlock/internal/forge"
	"interlock/internal/git"
	"interlock/internal/policy"
	"interlock/internal/text"
)

// Own is where the operator's file is.
type Own struct {
	Path  string // "" where no place for it is known
	Typed bool   // it was named, so it has to be there
	Home  string // for paths that begin with ~/
}

// Read returns the operator's file, an empty one where there is none. policy.Problems,
// policy.ErrUnsafe.
func (o Own) Read() (*policy.File, error) {
	if o.Path == "" {
		return &policy.File{}, nil
	}
	f, err := policy.ReadOperator(o.Path)
	if errors.Is(err, fs.ErrNotExist) && !o.Typed {
		return &policy.File{}, nil
	}
	return f, err
}

// Repository is the repository that settings are wanted for.
type Repository struct {
	Git   *git.Git
	Forge forge.Forge
	At    git.Location
}

// Settle reads what holds for a repository and decides each setting.
func Settle(ctx context.Context, own Own, r Repository, typed policy.Values) (*policy.Settings, error) {
	op, err := own.Read()
	if err != nil {
		return nil, err
	}
	l := policy.Layers{Typed: typed, General: op.Values, Here: op.Section(own.Home, r.leads)}
	file, err := r.baseFile(ctx, policy.Settle(l).Text("base")) // the repository's own word on the base comes with its file
	if err != nil {
		return nil, err
	}
	if file != nil {
		l.Repository = file.Values
	}
	return policy.Settle(l), nil
}

// leads reports whether a path is that of the repository: its work tree or its git directory.
func (r Repository) leads(path string) bool {
	for _, pair := range [][2]string{{path, r.At.Worktree}, {path, r.At.CommonDir}, {filepath.Join(path, ".git"), r.At.CommonDir}} {
		x, err1 := os.Stat(pair[0])
		y, err2 := os.Stat(pair[1])
		if err1 == nil && err2 == nil && os.SameFile(x, y) {
			return true
		}
	}
	return false
}

// baseFile reads the repository's file from a commit of its base branch, nil where there is none.
// The file of the branch that is checked out may name another branch; then that one's counts, and
// its word on the base does not.
func (r Repository) baseFile(ctx context.Context, branch string) (*policy.File, error) {
	file, name, err := r.fileOf(ctx, branch)
	if err != nil || file == nil || branch != "" {
		return file, err
	}
	base, ok := file.Values["base"]
	if !ok || base.Value == name {
		return file, nil
	}
	there, found, err := r.fileOf(ctx, base.Value.(string))
	if err != nil {
		return nil, err
	}
	switch {
	case there == nil && found == "": // no such branch: the engine says so
		return file, nil
	case there == nil:
		return &policy.File{Values: policy.Values{"base": base}}, nil
	}
	there.Values["base"] = base
	return there, nil
}

// fileOf reads the repository's file of one branch, "" being the one that is checked out, and says
// which branch that is: "" where it cannot be found.
func (r Repository) fileOf(ctx context.Context, branch string) (*policy.File, string, error) {
	name, hash, err := r.Forge.Base(ctx, branch)
	for _, unknown := range []error{forge.ErrEmpty, forge.ErrDetached, forge.ErrNotFound, forge.ErrInvalid} {
		if errors.Is(err, unknown) {
			return nil, "", nil
		}
	}
	if err != nil {
		return nil, "", err
	}
	shown := name + ":" + policy.Path
	data, err := r.Git.At(r.At.CommonDir).Blob(ctx, hash+":"+policy.Path, policy.MaxBytes)
	switch {
	case errors.Is(err, git.ErrNoRef):
		return nil, name, nil
	case errors.Is(err, git.ErrTooBig):
		data = make([]byte, policy.MaxBytes+1)
	case err != nil:
		return nil, name, fmt.Errorf("read %s: %w", text.Quote(shown), err)
	}
	file, err := policy.Parse(shown, policy.Repository, data)
	return file, name, err
}

// Uncommitted says that the file in the work tree is not the one that counts, "" where it is, or
// where there is none. branch is the base, "" the one that is checked out.
func (r Repository) Uncommitted(ctx context.Context, branch string) (said string, err error) {
	if r.At.Worktree == "" {
		return "", nil
	}
	path := filepath.Join(r.At.Worktree, policy.Path)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	name, hash, err := r.Forge.Base(ctx, branch)
	if err != nil {
		return fmt.Sprintf("%s does not count: there is no commit of a base branch that has it", path), nil
	}
	there, err := r.Git.At(r.At.CommonDir).Blob(ctx, hash+":"+policy.Path, policy.MaxBytes)
	switch {
	case errors.Is(err, git.ErrNoRef):
		return fmt.Sprintf("%s does not count: it is not committed on %s", path, name), nil
	case err != nil && !errors.Is(err, git.ErrTooBig):
		return "", err
	case string(there) != string(data):
		return fmt.Sprintf("%s does not count as it is: %s has another version of it, and that one counts", path, name), nil
	}
	return "", nil
}
