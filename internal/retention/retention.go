// Package retention says how long the workspaces and logs of runs stay, and removes them when that is
// safe: when their run is finished and their work is elsewhere. It never deletes work that is nowhere
// else, unless a person names it, and never runs git in a workspace.
package retention

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"interlock/internal/claim"
	"interlock/internal/git"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/store"
	"interlock/internal/workspace"
)

// Limits are the operator's.
type Limits struct {
	Workspaces time.Duration // how long those of a finished run are kept; 0: until they are dropped
	Logs       time.Duration // how long those of a finished run are kept; 0: for ever
	LeastFree  int64         // bytes that have to be free before a session is started
	Most       int64         // bytes that the state directory may have then; 0: any
}

// Keeper keeps the workspaces and logs of one state directory. Its methods may be called by many
// goroutines, and by many processes at once. All fields but Say are required.
type Keeper struct {
	State  string // the state directory
	Store  store.Store
	Clock  store.Clock
	Git    *git.Git
	Facts  func(context.Context) sandbox.Facts
	Env    []string   // the operator's environment
	Self   run.Holder // this process
	Limits Limits
	// Branches reads from the forge of a run where the run's branch and its base branch are now.
	Branches func(ctx context.Context, r run.Run) ([]string, error)
	// Say is told what takes long. The text is safe to print.
	Say func(line string)
}

// RefusedError says why something is not done, what is safe, and a command that goes on.
type RefusedError struct {
	Exit       int
	What, Safe string
	Next       string
	Then       string // what to do after it, or instead; for people
}

func (e *RefusedError) Error() string { return e.What }

// Work says what is known of the work in a workspace.
type Work string

// What the work of a workspace can be. Only Open is nowhere else.
const (
	None     Work = "none"         // there is none: no agent ran in it, or it changed nothing
	Pushed   Work = "pushed"       // it was seen on the forge
	Imported Work = "imported"     // it is in the engine's repository, by a ref that keeps it
	Open     Work = "not imported" // it may be nowhere else
)

// Workspace is one private directory of a run.
type Workspace struct {
	Run      string     `json:"run"`
	Name     string     `json:"workspace"` // of its directory: the attempt, "-check" for a clean tree
	Issue    int64      `json:"issue"`
	Repo     string     `json:"repo"` // where its repository was last found
	State    run.State  `json:"state"`
	Dir      string     `json:"dir"`
	Files    int64      `json:"files"`
	Bytes    int64      `json:"bytes"` // on the disk
	Made     time.Time  `json:"made"`
	Finished *time.Time `json:"finished"` // since when its run rests; null while it does not
	Work     Work       `json:"work"`
	Why      string     `json:"why"` // how that is known, or what is missing
	Kept     bool       `json:"kept"`
	InUse    string     `json:"in_use,omitempty"` // why nobody else may touch it
	Goes     *time.Time `json:"goes"`             // from when on a sweep removes it; null: never by time
	Stays    string     `json:"stays,omitempty"`  // why that is null
	Next     string     `json:"next"`

	head string // what of its work has to be on the forge
}

// group is one run with its workspaces.
type group struct {
	id       string
	run      run.Run
	unknown  string // why the run cannot be read
	sessions []store.Session
	names    []string
	kept     bool
	inUse    string
	repo     *git.Repo // nil where the engine has none for it
}

// group reads what is known of a run's workspaces.
func (k *Keeper) group(ctx context.Context, id string) (*group, error) {
	g := &group{id: id}
	entries, err := os.ReadDir(k.dir(id))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() {
			g.names = append(g.names, e.Name())
		}
	}
	slices.SortFunc(g.names, byNumber)
	if g.kept, err = isKept(k.dir(id)); err != nil {
		return nil, err
	}
	g.run, err = k.Store.Load(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		g.unknown = "its run is not in this state: an older copy of it was put back, or it was copied here"
		return g, nil
	case errors.Is(err, store.ErrDamagedRun):
		g.unknown = "the record of its run cannot be read"
		return g, nil
	case err != nil:
		return nil, err
	}
	hist, err := k.Store.History(ctx, id)
	if err != nil {
		return nil, err
	}
	g.sessions = hist.Sessions
	if dir := workspace.RepoDir(k.State, g.run.Repo); exists(dir) {
		if g.repo, err = k.Git.Engine(ctx, dir); err != nil {
			return nil, fmt.Errorf("open the engine's repository of run %s: %w", id, err)
		}
	}
	g.inUse, err = k.inUse(ctx, g)
	return g, err
}

