package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Where things are inside a tree of level Full.
const (
	WorkspaceInside = "/workspace"
	ObjectsInside   = "/interlock/objects"
	BinaryInside    = "/interlock/bin/interlock"
	HomeInside      = "/home/agent"
	TaskInside      = "/interlock/task"
	TempInside      = "/tmp"
)

// Room is the private directory tree of one session.
type Room struct {
	Root string
}

// NewRoom creates the directories of a room, mode 0700. What is there already stays.
func NewRoom(root string) (Room, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return Room{}, fmt.Errorf("room: %w", err)
	}
	r := Room{Root: abs}
	for _, dir := range []string{r.Root, r.Tree(), r.Home(), r.Temp(), r.Task()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return Room{}, fmt.Errorf("room: %w", err)
		}
	}
	return r, nil
}

// Tree is for the workspace.
func (r Room) Tree() string { return filepath.Join(r.Root, "tree") }

// Home is the session's HOME, build caches included.
func (r Room) Home() string { return filepath.Join(r.Root, "home") }

// Temp is the session's TMPDIR.
func (r Room) Temp() string { return filepath.Join(r.Root, "tmp") }

// Task is for the files that describe the task.
func (r Room) Task() string { return filepath.Join(r.Root, "task") }

// Inside is the path by which the tree sees a path of the host: the innermost mount that holds
// it decides. A path under no mount is returned as it is, and so is every path at the other levels.
func (p Policy) Inside(hostPath string) string {
	if p.Level != Full {
		return hostPath
	}
	best, out := -1, hostPath
	try := func(source, target string) {
		rel, ok := Below(source, hostPath)
		if source != "" && ok && len(source) > best {
			best, out = len(source), filepath.Join(target, rel)
		}
	}
	for _, m := range p.Tools {
		try(m.Source, m.Target)
	}
	for _, m := range p.Mounts {
		try(m.Source, m.Target)
	}
	try(p.Home, HomeInside)
	try(p.Temp, TempInside)
	return out
}

// Below says whether path is dir or lies under it, by name, and what is left.
func Below(dir, path string) (string, bool) {
	rel, err := filepath.Rel(dir, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", false
	}
	return rel, true
}
