package retention

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"interlock/internal/filetree"
	"interlock/internal/git"
	"interlock/internal/sandbox"
	"interlock/internal/store"
	"interlock/internal/workspace"
)

// judge looks at one workspace and says what its work is, and when it goes. What cannot be told is
// work that is nowhere else.
func (k *Keeper) judge(ctx context.Context, g *group, name string) (Workspace, error) {
	room := sandbox.Room{Root: filepath.Join(k.dir(g.id), name)}
	w := Workspace{
		Run: g.id, Name: name, Issue: g.run.Issue, Repo: g.run.RepoPath, State: g.run.State, Dir: room.Root,
		Made: made(room.Root), Kept: g.kept, InUse: g.inUse, Work: Open,
	}
	if g.unknown == "" && g.inUse == "" {
		at := g.run.Updated.UTC()
		w.Finished = &at
	}
	tree, treeErr := filetree.Look(ctx, room.Tree(), nil)
	all, err := filetree.Look(ctx, room.Root, nil)
	if cause := context.Cause(ctx); cause != nil {
		return w, cause
	}
	w.Files, w.Bytes = all.Files, all.Bytes
	switch {
	case g.unknown != "":
		w.Why = g.unknown
	case checkName.MatchString(name):
		w.Work, w.Why = None, "a clean tree that a check ran in"
	case attempt(name) == 0:
		w.Why = "Interlock does not make a workspace of that name"
	case !g.begun(name):
		w.Work, w.Why = k.unbegun(g, name)
	case err != nil && !exists(room.Root):
		return w, err
	case treeErr != nil:
		w.Why = "it cannot be looked through: " + treeErr.Error()
	default:
		err = k.weigh(ctx, g, room, tree.Digest, &w)
	}
	k.due(g, &w)
	return w, err
}

// begun reports whether an agent was started in a workspace. It goes by its name among those of the
// run: the same state may be reached by another path now, or lie somewhere else.
func (g *group) begun(name string) bool {
	return slices.ContainsFunc(g.sessions, func(s store.Session) bool { return filepath.Base(s.Dir) == name && s.Kind == "agent" })
}

// unbegun is a workspace in which no agent was started, as far as the store knows. A state that was
// put back knows less than the disk: the log of an agent is there from its start on.
func (k *Keeper) unbegun(g *group, name string) (Work, string) {
	if exists(filepath.Join(workspace.LogDir(k.State, g.id), fmt.Sprintf("%d-agent.log", attempt(name)))) &&
		!slices.ContainsFunc(g.sessions, func(s store.Session) bool { return s.Attempt == attempt(name) && s.Kind == "agent" }) {
		return Open, "an agent has a log, but is not recorded: the state was put back"
	}
	return None, "no agent was started in it"
}

// weigh holds what was recorded at the import against the workspace and the engine's repository as
// they are now.
func (k *Keeper) weigh(ctx context.Context, g *group, room sandbox.Room, digest string, w *Workspace) error {
	rec, found, err := workspace.ReadImported(room)
	switch {
	case err != nil:
		w.Why = "what was recorded of its import cannot be read: " + err.Error()
		return nil
	case !found && g.run.State.Live():
		w.Why = "its work is not imported yet"
		return nil
	case !found:
		w.Why = "not all that it holds was imported: its session was cut off, or an import was refused"
		return nil
	case rec.Run != g.id:
		w.Why = "the record of its import is about another run"
		return nil
	case rec.Digest != digest:
		w.Why = "it was changed after it was imported"
		return nil
	case len(rec.Foreign) > 0:
		w.Why = fmt.Sprintf("it holds a git repository of its own, which no import takes: %s", git.Escape(rec.Foreign[0]))
		return nil
	case g.repo == nil:
		w.Why = "the engine's repository, which it was imported into, is gone"
		return nil
	}
	if w.Why, err = untaken(ctx, g.repo, rec.Head, room); err != nil || w.Why != "" {
		return err
	}
	return k.weighTips(ctx, g, room, rec.Head, w)
}

