package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"interlock/internal/sandbox/cgroup"
	"interlock/internal/sandbox/process"
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
			t.init.Signal(unix.SIGKILL) // the kernel then kills the whole namespace
		}
		if err := process.KillDescendants(os.Getpid()); err != nil {
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
