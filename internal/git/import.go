package git

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Bounds of an import whose spec gives none, in bytes.
const (
	DefaultMaxPack   int64 = 512 << 20
	DefaultMaxMemory int64 = 1 << 30
	DefaultMaxTree   int64 = 8 << 30
)

// ImportSpec is the fetch of an agent's work.
type ImportSpec struct {
	Source string // absolute path of the repository as the upload-pack side sees it
	// UploadPack is a shell command for the other side; the quoted Source is appended to it.
	// "" runs git's own, unconfined: only for repositories that nobody else has written.
	UploadPack string
	Rev        string        // "HEAD" (also for "") or a full ref name
	Into       string        // full name of a ref that must not be there yet
	MaxPack    int64         // bytes, 0: DefaultMaxPack
	MaxMemory  int64         // bytes that one process of git may take to unpack it, 0: DefaultMaxMemory
	MaxTree    int64         // bytes that its files have when they are checked out, 0: DefaultMaxTree
	Timeout    time.Duration // 0: DefaultTimeout
}

// Import brings one commit of a repository that is not trusted, with all that it needs, into the
// engine's repository and makes the fresh ref Into for it. What comes is received in a quarantine
// beside the repository, bounded in size and time, checked object by object, and proved complete;
// only then it is taken over. Whatever the other side does, nothing of the engine's is moved unless
// nil is returned. ErrNoRef: the other side has no such ref, or its fetch left none (a shallow
// repository does so). ErrTooBig, ErrRefused (not a repository, corrupt, incomplete), ErrStaleRef
// (Into is there already). A fetch that does not end within Timeout is ErrRefused too; when ctx
// ends first it is an *Error with Timeout.
func (r *Repo) Import(ctx context.Context, spec ImportSpec) (Commit, error) {
	args, err := r.importArgs(&spec)
	if err != nil {
		return Commit{}, err
	}
	unlock, err := r.importing(ctx, syscall.LOCK_SH)
	if err != nil {
		return Commit{}, err
	}
	defer unlock()
	refs, err := r.Refs(ctx, spec.Into)
	if err != nil {
		return Commit{}, err
	}
	if len(refs) > 0 {
		return Commit{}, fmt.Errorf("%w: %s is there already; an import takes a fresh ref", ErrStaleRef, spec.Into)
	}
	q, err := r.quarantine(ctx)
	if err != nil {
		return Commit{}, fmt.Errorf("import: %w", err)
	}
	defer os.RemoveAll(q.gitDir)
	c, err := q.receive(ctx, spec, args)
	if err == nil {
		err = q.bounded(ctx, c.Hash, spec.MaxTree)
	}
	if err != nil {
		return Commit{}, fmt.Errorf("import from %s: %w", Escape(spec.Source), err)
	}
	if err := r.takeOver(q); err != nil {
		return Commit{}, fmt.Errorf("import: %w", err)
	}
	if err := r.complete(ctx, c.Hash); err != nil {
		return Commit{}, err
	}
	return c, r.UpdateRefs(ctx, Update{Ref: spec.Into, New: c.Hash})
}

const quarantined = "refs/interlock/incoming"

func (r *Repo) importArgs(spec *ImportSpec) ([]string, error) {
	if err := checkRef(spec.Into); err != nil {
		return nil, err
	}
	if spec.Rev == "" {
		spec.Rev = "HEAD"
	}
	if spec.Rev != "HEAD" {
		if err := checkRef(spec.Rev); err != nil {
			return nil, err
		}
	}
	url, err := remoteURL(spec.Source)
	if err != nil {
		return nil, err
	}
	if spec.UploadPack == "" {
		spec.UploadPack = r.git.remoteProgram("upload-pack")
	}
	if spec.MaxPack <= 0 {
		spec.MaxPack = DefaultMaxPack
	}
	if spec.MaxMemory <= 0 {
		spec.MaxMemory = DefaultMaxMemory
	}
	if spec.MaxTree <= 0 {
		spec.MaxTree = DefaultMaxTree
	}
	if spec.Timeout <= 0 {
		spec.Timeout = DefaultTimeout
	}
	return fetchArgs(unbound+spec.UploadPack, url, spec.Rev, quarantined), nil
}