// weighTips looks for all commits of a workspace in the engine's repository.
func (k *Keeper) weighTips(ctx context.Context, g *group, room sandbox.Room, head string, w *Workspace) error {
	tips, err := workspace.Tips(room)
	if err != nil {
		w.Why = err.Error()
		return nil
	}
	for _, ref := range slices.Sorted(maps.Keys(tips)) {
		if ok, err := pinned(ctx, g.repo, tips[ref]); err != nil || !ok {
			w.Why = "commits of " + git.Escape(ref) + " in it were not imported"
			return err
		}
	}
	if ok, err := pinned(ctx, g.repo, head); err != nil || !ok {
		w.Why = "what was imported of it is gone from the engine's repository"
		return err
	}
	w.head = head
	w.Work, w.Why, err = k.whereIs(ctx, g, head)
	return err
}

// untaken says what of a tree no import takes, though the head speaks of it: what lies in the directory
// of a submodule, and entries of the stash below the newest one.
func untaken(ctx context.Context, repo *git.Repo, head string, room sandbox.Room) (string, error) {
	out, err := repo.RunBounded(ctx, git.Command{Args: []string{"ls-tree", "-r", "-z", "--full-tree", head}, MaxOutput: git.MaxListing})
	if cause := context.Cause(ctx); cause != nil {
		return "", cause
	}
	if err != nil { // too many, or gone: what cannot be told is not safe
		return "what was imported of it cannot be looked through", nil
	}
	root, err := os.OpenRoot(room.Tree())
	if err != nil {
		return "its tree cannot be opened: " + err.Error(), nil
	}
	defer root.Close()
	for entry := range strings.SplitSeq(string(out.Stdout), "\x00") {
		about, name, _ := strings.Cut(entry, "\t")
		if !strings.HasPrefix(about, "160000 ") {
			continue
		}
		if inside, err := fs.ReadDir(root.FS(), name); len(inside) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Sprintf("what lies in the submodule %s was not imported", git.Escape(name)), nil
		}
	}
	if old, err := workspace.OlderStash(root); err != nil || old {
		return "entries of its stash below the newest one were not imported", nil
	}
	return "", nil
}

// whereIs says where else the imported head of a workspace is.
func (k *Keeper) whereIs(ctx context.Context, g *group, head string) (Work, string, error) {
	for _, at := range []struct {
		hash string
		work Work
		why  string
	}{
		{g.run.Base.Commit.Hash, None, "the agent changed nothing"},
		{g.run.Pushed, Pushed, "branch " + g.run.Branch + " of the repository had it"},
	} {
		if at.hash == "" {
			continue
		}
		if ok, err := g.repo.IsAncestor(ctx, head, at.hash); err != nil && !errors.Is(err, git.ErrNoCommit) {
			return Open, "", err
		} else if ok {
			return at.work, at.why, nil
		}
	}
	return Imported, fmt.Sprintf("it is in Interlock's own repository, as %.12s", head), nil
}

// pinned reports whether a commit is in a repository and kept there by a ref.
func pinned(ctx context.Context, repo *git.Repo, hash string) (bool, error) {
	if !git.ValidHash(hash) {
		return false, nil
	}
	out, err := repo.Run(ctx, git.Command{Args: []string{"rev-list", "--max-count=1", hash, "--not", "--all", "--"}})
	var failed *git.Error
	if errors.As(err, &failed) && failed.Err == nil && !failed.Timeout {
		return false, nil // there is no such commit
	}
	return err == nil && len(out.Stdout) == 0, err
}

// onForge reads from the forge whether a commit is on the run's branch, or on its base, now.
func (k *Keeper) onForge(ctx context.Context, g *group, head string) (bool, error) {
	tips, err := k.Branches(ctx, g.run)
	if err != nil {
		return false, err
	}
	for _, tip := range tips {
		if tip == head {
			return true, nil
		}
		ok, err := g.repo.IsAncestor(ctx, head, tip)
		if err != nil && !errors.Is(err, git.ErrNoCommit) {
			return false, err
		}
		if ok {
			return true, nil
		}
	}
	return false, nil
}
