package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// WorkspaceSpec is a private clone to be made.
type WorkspaceSpec struct {
	Dir    string // absolute; it must not be there, or be empty
	Commit string // full hash of a commit of the engine's repository
	Branch string // short name of the branch that is checked out, "" for a detached HEAD
	// Objects is where the engine's objects are seen by those who will use the workspace, "" for
	// Repo.Objects. It need not be there now.
	Objects string
}

// workspaceConfig is written into a workspace: files exactly as they are in the commit and the
// repository's own attributes, whatever machine this is, and no collection in the background.
var workspaceConfig = [][2]string{
	{"core.autocrlf", "false"},
	{"core.eol", "lf"},
	{"gc.auto", "0"},
	{"maintenance.auto", "false"},
}

// Workspace makes a private clone that borrows the engine's objects: mode 0700, its branch checked
// out at the commit, no remote, no hook, no filter program. Nothing of the repository's content is
// executed; filters that its attributes name have no driver here. Dir is there only when it is
// whole: it is made under the name Dir+".partial" and renamed; what a killed call left under that
// name is removed by the next. ErrNoCommit, ErrInvalid when Dir holds something.
func (r *Repo) Workspace(ctx context.Context, spec WorkspaceSpec) error {
	if err := spec.check(); err != nil {
		return err
	}
	// It only reads the repository, so that it need not wait for other workspaces or for fetches.
	unlock, err := r.importing(ctx, syscall.LOCK_SH)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := r.Resolve(ctx, spec.Commit); err != nil {
		return err
	}
	free, err := reserve(ctx, spec.Dir)
	if err != nil {
		return fmt.Errorf("workspace %s: %w", Escape(spec.Dir), err)
	}
	defer free()
	partial := spec.Dir + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return fmt.Errorf("workspace %s: %w", Escape(spec.Dir), err)
	}
	if err := r.fill(ctx, spec, partial); err != nil {
		return errors.Join(fmt.Errorf("workspace %s: %w", Escape(spec.Dir), err), os.RemoveAll(partial))
	}
	// os.Rename refuses a directory as target, the system takes an empty one.
	if err := syscall.Rename(partial, spec.Dir); err != nil {
		return fmt.Errorf("workspace %s: rename: %w", Escape(spec.Dir), err)
	}
	return nil
}

// reserve makes the directory of a workspace and keeps every other call from making one there. Who had
// to wait finds what was made meanwhile: then it is not empty.
func reserve(ctx context.Context, dir string) (free func(), err error) {
	if err := emptyDir(dir); err != nil {
		return nil, err
	}
	if free, err = flock(ctx, dir, syscall.LOCK_EX); err == nil {
		if err = emptyDir(dir); err != nil {
			free()
		}
	}
	return free, err
}

func (s WorkspaceSpec) check() error {
	if !filepath.IsAbs(s.Dir) {
		return fmt.Errorf("%w: workspace %q is not an absolute path", ErrInvalid, Escape(s.Dir))
	}
	if s.Branch != "" && !ValidBranch(s.Branch) {
		return fmt.Errorf("%w: %q cannot be a branch", ErrInvalid, Escape(s.Branch))
	}
	return checkHash(s.Commit)
}

func emptyDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%w: it is not empty", ErrInvalid)
	}
	return os.Chmod(dir, 0o700)
}

func (r *Repo) fill(ctx context.Context, spec WorkspaceSpec, dir string) error {
	if err := emptyDir(dir); err != nil {
		return err
	}
	gitDir := filepath.Join(dir, ".git")
	if _, err := r.git.Run(ctx, Command{Args: []string{"init", "--quiet", "--template=",
		"--initial-branch=interlock", "--object-format=sha1", "--", dir}}); err != nil {
		return err
	}
	if err := borrow(gitDir, r.Objects()); err != nil {
		return err
	}
	for _, kv := range workspaceConfig {
		if err := r.in(ctx, dir, "config", kv[0], kv[1]); err != nil {
			return err
		}
	}
	var err error
	if spec.Branch == "" {
		err = r.in(ctx, dir, "update-ref", "--no-deref", "HEAD", spec.Commit)
	} else if err = r.in(ctx, dir, "symbolic-ref", "HEAD", "refs/heads/"+spec.Branch); err == nil {
		err = r.in(ctx, dir, "update-ref", "HEAD", spec.Commit)
	}
	if err != nil {
		return err
	}
	if err := r.in(ctx, dir, "read-tree", "--reset", "-u", spec.Commit); err != nil {
		return err
	}
	return borrow(gitDir, cmp.Or(spec.Objects, r.Objects()))
}

// Beside makes a bare git directory with index, configuration and objects of its own, which borrows
// the objects of another, and returns its plumbing for a work tree that is not its own. The work
// tree's .git is never opened as a repository, so no filter, hook or monitor of it runs. Nothing in
// it outlives a power loss. All paths are absolute; gitDir is not there, or empty: ErrInvalid.
func (g *Git) Beside(ctx context.Context, workTree, gitDir, branch, objects string) (*Plumb, error) {
	for _, path := range []string{gitDir, workTree, objects} {
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("%w: %q is not an absolute path", ErrInvalid, Escape(path))
		}
	}
	if err := emptyDir(gitDir); err != nil {
		return nil, err
	}
	_, err := g.Run(ctx, Command{Args: []string{"init", "--quiet", "--bare", "--template=",
		"--initial-branch=" + branch, "--object-format=sha1", "--", gitDir}})
	if err != nil {
		return nil, err
	}
	pre := []string{"--git-dir=" + gitDir, "--work-tree=" + workTree, "-c", "core.fsync=none"}
	return &Plumb{git: g, dir: workTree, pre: pre}, borrow(gitDir, objects)
}

// in runs git in a directory that is being made here and that nobody else has seen yet.
func (r *Repo) in(ctx context.Context, dir string, args ...string) error {
	pre := []string{"--git-dir=" + filepath.Join(dir, ".git"), "--work-tree=" + dir}
	_, err := r.git.Run(ctx, Command{Dir: dir, Args: append(pre, args...)})
	return err
}

// borrow makes objects the one place that a git directory takes objects from beside its own.
func borrow(gitDir, objects string) error {
	info := filepath.Join(gitDir, "objects", "info")
	if err := os.MkdirAll(info, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(info, "alternates"), []byte(alternate(objects)+"\n"), 0o600)
}

// alternate is a line of an alternates file: a path that could be taken for a comment or for a
// quoted name is quoted itself.
func alternate(path string) string {
	if !strings.ContainsAny(path, "\n\"\\") {
		return path
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}