// byNumber orders names as people count: 2 before 10.
func byNumber(a, b string) int {
	number := func(s string) int {
		n, _ := strconv.Atoi(s[:len(s)-len(strings.TrimLeft(s, "0123456789"))])
		return n
	}
	if d := number(a) - number(b); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (k *Keeper) dir(id string) string { return workspace.WorkDir(k.State, id) }

// inUse says why somebody may still use the workspaces of a run, "" if nobody can.
func (k *Keeper) inUse(ctx context.Context, g *group) (string, error) {
	r := g.run
	switch {
	case r.State.Live() || r.Running:
		return fmt.Sprintf("its run is %s", r.State), nil
	case len(r.Effects) > 0:
		return fmt.Sprintf("something is still to be done for its run (%s)", r.Effects[0].Kind), nil
	}
	for _, s := range g.sessions {
		if !s.Ended {
			return fmt.Sprintf("session %s (%s) is not proved gone", s.ID, s.Kind), nil
		}
	}
	l, held, err := k.Store.Controls().Lease(ctx, store.Key(r.Repo, r.Issue))
	if err != nil || !held || l.Fence != r.Fence || claim.Gone(k.Self, l.Holder) {
		return "", err
	}
	return fmt.Sprintf("%s holds its run", claim.Holder(l.Holder)), nil
}

var (
	attemptName = regexp.MustCompile(`^([0-9]+)(?:\.[0-9]+)?$`)
	checkName   = regexp.MustCompile(`^[0-9]+-check(?:\.[0-9]+)?$`)
)

// attempt is the number of the attempt that a workspace was made for, 0 for others.
func attempt(name string) int {
	m := attemptName.FindStringSubmatch(name)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// lock takes a kernel lock on a directory, which nobody else can hold meanwhile; ok is false when
// somebody does. No sandbox shows these directories.
func lock(dir string) (unlock func(), ok bool, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return func() { // by name too: a child between fork and exec may share the descriptor
			_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
			_ = f.Close()
		}, true, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return nil, false, nil
	}
	return nil, false, err
}

// List describes all workspaces of the state directory, or those of one run.
func (k *Keeper) List(ctx context.Context, only string) ([]Workspace, error) {
	ids, err := k.ids()
	if err != nil {
		return nil, err
	}
	var all []Workspace
	for _, id := range ids {
		if only != "" && id != only {
			continue
		}
		g, err := k.group(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, name := range g.names {
			w, err := k.judge(ctx, g, name)
			if errors.Is(err, fs.ErrNotExist) {
				continue // it was removed meanwhile
			}
			if err != nil {
				return nil, err
			}
			all = append(all, w)
		}
	}
	return all, nil
}

// ids are the runs that have a directory for workspaces.
func (k *Keeper) ids() ([]string, error) {
	entries, err := os.ReadDir(k.dir(""))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), gone) {
			ids = append(ids, e.Name())
		}
	}
	slices.SortFunc(ids, byNumber)
	return ids, err
}

func (k *Keeper) say(format string, args ...any) {
	if k.Say != nil {
		k.Say(fmt.Sprintf(format, args...))
	}
}

// due says from when on a sweep removes a workspace, and why never.
func (k *Keeper) due(g *group, w *Workspace) {
	w.Next = "interlock workspace export " + g.id + " " + g.id + "-work"
	switch {
	case w.InUse != "":
		w.Stays, w.Next = w.InUse, "interlock show "+g.id
	case g.kept:
		w.Stays, w.Next = "it is kept on a person's word", "interlock workspace keep "+g.id+" --off"
	case w.Work == Open:
		w.Stays = "it may hold work that is nowhere else"
	case w.Work == Imported:
		w.Stays, w.Next = "its work is not on the forge", "interlock workspace drop "+g.id
	case k.Limits.Workspaces == 0:
		w.Stays, w.Next = "retention.workspaces is 0s", "interlock workspace drop "+g.id
	default:
		at := g.run.Updated.Add(k.Limits.Workspaces).UTC()
		w.Goes, w.Next = &at, "interlock workspace drop "+g.id
	}
}

// made is when a workspace's directory got what it has.
func made(path string) time.Time {
	info, err := os.Lstat(filepath.Join(path, "task"))
	if err != nil {
		if info, err = os.Lstat(path); err != nil {
			return time.Time{}
		}
	}
	return info.ModTime().UTC()
}
