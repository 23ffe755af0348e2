package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// End kills everything in a cgroup of version 2, waits until the kernel says that nothing is left,
// and removes it.
func End(ctx context.Context, dir string) error {
	if err := check(dir); err != nil {
		return err
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
		if errors.Is(err, fs.ErrNotExist) {
			return gone(dir)
		}
		if err != nil && !errors.Is(err, unix.ENODEV) {
			return fmt.Errorf("kill cgroup: %w", err)
		}
		busy, err := populated(dir)
		if err == nil && !busy {
			err = remove(dir)
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				return gone(dir)
			}
		}
		if !sleep(ctx, pause) {
			return fmt.Errorf("cgroup %s: processes are left: %w", dir, context.Cause(ctx))
		}
	}
}

// check refuses a directory that is not a cgroup of ours. One that is gone passes.
func check(dir string) error {
	if !strings.HasPrefix(filepath.Base(dir), prefix) || !filepath.IsAbs(dir) {
		return fmt.Errorf("%q is not a cgroup of a session", dir)
	}
	return nil
}

// gone concludes from a missing directory that its processes are gone. The kernel removes
// only empty cgroups, but the path must lie in a cgroup2 file system for that to say anything.
func gone(dir string) error {
	for p := filepath.Dir(dir); ; p = filepath.Dir(p) {
		var st unix.Statfs_t
		err := unix.Statfs(p, &st)
		if err == nil && st.Type == unix.CGROUP2_SUPER_MAGIC {
			return nil
		}
		if err == nil || p == "/" {
			return fmt.Errorf("%s is not in a cgroup2 file system here", dir)
		}
	}
}

func populated(dir string) (bool, error) {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "populated "); ok {
			return strings.TrimSpace(v) != "0", nil
		}
	}
	return false, fmt.Errorf("%s/cgroup.events says nothing", dir)
}

// remove removes the cgroup and those that were made below it.
func remove(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return unix.Rmdir(dir)
}

// Clear removes a cgroup of version 1, and first kills what is still in it: a tree that is proved
// dead by other means may have had a process that went its own way. One that is gone is fine.
func Clear(ctx context.Context, dir string) error {
	if dir == "" {
		return nil
	}
	if err := check(dir); err != nil {
		return err
	}
	_ = put(dir, "pids.max", 0) // where tasks are bounded no storm of forks can outrun this
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := remove(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("remove cgroup: %w", err)
		}
		killListed(dir)
		if !sleep(ctx, pause) {
			return fmt.Errorf("cgroup %s: processes are left: %w", dir, context.Cause(ctx))
		}
	}
}

// killListed kills the processes that a cgroup names. A pid is taken again only after its process
// has left the cgroup, so each is looked for once more behind a descriptor that holds it.
func killListed(dir string) {
	for pid := range pids(dir) {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		if pids(dir)[pid] {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // what it leaves is seen in the next round
		}
		unix.Close(fd)
	}
}

// pids are the processes in a cgroup, none when it cannot be read. 0 stands for those of another
// pid namespace.
func pids(dir string) map[int]bool {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	out := map[int]bool{}
	for _, line := range strings.Fields(string(b)) {
		if pid, err := strconv.Atoi(line); err == nil && pid > 0 {
			out[pid] = true
		}
	}
	return out
}

// sleep waits d; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
