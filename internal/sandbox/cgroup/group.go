package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The limits that Hit names.
const (
	HitTasks  = "tasks"
	HitMemory = "memory"
)

// Limits bound what is in a group together; 0 is no limit.
type Limits struct {
	Tasks  int64 // processes and threads
	Memory int64 // bytes, swap included
}

// Group are the cgroups of one session. Each is a directory of its own, "" if there is none.
type Group struct {
	Main   string // version 2
	Tasks  string // version 1
	Memory string // version 1

	tasks, memory string // where the limits are held, "" if they are not
}

// Make makes the cgroups of a session and sets its limits. Those of version 1 are made only for a
// limit. What cannot be had in p is left out; what can and fails is an error.
func Make(p Place, session string, l Limits) (g Group, err error) {
	name := name(session)
	defer func() {
		if err != nil {
			err = errors.Join(err, g.drop())
			g = Group{}
		}
	}()
	if p.Main != "" {
		if g.Main, err = makeIn(p.Main, name, "cgroup.kill", "cgroup.procs"); err != nil {
			return g, err
		}
	}
	if p.Tasks != "" && l.Tasks > 0 {
		if g.tasks, err = g.hold(p, p.Tasks, name, &g.Tasks); err == nil {
			err = put(g.tasks, "pids.max", l.Tasks)
		}
	}
	if err == nil && p.Memory != "" && l.Memory > 0 {
		if g.memory, err = g.hold(p, p.Memory, name, &g.Memory); err == nil {
			err = g.boundMemory(l.Memory)
		}
	}
	return g, err
}

// hold is the directory in which a limit is held: Main, or a new one of version 1.
func (g *Group) hold(p Place, base, name string, first *string) (dir string, err error) {
	if base == p.Main {
		return g.Main, nil
	}
	*first, err = makeIn(base, name, "tasks")
	return *first, err
}

// boundMemory sets the limit with no room in swap beside it. In version 2 the whole group ends
// when it is out of memory, in version 1 the supervisor does it.
func (g *Group) boundMemory(bytes int64) error {
	if g.Memory != "" {
		return errors.Join(put(g.Memory, "memory.limit_in_bytes", bytes), ifThere(put(g.Memory, "memory.memsw.limit_in_bytes", bytes)))
	}
	return errors.Join(put(g.Main, "memory.max", bytes), ifThere(put(g.Main, "memory.swap.max", 0)), ifThere(put(g.Main, "memory.oom.group", 1)))
}

func put(dir, file string, value int64) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strconv.FormatInt(value, 10))
	return errors.Join(err, f.Close())
}

// ifThere forgives a file that this kernel does not have.
func ifThere(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// drop removes what was made and never used.
func (g *Group) drop() error {
	var errs []error
	for _, dir := range []string{g.Main, g.Tasks, g.Memory} {
		if dir != "" {
			errs = append(errs, ifThere(unix.Rmdir(dir)))
		}
	}
	return errors.Join(errs...)
}

// Around calls start with the calling thread, which must be locked, in the cgroups of version 1:
// what it starts begins its life in them. The thread then goes back. For version 2 there is
// SysProcAttr.UseCgroupFD.
func (g Group) Around(start func() error) error {
	dirs := []string{}
	for _, dir := range []string{g.Tasks, g.Memory} {
		if dir != "" {
			dirs = append(dirs, dir)
		}
	}
	tid := int64(unix.Gettid())
	for i, dir := range dirs {
		if err := put(dir, "tasks", tid); err != nil {
			return errors.Join(fmt.Errorf("enter cgroup %s: %w", dir, err), back(dirs[:i], tid))
		}
	}
	return errors.Join(start(), back(dirs, tid))
}

func back(dirs []string, tid int64) error {
	var errs []error
	for _, dir := range dirs {
		if err := put(filepath.Dir(dir), "tasks", tid); err != nil {
			errs = append(errs, fmt.Errorf("leave cgroup %s: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}

// Hit names the limit that the group has run into, "" if none. It is asked before the group ends.
func (g Group) Hit() string {
	if g.memory != "" {
		file := "memory.events"
		if g.Memory != "" {
			file = "memory.oom_control"
		}
		if count(g.memory, file, "oom_kill ") > 0 {
			return HitMemory
		}
	}
	if g.tasks != "" && count(g.tasks, "pids.events", "max ") > 0 {
		return HitTasks
	}
	return ""
}

// count reads one number of a file of lines; 0 when it is not there.
func count(dir, file, key string) int64 {
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, key); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
			return n
		}
	}
	return 0
}
