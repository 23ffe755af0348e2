package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"interlock/internal/filetree"
	"interlock/internal/git"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/statedir"
)

// Imported says that all of a workspace's work was brought into the engine's repository, as the tree
// was at that time. It lies beside the tree, where no session writes. What is in the tree and is not
// work: files that the repository ignores.
type Imported struct {
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`
	Head    string `json:"head"`   // what it left, with what was uncommitted
	Digest  string `json:"digest"` // of the tree: filetree.Survey
	Bytes   int64  `json:"bytes"`  // that it takes on the disk
	// Foreign are git repositories in the tree that are not the workspace's own: they are left out.
	Foreign []string `json:"foreign,omitempty"`
}

const (
	importedFile = "imported.json"
	mostForeign  = 20
)

// ReadImported reads what was recorded of the workspace in a room. found is false where nothing was.
func ReadImported(room sandbox.Room) (rec Imported, found bool, err error) {
	found, err = statedir.ReadRecord(filepath.Join(room.Root, importedFile), &rec)
	return rec, found, err
}

// noteImported records that all of the room's work is imported. A tree that cannot be looked through is
// left without a record: then nobody ever takes its work for safe.
func noteImported(ctx context.Context, r run.Run, room sandbox.Room, head git.Commit) error {
	rec := Imported{Run: r.ID, Attempt: r.Attempt, Head: head.Hash}
	s, err := filetree.Look(ctx, room.Tree(), func(name string, _ fs.FileInfo) {
		if path.Base(name) == ".git" && name != ".git" && !strings.HasPrefix(name, ".git/") && len(rec.Foreign) < mostForeign {
			rec.Foreign = append(rec.Foreign, path.Dir(name))
		}
	})
	if err != nil {
		return context.Cause(ctx)
	}
	rec.Digest, rec.Bytes = s.Digest, s.Bytes
	return statedir.WriteRecord(filepath.Join(room.Root, importedFile), rec)
}

// The bounds of what is read of a workspace's refs.
const (
	mostTips   = 1000
	packedMost = 16 << 20 // bytes of packed-refs
	refMost    = 4 << 10  // bytes of the file of one ref
)

// ErrRefs: which commits a workspace's refs hold cannot be told from its files.
var ErrRefs = errors.New("its refs cannot be read")

// Tips returns the refs of a workspace with what each holds. It reads their files: git never runs in a
// workspace, and an import takes HEAD alone. ErrRefs also for refs that are kept in another form, or
// elsewhere: work trees of its own, a reftable.
func Tips(room sandbox.Room) (map[string]string, error) {
	root, err := os.OpenRoot(room.Tree())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, other := range []string{".git/reftable", ".git/worktrees", ".git/commondir"} {
		if _, err := root.Lstat(other); !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: there is %s", ErrRefs, other)
		}
	}
	tips := map[string]string{}
	err = errors.Join(packedTips(root, tips), looseTips(root, tips))
	if err == nil && len(tips) > mostTips {
		err = fmt.Errorf("there are more than %d", mostTips)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefs, err)
	}
	return tips, nil
}

// OlderStash reports whether a workspace's stash has entries below the newest one, which is all that
// its ref holds.
func OlderStash(root *os.Root) (bool, error) {
	log, err := readBounded(root, ".git/logs/refs/stash", packedMost)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return strings.Count(log, "\n") > 1, err
}

func packedTips(root *os.Root, tips map[string]string) error {
	packed, err := readBounded(root, ".git/packed-refs", packedMost)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for line := range strings.Lines(packed) {
		hash, ref, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if ok && git.ValidHash(hash) { // others are a remark, or what a tag above leads to
			tips[ref] = hash
		}
	}
	return err
}

func looseTips(root *os.Root, tips map[string]string) error {
	return fs.WalkDir(root.FS(), ".git/refs", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := readBounded(root, name, refMost)
		hash := strings.TrimSpace(text)
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(hash, "ref: "): // it only names another one
		case !git.ValidHash(hash):
			return fmt.Errorf("%s holds no hash", git.Escape(name))
		default:
			tips[strings.TrimPrefix(name, ".git/")] = hash
		}
		return nil
	})
}

// readBounded reads a regular file of a tree that others wrote.
func readBounded(root *os.Root, name string, most int64) (string, error) {
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular() || info.Size() > most:
		return "", fmt.Errorf("%s is no regular file of at most %d bytes", git.Escape(name), most)
	}
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most))
	return string(b), err
}

// Ref imports what one more ref of a workspace holds, as Commits does with HEAD.
func (h *Host) Ref(live context.Context, r run.Run, room sandbox.Room, ref string) (git.Commit, error) {
	return h.importFrom(live, r, room, room.Tree(), sandbox.WorkspaceInside, ref)
}
