package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"interlock/internal/git/inode"
)

// Location is where a repository is and what it is called, whatever path led to it.
type Location struct {
	Key       string // "local:<device>-<inode>-<birth time>" of the common git directory
	CommonDir string // absolute, symbolic links resolved
	Worktree  string // top of the work tree the path is in, "" when it is in none
	Bare      bool
}

// Locate finds the repository that path is in. Subdirectories, symbolic links, linked work trees
// and bind mounts of one repository give one Key. ErrNotRepository; ErrRefused when its objects are
// named by another hash than SHA-1.
func (g *Git) Locate(ctx context.Context, path string) (Location, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return Location{}, err
	}
	info, err := os.Stat(abs)
	if err != nil || !info.IsDir() {
		return Location{}, &NotRepositoryError{Escape(abs), "that is not a directory that can be read"}
	}
	common, err := g.askPath(ctx, abs, "--git-common-dir")
	if err != nil {
		return Location{}, err
	}
	if err := g.needSHA1(ctx, abs); err != nil {
		return Location{}, err
	}
	if common, err = filepath.EvalSymlinks(common); err != nil {
		return Location{}, &NotRepositoryError{Escape(abs), Escape(err.Error())}
	}
	loc := Location{CommonDir: common}
	bare, err := g.askPath(ctx, abs, "--is-bare-repository")
	if err != nil {
		return Location{}, err
	}
	inside, err := g.askPath(ctx, abs, "--is-inside-work-tree")
	if err != nil {
		return Location{}, err
	}
	loc.Bare = bare == "true"
	if inside == "true" {
		if loc.Worktree, err = g.askPath(ctx, abs, "--show-toplevel"); err != nil {
			return Location{}, err
		}
	}
	name, err := inode.Name(common)
	if err != nil {
		return loc, fmt.Errorf("name the directory %s: %w", Escape(common), err)
	}
	loc.Key = "local:" + name
	return loc, nil
}

func (g *Git) needSHA1(ctx context.Context, dir string) error {
	format, err := g.askPath(ctx, dir, "--show-object-format")
	if err == nil && format != "sha1" {
		err = fmt.Errorf("%w: the repository at %s names objects by %s; only sha1 is supported",
			ErrRefused, Escape(dir), Escape(format))
	}
	return err
}

// askPath asks rev-parse one question, so that an answer with a newline in it stays one answer.
func (g *Git) askPath(ctx context.Context, dir, question string) (string, error) {
	out, err := g.Run(ctx, Command{Dir: dir, Args: []string{"-c", "safe.directory=*",
		"rev-parse", "--path-format=absolute", question}})
	if err == nil {
		return strings.TrimSuffix(string(out.Stdout), "\n"), nil
	}
	var failed *Error
	if errors.As(err, &failed) && !failed.Timeout && failed.Code > 0 {
		return "", &NotRepositoryError{Escape(dir), failed.Stderr}
	}
	return "", err
}
