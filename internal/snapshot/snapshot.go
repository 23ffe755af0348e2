// Package snapshot commits what an agent left uncommitted in a work tree. It is made to run inside
// the sandbox, by our own binary; it never opens the work tree's .git as a repository, and what it
// leaves is only brought in by an import.
package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"interlock/internal/git"
)

// Ref is where Take leaves its commit.
const Ref = "refs/heads/snapshot"

// Spec is a work tree to be committed. All paths are absolute.
type Spec struct {
	GitDir   string // a git directory of its own, made here; it must not be there, or be empty
	WorkTree string
	Objects  string // where the objects of Parent are
	Parent   string // full hash
	Message  string
	MaxFile  int64 // bytes of one file, 0: DefaultMaxPack
}

// Take commits what is in a work tree on top of Parent, when it differs from it, and leaves
// the commit, or Parent itself, as Ref and HEAD of GitDir. It is to be run inside the
// sandbox, on a tree that an agent wrote. Git directory, index and configuration are its own: the
// work tree's .git is never opened as a repository, so that no filter, hook or monitor of it runs.
// Ignored files stay out. So do untracked directories that are git repositories of their own, and
// what is neither file, symbolic link nor directory: the message of the commit names them. What
// cannot be read is git.ErrRefused, a file of more than MaxFile bytes is git.ErrTooBig: work is never
// left out in silence.
func Take(ctx context.Context, spec Spec) (hash string, changed bool, err error) {
	if !git.ValidHash(spec.Parent) {
		return "", false, fmt.Errorf("snapshot: %w: %q is not a full object name", git.ErrInvalid, git.Escape(spec.Parent))
	}
	if spec.MaxFile <= 0 {
		spec.MaxFile = git.DefaultMaxPack
	}
	g, err := git.Find(ctx)
	if err != nil {
		return "", false, err
	}
	at, err := g.Beside(ctx, spec.WorkTree, spec.GitDir, "snapshot", spec.Objects)
	if err != nil {
		return "", false, fmt.Errorf("snapshot: %w", err)
	}
	s := &snapshot{Plumb: at, spec: spec}
	if _, err := s.Run(ctx, git.Command{Args: []string{"read-tree", spec.Parent}}); err != nil {
		return "", false, fmt.Errorf("snapshot: %w", err)
	}
	if err := s.stage(ctx); err != nil {
		return "", false, fmt.Errorf("snapshot: %w", err)
	}
	if hash, err = s.commitTree(ctx); err != nil {
		return "", false, fmt.Errorf("snapshot: %w", err)
	}
	return hash, hash != spec.Parent, nil
}

type snapshot struct {
	*git.Plumb
	spec Spec
	left []string // paths that stay out
}

// stage brings the index to what is in the work tree. `git add -A` would do, but it fails on a
// repository without a commit in the tree and turns others into submodules that nobody can fetch.
func (s *snapshot) stage(ctx context.Context) error {
	links, err := s.gitlinks(ctx)
	if err != nil {
		return err
	}
	out, err := s.Run(ctx, git.Command{Args: []string{"ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard"},
		MaxOutput: git.MaxListing})
	if err != nil {
		return err
	}
	if line := unreadable(out.Stderr); line != "" {
		return fmt.Errorf("%w: %s", git.ErrRefused, line)
	}
	var add, remove bytes.Buffer
	names := strings.Split(strings.TrimSuffix(string(out.Stdout), "\x00"), "\x00")
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		switch {
		case name == "":
		case strings.HasSuffix(name, "/"): // so git lists an untracked repository
			s.left = append(s.left, name)
		case s.gone(name, links[name]):
			remove.WriteString(name + "\x00")
		case s.tooBig(name):
			return fmt.Errorf("%w: %s has more than %d bytes", git.ErrTooBig, git.Escape(name), s.spec.MaxFile)
		case s.committable(name):
			add.WriteString(name + "\x00")
		default:
			s.left = append(s.left, name)
		}
	}
	if err := s.update(ctx, remove.Bytes(), "--force-remove"); err != nil {
		return err
	}
	return s.update(ctx, add.Bytes(), "--add", "--replace")
}

