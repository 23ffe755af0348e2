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
	"interlock/internal/lease"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/text"
	"interlock/internal/workspace"
)

// Exported says what was written for a person.
type Exported struct {
	Run      string   `json:"run"`
	Dir      string   `json:"dir"`
	Branches []Branch `json:"branches"`
	Checked  string   `json:"checked_out"`
	// Left names what could not be taken in, and where it lies.
	Left []string `json:"left"`
}

// Branch is one of the branches of an export.
type Branch struct {
	Name   string `json:"name"`
	Commit string `json:"commit"`
	What   string `json:"what"`

	ref string // of the engine's, by which it is fetched
}

// Export writes the work of a run into a new repository, which borrows nothing: a branch for each
// attempt's workspace, with what was uncommitted as its last commit, one for each other branch that an
// agent made there, and one for the head of the run. What was not imported yet is imported first, in
// the sandbox, and is safe from then on. It is for a finished run whose workspaces nobody uses.
func (k *Keeper) Export(ctx context.Context, id, dir string) (x Exported, err error) {
	x = Exported{Run: id, Dir: dir, Branches: []Branch{}, Left: []string{}}
	if err := emptyOrAbsent(id, dir); err != nil {
		return x, err
	}
	if unlock, err := k.lockRun(id); err == nil {
		defer unlock()
	} else if !errors.Is(err, fs.ErrNotExist) { // without workspaces the commits are there all the same
		return x, err
	}
	g, err := k.usable(ctx, id)
	if err != nil {
		return x, err
	}
	if g.repo == nil {
		return x, &RefusedError{Exit: run.ExitRefused, What: fmt.Sprintf("run %s: the engine's repository is gone", id), Safe: "nothing was changed", Next: "interlock workspace list"}
	}
	for _, name := range g.names {
		if attempt(name) == 0 || !g.begun(name) {
			continue
		}
		if err := k.bring(ctx, g, name, &x); err != nil {
			return x, err
		}
	}
	if err := k.heads(ctx, g, &x); err != nil {
		return x, err
	}
	if len(x.Branches) == 0 && len(x.Left) == 0 {
		return x, &RefusedError{Exit: run.ExitRefused, What: fmt.Sprintf("run %s has brought no work", id), Safe: "nothing was written", Next: "interlock show " + id}
	}
	return x, k.write(ctx, g, &x)
}

// emptyOrAbsent refuses to write into a directory that holds something.
func emptyOrAbsent(id, dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	return &RefusedError{Exit: run.ExitUsage, What: text.Quote(dir) + " is there already, and is no empty directory", Safe: "nothing was changed",
		Next: "interlock workspace export " + id + " " + text.Quote(dir+"-2")}
}

// bring makes sure that all work of one workspace is in the engine's repository, and names it.
func (k *Keeper) bring(ctx context.Context, g *group, name string, x *Exported) error {
	room := sandbox.Room{Root: filepath.Join(k.dir(g.id), name)}
	w, err := k.judge(ctx, g, name)
	if err != nil {
		return err
	}
	head := w.head
	if w.Work == Open {
		k.say("importing workspace %s of run %s", name, g.id)
		if head, err = k.importAll(ctx, g, name, room); err != nil && !workspace.OfContent(err) {
			return fmt.Errorf("import workspace %s of run %s: %w", name, g.id, err)
		}
		if err != nil {
			x.Left = append(x.Left, fmt.Sprintf("workspace %s: %v; its files are in %s: copy them, and never run git in there", name, err, room.Tree()))
		} else if w, err = k.judge(ctx, g, name); err != nil {
			return err
		} else if w.Work == Open {
			x.Left = append(x.Left, fmt.Sprintf("workspace %s: %s; look in %s, and never run git in there", name, w.Why, room.Tree()))
		}
	}
	if head != "" && head != g.run.Base.Commit.Hash {
		x.Branches = append(x.Branches, Branch{Name: "attempt-" + name, Commit: head, What: "what attempt " + name + " left, with what was uncommitted"})
	}
	return k.others(ctx, g, name, room, x)
}

// others names the commits that an agent left on other branches than the one it was given.
func (k *Keeper) others(ctx context.Context, g *group, name string, room sandbox.Room, x *Exported) error {
	tips, err := workspace.Tips(room)
	if err != nil {
		return nil // said above: then nothing of it is taken for safe
	}
	for _, ref := range slices.Sorted(maps.Keys(tips)) {
		ok, err := pinned(ctx, g.repo, tips[ref])
		if err == nil && ok {
			ok, err = k.isNew(ctx, g, tips[ref], x)
		}
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		branch := fmt.Sprintf("attempt-%s-%s", name, strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(ref, "refs/"), "heads/"), "/", "-"))
		if !git.ValidBranch(branch) {
			branch = fmt.Sprintf("attempt-%s-%.12s", name, tips[ref])
		}
		x.Branches = append(x.Branches, Branch{Name: branch, Commit: tips[ref], What: "another branch of attempt " + name})
	}
	return nil
}

