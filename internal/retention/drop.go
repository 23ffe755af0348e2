package retention

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"interlock/internal/run"
	"interlock/internal/text"
)

// Dropped says what was removed on a person's word.
type Dropped struct {
	Run        string      `json:"run"`
	Workspaces []Workspace `json:"workspaces"`
	Bytes      int64       `json:"bytes"`
}

// Drop removes all workspaces of a run now. It refuses while somebody may use them, while they are
// kept, and while one holds work that may be nowhere else and is not among those whose loss is named.
func (k *Keeper) Drop(ctx context.Context, id string, lose []string) (d Dropped, err error) {
	d = Dropped{Run: id, Workspaces: []Workspace{}}
	unlock, err := k.lockRun(id)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nothingThere(id)
	}
	if err != nil {
		return d, err
	}
	defer unlock()
	g, err := k.usable(ctx, id)
	if err != nil {
		return d, err
	}
	if len(g.names) == 0 {
		return d, nothingThere(id)
	}
	if g.kept {
		return d, &RefusedError{Exit: run.ExitRefused, What: fmt.Sprintf("the workspaces of run %s are kept", id), Safe: "nothing was removed",
			Next: "interlock workspace keep " + id + " --off", Then: "type the command again"}
	}
	all, err := k.judgeAll(ctx, g)
	if err != nil {
		return d, err
	}
	if err := unsafe(id, all, lose); err != nil {
		return d, err
	}
	for _, w := range all {
		if err := k.remove(ctx, w); err != nil {
			return d, err
		}
		d.Workspaces = append(d.Workspaces, w)
		d.Bytes += w.Bytes
	}
	return d, k.tidy(g)
}

func nothingThere(id string) error {
	return &RefusedError{Exit: run.ExitRefused, What: fmt.Sprintf("run %s has no workspace (any more)", text.Quote(id)), Safe: "nothing was changed",
		Next: "interlock workspace list"}
}

func (k *Keeper) judgeAll(ctx context.Context, g *group) ([]Workspace, error) {
	all := make([]Workspace, 0, len(g.names))
	for _, name := range g.names {
		w, err := k.judge(ctx, g, name)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

// unsafe refuses to lose work that is nowhere else and that nobody has named.
func unsafe(id string, all []Workspace, lose []string) error {
	var open, why []string
	for _, w := range all {
		if w.Work == Open {
			open = append(open, w.Name)
			why = append(why, fmt.Sprintf("workspace %s: %s", w.Name, w.Why))
		}
	}
	for _, name := range lose {
		if !slices.ContainsFunc(all, func(w Workspace) bool { return w.Name == name }) {
			return &RefusedError{Exit: run.ExitUsage, What: fmt.Sprintf("run %s has no workspace %s", id, text.Quote(name)), Safe: "nothing was removed",
				Next: "interlock workspace list " + id}
		}
	}
	if !slices.ContainsFunc(open, func(name string) bool { return !slices.Contains(lose, name) }) {
		return nil
	}
	flags := ""
	for _, name := range open {
		flags += " --lose " + text.Quote(name)
	}
	return &RefusedError{
		Exit: run.ExitRefused,
		What: fmt.Sprintf("run %s is not dropped: it may hold work that is nowhere else: %s", id, strings.Join(why, "; ")), Safe: "nothing was removed",
		Next: fmt.Sprintf("interlock workspace export %s %s-work", id, id),
		Then: fmt.Sprintf("what is exported is safe, and can be dropped; to lose the work instead: interlock workspace drop %s%s", id, flags),
	}
}