func (s *snapshot) update(ctx context.Context, paths []byte, how ...string) error {
	if len(paths) == 0 {
		return nil
	}
	args := slices.Concat([]string{"update-index", "-z"}, how, []string{"--stdin"})
	_, err := s.Run(ctx, git.Command{Args: args, Stdin: paths})
	return err
}

// gone reports whether nothing of what was tracked is at a path any more, also because a directory
// on the way became a symbolic link or a file, or a file became a directory.
func (s *snapshot) gone(name string, gitlink bool) bool {
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		if info, err := os.Lstat(filepath.Join(s.spec.WorkTree, dir)); err != nil || !info.IsDir() {
			return true
		}
	}
	info, err := os.Lstat(filepath.Join(s.spec.WorkTree, name))
	if err != nil {
		return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	}
	return info.IsDir() && !gitlink
}

// committable reports whether git can take what is at a path. A submodule's directory stays at the
// commit it was at; what cannot be looked at is left to git to complain of.
func (s *snapshot) committable(name string) bool {
	info, err := os.Lstat(filepath.Join(s.spec.WorkTree, name))
	return err != nil || info.Mode().IsRegular() || info.Mode().Type() == os.ModeSymlink
}

// tooBig reports whether a file is larger than any that can be taken in. A hole costs nothing to
// make, and days to read.
func (s *snapshot) tooBig(name string) bool {
	info, err := os.Lstat(filepath.Join(s.spec.WorkTree, name))
	return err == nil && info.Mode().IsRegular() && info.Size() > s.spec.MaxFile
}

// unreadable is the first line in which git says that it passed over something it cannot read:
// directories and ignore files; its exit code does not tell.
func unreadable(said string) string {
	for line := range strings.Lines(said) {
		if strings.Contains(line, "could not open directory") || strings.Contains(line, "unable to access") {
			return strings.TrimSpace(strings.TrimPrefix(line, "warning: "))
		}
	}
	return ""
}

// gitlinks are the submodules in the index.
func (s *snapshot) gitlinks(ctx context.Context) (map[string]bool, error) {
	out, err := s.Run(ctx, git.Command{Args: []string{"ls-files", "-z", "--stage"}, MaxOutput: git.MaxListing})
	if err != nil {
		return nil, err
	}
	links := map[string]bool{}
	for entry := range strings.SplitSeq(string(out.Stdout), "\x00") {
		if meta, name, ok := strings.Cut(entry, "\t"); ok && strings.HasPrefix(meta, git.GitlinkMode+" ") {
			links[name] = true
		}
	}
	return links, nil
}

// commitTree writes the index as a commit, unless it is Parent's tree, and sets Ref.
func (s *snapshot) commitTree(ctx context.Context) (string, error) {
	out, err := s.Run(ctx, git.Command{Args: []string{"write-tree"}})
	if err != nil {
		return "", err
	}
	tree := strings.TrimSpace(string(out.Stdout))
	parent, err := s.Resolve(ctx, s.spec.Parent)
	if err != nil {
		return "", err
	}
	hash := parent.Hash
	if tree != parent.Tree {
		out, err := s.Run(ctx, git.Command{Args: []string{"commit-tree", tree, "-p", parent.Hash}, Stdin: s.message()})
		if err != nil {
			return "", err
		}
		if hash = strings.TrimSpace(string(out.Stdout)); !git.ValidHash(hash) {
			return "", errors.New("git commit-tree: no hash in its answer")
		}
	}
	_, err = s.Run(ctx, git.Command{Args: []string{"update-ref", Ref, hash}})
	return hash, err
}

const shownLeft = 20 // paths named in a message

func (s *snapshot) message() []byte {
	var b strings.Builder
	b.WriteString(strings.TrimRight(strings.ReplaceAll(s.spec.Message, "\x00", ""), "\n") + "\n")
	if len(s.left) > 0 {
		b.WriteString("\nLeft out (a repository of its own, or neither file nor link):\n")
		for _, name := range s.left[:min(len(s.left), shownLeft)] {
			fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(git.Escape(name), "\n", `\n`))
		}
		if more := len(s.left) - shownLeft; more > 0 {
			fmt.Fprintf(&b, "  and %d more\n", more)
		}
	}
	return []byte(b.String())
}
