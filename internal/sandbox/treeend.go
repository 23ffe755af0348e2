package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"interlock/internal/sandbox/cgroup"
)

// end kills everything the tree ever started and returns when nothing of it is left. All ways
// are used together: a process at level None may leave its cgroup, but not its ancestor.
func (t *tree) end(ctx context.Context) error {
	if t.group.Main != "" {
		if err := cgroup.End(ctx, t.group.Main); err != nil {
			return err
		}
	}
	if t.started {
		if err := t.endChildren(ctx); err != nil {
			return err
		}
	}
	if err := errors.Join(cgroup.Clear(ctx, t.group.Tasks), cgroup.Clear(ctx, t.group.Memory)); err != nil || !t.started {
		return err
	}
	select { // a pipe that someone outside was handed must not keep the session open
	case <-t.copied:
	case <-time.After(2 * time.Second):
		t.output.Close()
		<-t.copied
	}
	return nil
}

// endChildren kills descendants until the kernel says that this process has no child.
func (t *tree) endChildren(ctx context.Context) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		select {
		case <-t.alone:
			return nil
		default:
		}
		if t.init.PID > 0 {
			t.init.signal(unix.SIGKILL) // the kernel then kills the whole namespace
		}
		if err := killDescendants(os.Getpid()); err != nil {
			return err
		}
		select {
		case <-t.alone:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("processes are left: %w", context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// proof says how the end of the tree was confirmed.
func (t *tree) proof() string {
	switch {
	case t.group.Main != "":
		return "the cgroup is empty and removed, no child is left"
	case t.init.PID > 0:
		return "the pid namespace has ended, no child is left"
	}
	return "no child is left"
}

// signal sends to exactly this process, never to a later one with its pid. A process that is
// gone is not an error.
func (p Process) signal(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	st, err := readStat(p.PID)
	if err != nil || st.start != p.Start {
		return nil
	}
	err = unix.PidfdSendSignal(fd, sig, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// killDescendants stops all descendants first, until a pass finds no new one, so that a storm of
// forks cannot outrun it; then it kills them.
func killDescendants(of int) error {
	seen := map[Process]bool{}
	for fresh := true; fresh; {
		fresh = false
		list, err := descendants(of)
		if err != nil {
			return err
		}
		for _, p := range list {
			if !seen[p] {
				seen[p], fresh = true, true
				p.signal(unix.SIGSTOP)
			}
		}
	}
	for p := range seen {
		p.signal(unix.SIGKILL)
	}
	return nil
}

// descendants lists the living processes below one, zombies left out.
func descendants(of int) ([]Process, error) {
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	children := map[int][]stat{}
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			continue
		}
		if st, err := readStat(pid); err == nil {
			children[st.parent] = append(children[st.parent], st)
		}
	}
	var out []Process
	for todo := []int{of}; len(todo) > 0; todo = todo[1:] {
		for _, st := range children[todo[0]] {
			todo = append(todo, st.pid)
			if st.state != 'Z' && st.state != 'X' {
				out = append(out, Process{PID: st.pid, Start: st.start})
			}
		}
		delete(children, todo[0])
	}
	return out, nil
}