// quarantine makes a bare repository of its own that borrows from r. Its packs are on the same
// filesystem as r's, so that they can be renamed into it.
func (r *Repo) quarantine(ctx context.Context) (*Repo, error) {
	dir := filepath.Join(r.gitDir, incoming, rand.Text())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	q := &Repo{Plumb: &Plumb{git: r.git, dir: dir, pre: []string{"--git-dir=" + dir}}, gitDir: dir}
	_, err := r.git.Run(ctx, Command{Args: []string{"init", "--quiet", "--bare", "--template=",
		"--initial-branch=interlock", "--object-format=sha1", "--", dir}})
	if err == nil {
		err = borrow(dir, r.Objects())
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return q, nil
}

// receive fetches into the quarantine. Every object comes in one pack (unpackLimit), whose size the
// kernel bounds. A small pack may unpack to any size: big blobs are streamed, the memory for all
// else is bounded.
func (q *Repo) receive(ctx context.Context, spec ImportSpec, args []string) (Commit, error) {
	options := []string{"-c", "fetch.fsckObjects=true", "-c", "transfer.fsckObjects=true",
		"-c", "fetch.unpackLimit=1", "-c", "transfer.unpackLimit=1", "-c", "core.bigFileThreshold=32m",
		"-c", "pack.threads=1"}
	out, err := q.Run(ctx, Command{Args: slices.Concat(options, args), Timeout: spec.Timeout,
		bounds: &bounds{file: spec.MaxPack, memory: spec.MaxMemory}})
	if err != nil {
		return Commit{}, importFailure(ctx, err, spec)
	}
	c, err := q.Resolve(ctx, quarantined)
	if errors.Is(err, ErrNoCommit) {
		return Commit{}, noRef(spec.Rev, spec.Source, out.Stderr)
	}
	return c, err
}

// bounded refuses a tree that nobody could list or check out: a few objects, each used many times,
// can stand for any number of files of any size.
func (q *Repo) bounded(ctx context.Context, hash string, most int64) error {
	out, err := q.Run(ctx, Command{Args: []string{"ls-tree", "-r", "-z", "--full-tree", "--format=%(objectsize) %(path)", hash},
		MaxOutput: maxTreeListing})
	if errors.Is(err, ErrTooBig) {
		return fmt.Errorf("%w: the names of its files alone have more than %d bytes", ErrTooBig, maxTreeListing)
	}
	if err != nil {
		return err
	}
	var sum int64
	for entry := range strings.SplitSeq(string(out.Stdout), "\x00") {
		size, _, _ := strings.Cut(entry, " ")
		n, err := strconv.ParseInt(size, 10, 64) // "-" for a submodule
		if err == nil {
			sum += n
		}
		if sum > most || sum < 0 {
			return fmt.Errorf("%w: its files have more than %d bytes", ErrTooBig, most)
		}
	}
	return nil
}

const maxTreeListing = 64 << 20 // bytes; the largest trees known have a third of that

func importFailure(ctx context.Context, err error, spec ImportSpec) error {
	var failed *Error
	if errors.As(err, &failed) && failed.Timeout && ctx.Err() == nil {
		return fmt.Errorf("%w: it was not there within %s: %w", ErrRefused, spec.Timeout, err)
	}
	if !errors.As(err, &failed) || failed.Err != nil {
		return err
	}
	switch {
	case strings.Contains(failed.Stderr, "File too large"):
		return fmt.Errorf("%w: its pack has more than %d bytes: %w", ErrTooBig, spec.MaxPack, err)
	case outOfMemory(failed):
		return fmt.Errorf("%w: unpacking it takes more than %d bytes of memory: %w", ErrTooBig, spec.MaxMemory, err)
	}
	return remoteFailure(err)
}

func outOfMemory(failed *Error) bool {
	return strings.Contains(failed.Stderr, "Out of memory") || strings.Contains(failed.Stderr, "out of memory")
}

// takeOver moves the packs of a quarantine into r, each index last: without it git does not see
// the pack.
func (r *Repo) takeOver(q *Repo) error {
	from, to := filepath.Join(q.Objects(), "pack"), filepath.Join(r.Objects(), "pack")
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, suffix := range []string{".pack", ".rev", ".idx"} {
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), "pack-") || !strings.HasSuffix(e.Name(), suffix) {
				continue
			}
			if err := os.Rename(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
				return err
			}
		}
	}
	return syncDir(to)
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// complete proves that a commit with its history and all their trees and blobs is in r, as far as
// it is not already reachable from r's own refs, which were proved when they were made.
func (r *Repo) complete(ctx context.Context, hash string) error {
	if _, err := os.Stat(filepath.Join(r.Objects(), "info", "alternates")); err == nil {
		return fmt.Errorf("%w: the engine's repository borrows objects, which it never does", ErrRefused)
	}
	_, err := r.Run(ctx, Command{Args: []string{"rev-list", "--objects", "--quiet", hash, "--not", "--all", "--"}})
	var failed *Error
	if errors.As(err, &failed) && failed.Err == nil {
		return fmt.Errorf("%w: %s is not complete: %w", ErrRefused, hash, err)
	}
	return err
}