// isNew reports whether a commit is on none of the branches so far, nor on the base.
func (k *Keeper) isNew(ctx context.Context, g *group, hash string, x *Exported) (bool, error) {
	for _, b := range append([]Branch{{Commit: g.run.Base.Commit.Hash}}, x.Branches...) {
		if on, err := g.repo.IsAncestor(ctx, hash, b.Commit); on || err != nil {
			return false, err
		}
	}
	return true, nil
}

// importAll imports a workspace as the engine does after a session, and what its other refs hold.
func (k *Keeper) importAll(ctx context.Context, g *group, name string, room sandbox.Room) (head string, err error) {
	level := sandbox.Level(g.run.Plan.Sandbox)
	facts := k.Facts(ctx)
	if err := facts.Check(level); err != nil {
		return "", err
	}
	r := g.run
	r.Attempt = attempt(name)
	host := &workspace.Host{State: k.State, Repo: g.repo, Facts: facts, Env: k.Env, Now: k.Clock.Wall}
	start := k.Clock.Now()
	err = k.under(ctx, r, func(l run.Lease) error {
		h := lease.Keep(ctx, k.Store, k.Clock, r.ID, l, start)
		c, _, err := host.BringIn(h.Live, r, room, h.Record)
		head = c.Hash
		if err == nil {
			err = k.importOthers(h.Live, g, host, r, room)
		}
		return errors.Join(err, h.Close(ctx))
	})
	return head, err
}

func (k *Keeper) importOthers(ctx context.Context, g *group, host *workspace.Host, r run.Run, room sandbox.Room) error {
	tips, err := workspace.Tips(room)
	if err != nil {
		return nil // it is said of the workspace that its refs cannot be read
	}
	for _, ref := range slices.Sorted(maps.Keys(tips)) {
		ok, err := pinned(ctx, g.repo, tips[ref])
		if err == nil && !ok {
			_, err = host.Ref(ctx, r, room, ref)
		}
		if err != nil && !workspace.OfContent(err) {
			return err
		}
	}
	return nil
}

// heads names what the run itself knows as its work.
func (k *Keeper) heads(ctx context.Context, g *group, x *Exported) error {
	for _, at := range []struct{ name, hash, what string }{
		{"head", g.run.Head.Hash, "what the run delivered last"}, {"tip", g.run.Tip, "where its next attempt would have begun"},
	} {
		ok, err := pinned(ctx, g.repo, at.hash)
		if err == nil && ok {
			ok, err = k.isNew(ctx, g, at.hash, x)
		}
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		x.Branches = append(x.Branches, Branch{Name: at.name, Commit: at.hash, What: at.what})
	}
	return nil
}

// write makes the repository. It is the person's: nothing of an agent's configuration is in it.
func (k *Keeper) write(ctx context.Context, g *group, x *Exported) error {
	if len(x.Branches) == 0 {
		return nil
	}
	k.say("writing %s", text.Line(x.Dir))
	refs, err := g.repo.Refs(ctx, "refs/interlock/runs/"+g.id+"/")
	if err != nil {
		return err
	}
	args := []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", g.repo.Dir()}
	for i := range x.Branches {
		b := &x.Branches[i]
		for ref, hash := range refs {
			if hash == b.Commit {
				b.ref = ref
			}
		}
		if b.ref == "" {
			b.ref = fmt.Sprintf("refs/interlock/runs/%s/export-%.12s", g.id, b.Commit)
			if err := g.repo.Pin(ctx, b.ref, b.Commit); err != nil {
				return err
			}
		}
		args = append(args, b.ref+":refs/heads/"+b.Name)
	}
	x.Checked = x.Branches[0].Name
	if i := slices.IndexFunc(x.Branches, func(b Branch) bool { return b.Commit == g.run.Head.Hash }); i >= 0 {
		x.Checked = x.Branches[i].Name
	}
	if err := os.MkdirAll(x.Dir, 0o700); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--template=", "--initial-branch=interlock", "--object-format=sha1", "--", "."}, args,
		{"symbolic-ref", "HEAD", "refs/heads/" + x.Checked}, {"read-tree", "--reset", "-u", "HEAD"},
	} {
		if _, err := k.Git.Run(ctx, git.Command{Dir: x.Dir, Args: args, Timeout: 10 * run.GitTotal}); err != nil {
			err = fmt.Errorf("write %s: %w", x.Dir, err)
			return errors.Join(err, filetree.Remove(context.WithoutCancel(ctx), x.Dir, nil)) // all in it is ours
		}
	}
	return nil
}
