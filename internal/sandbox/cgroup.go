package sandbox

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupPrefix begins the name of every cgroup made here; nothing else is ever killed.
const cgroupPrefix = "interlock-"

// ownCgroup is the directory of the calling process in the cgroup v2 hierarchy, wherever that is
// mounted: hybrid layouts have it beside the v1 controllers.
func ownCgroup() (string, error) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	own := ""
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "0::"); ok {
			own = strings.TrimSuffix(rest, "\n")
		}
	}
	if own == "" {
		return "", errors.New("this process is in no cgroup v2")
	}
	root, point, err := cgroupMount()
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(root, own)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", fmt.Errorf("own cgroup %s is outside of what is mounted at %s", own, point)
	}
	return filepath.Join(point, rel), nil
}

// cgroupMount finds the cgroup2 file system in mountinfo: the path inside it that is mounted,
// and where.
func cgroupMount() (root, point string, err error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		left, right, ok := strings.Cut(s.Text(), " - ")
		fields := strings.Fields(left)
		if ok && len(fields) >= 5 && strings.HasPrefix(right, "cgroup2 ") {
			return unescapeMount(fields[3]), unescapeMount(fields[4]), nil
		}
	}
	if err := s.Err(); err != nil {
		return "", "", err
	}
	return "", "", errors.New("no cgroup2 file system is mounted")
}

// unescapeMount undoes the octal escapes of mountinfo.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// makeCgroup creates a fresh cgroup below base and checks that it can be killed as a whole.
func makeCgroup(base, session string) (string, error) {
	var salt [4]byte
	if _, err := rand.Read(salt[:]); err != nil {
		return "", err
	}
	dir := filepath.Join(base, cgroupPrefix+plainName(session)+"-"+hex.EncodeToString(salt[:]))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	for _, name := range []string{"cgroup.kill", "cgroup.procs"} {
		if err := unix.Access(filepath.Join(dir, name), unix.W_OK); err != nil {
			return "", errors.Join(fmt.Errorf("%s in %s: %w", name, base, err), os.Remove(dir))
		}
	}
	// Starting a process directly in it needs write access to the parent's list as well.
	if err := unix.Access(filepath.Join(base, "cgroup.procs"), unix.W_OK); err != nil {
		return "", errors.Join(fmt.Errorf("cgroup.procs in %s: %w", base, err), os.Remove(dir))
	}
	return dir, nil
}

func plainName(s string) string {
	out := []byte(s)
	for i, c := range out {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' {
			out[i] = '_'
		}
	}
	return string(out[:min(len(out), 64)])
}

// endCgroup kills everything in the cgroup, waits until the kernel says that nothing is left,
// and removes it.
func endCgroup(ctx context.Context, dir string) error {
	if err := checkCgroup(dir); err != nil {
		return err
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
		if errors.Is(err, fs.ErrNotExist) {
			return cgroupGone(dir)
		}
		if err != nil && !errors.Is(err, unix.ENODEV) {
			return fmt.Errorf("kill cgroup: %w", err)
		}
		busy, err := populated(dir)
		if err == nil && !busy {
			err = removeCgroup(dir)
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				return cgroupGone(dir)
			}
		}
		if !sleep(ctx, pause) {
			return fmt.Errorf("cgroup %s: processes are left: %w", dir, context.Cause(ctx))
		}
	}
}

// checkCgroup refuses a directory that is not a cgroup of ours. One that is gone passes.
func checkCgroup(dir string) error {
	if !strings.HasPrefix(filepath.Base(dir), cgroupPrefix) || !filepath.IsAbs(dir) {
		return fmt.Errorf("%q is not a cgroup of a session", dir)
	}
	return nil
}

// cgroupGone concludes from a missing directory that its processes are gone. The kernel removes
// only empty cgroups, but the path must lie in a cgroup2 file system for that to say anything.
func cgroupGone(dir string) error {
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

// removeCgroup removes the cgroup and those that were made below it.
func removeCgroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeCgroup(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return unix.Rmdir(dir)
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
