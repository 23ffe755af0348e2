package git

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
)

// SnapshotRef is where Snapshot leaves its commit.
const SnapshotRef = "refs/heads/snapshot"

// SnapshotSpec is a work tree to be committed. All paths are absolute.
type SnapshotSpec struct {
	GitDir   string // a git directory of its own, made here; it must not be there, or be empty
	WorkTree string
	Objects  string // where the objects of Parent are
	Parent   string // full hash
	Message  string
	MaxFile  int64 // bytes of one file, 0: DefaultMaxPack
}

// Snapshot commits what is in a work tree on top of Parent, when it differs from it, and leaves
// the commit, or Parent itself, as SnapshotRef and HEAD of GitDir. It is to be run inside the
// sandbox, on a tree that an agent wrote. Git directory, index and configuration are its own: the
// work tree's .git is never opened as a repository, so that no filter, hook or monitor of it runs.
// Ignored files stay out. So do untracked directories that are git repositories of their own, and
// what is neither file, symbolic link nor directory: the message of the commit names them. What
// cannot be read is ErrRefused, a file of more than MaxFile bytes is ErrTooBig: work is never left
// out in silence.
func Snapshot(ctx context.Context, spec SnapshotSpec) (hash string, changed bool, err error) {
	if err := spec.check(); err != nil {
		return "", false, err
	}
	if spec.MaxFile <= 0 {
		spec.MaxFile = DefaultMaxPack
	}
	g, err := Find(ctx)
	if err != nil {
		return "", false, err
	}
	// Nothing here needs to outlive a power loss: the import makes it durable.
	pre := []string{"--git-dir=" + spec.GitDir, "--work-tree=" + spec.WorkTree, "-c", "core.fsync=none"}
	s := &snapshot{Plumb: &Plumb{git: g, dir: spec.WorkTree, pre: pre}, spec: spec}
	if err := s.begin(ctx); err != nil {
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

func (s SnapshotSpec) check() error {
	for _, path := range []string{s.GitDir, s.WorkTree, s.Objects} {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("%w: %q is not an absolute path", ErrInvalid, Escape(path))
		}
	}
	return checkHash(s.Parent)
}

type snapshot struct {
	*Plumb
	spec SnapshotSpec
	left []string // paths that stay out
}

func (s *snapshot) begin(ctx context.Context) error {
	if err := emptyDir(s.spec.GitDir); err != nil {
		return err
	}
	_, err := s.git.Run(ctx, Command{Args: []string{"init", "--quiet", "--bare", "--template=",
		"--initial-branch=snapshot", "--object-format=sha1", "--", s.spec.GitDir}})
	if err != nil {
		return err
	}
	if err := borrow(s.spec.GitDir, s.spec.Objects); err != nil {
		return err
	}
	_, err = s.run(ctx, Command{Args: []string{"read-tree", s.spec.Parent}})
	return err
}

const maxListing = 256 << 20 // bytes of a listing of paths

// stage brings the index to what is in the work tree. `git add -A` would do, but it fails on a
// repository without a commit in the tree and turns others into submodules that nobody can fetch.
func (s *snapshot) stage(ctx context.Context) error {
	links, err := s.gitlinks(ctx)
	if err != nil {
		return err
	}
	out, err := s.run(ctx, Command{Args: []string{"ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard"},
		MaxOutput: maxListing})
	if err != nil {
		return err
	}
	if line := unreadable(out.Stderr); line != "" {
		return fmt.Errorf("%w: %s", ErrRefused, line)
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
			return fmt.Errorf("%w: %s has more than %d bytes", ErrTooBig, Escape(name), s.spec.MaxFile)
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
	_, err := s.run(ctx, Command{Args: args, Stdin: paths})
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
	out, err := s.run(ctx, Command{Args: []string{"ls-files", "-z", "--stage"}, MaxOutput: maxListing})
	if err != nil {
		return nil, err
	}
	links := map[string]bool{}
	for entry := range strings.SplitSeq(string(out.Stdout), "\x00") {
		if meta, name, ok := strings.Cut(entry, "\t"); ok && strings.HasPrefix(meta, gitlinkMode+" ") {
			links[name] = true
		}
	}
	return links, nil
}

// commitTree writes the index as a commit, unless it is Parent's tree, and sets SnapshotRef.
func (s *snapshot) commitTree(ctx context.Context) (string, error) {
	out, err := s.run(ctx, Command{Args: []string{"write-tree"}})
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
		out, err := s.run(ctx, Command{Args: []string{"commit-tree", tree, "-p", parent.Hash}, Stdin: s.message()})
		if err != nil {
			return "", err
		}
		if hash = strings.TrimSpace(string(out.Stdout)); !ValidHash(hash) {
			return "", errors.New("git commit-tree: no hash in its answer")
		}
	}
	_, err = s.run(ctx, Command{Args: []string{"update-ref", SnapshotRef, hash}})
	return hash, err
}

const shownLeft = 20 // paths named in a message

func (s *snapshot) message() []byte {
	var b strings.Builder
	b.WriteString(strings.TrimRight(strings.ReplaceAll(s.spec.Message, "\x00", ""), "\n") + "\n")
	if len(s.left) > 0 {
		b.WriteString("\nLeft out (a repository of its own, or neither file nor link):\n")
		for _, name := range s.left[:min(len(s.left), shownLeft)] {
			fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(Escape(name), "\n", `\n`))
		}
		if more := len(s.left) - shownLeft; more > 0 {
			fmt.Fprintf(&b, "  and %d more\n", more)
		}
	}
	return []byte(b.String())
}
