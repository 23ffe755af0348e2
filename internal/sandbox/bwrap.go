package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"interlock/internal/sandbox/confine"
)

// etcVisible is all that a tree sees of /etc. What does not exist is left out; symbolic links
// are followed on the host, so that resolv.conf works without /run.
var etcVisible = []string{
	"passwd", "group", "nsswitch.conf", "hosts", "host.conf", "resolv.conf", "gai.conf",
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem",
	"ca-certificates", "ca-certificates.conf", "pki/tls/certs", "pki/ca-trust/extracted",
	"crypto-policies", "localtime", "timezone", "alternatives", "mime.types", "protocols",
	"services", "os-release",
}

// SystemDirs are seen by every tree of level Full; nothing below them needs a mount.
var SystemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// enter is the command that runs tail inside the policy's namespaces. tail is what bubblewrap
// executes; no secret is in it, since command lines can be read by anyone.
func (f Facts) enter(p Policy, tail []string, flags ...string) ([]string, error) {
	self, err := ownBinary()
	if err != nil {
		return nil, err
	}
	args := []string{
		f.Bwrap, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv",
	}
	if f.NoNesting {
		args = append(args, "--disable-userns")
	}
	if p.Network == "none" {
		args = append(args, "--unshare-net")
	}
	args = append(args, flags...)
	args = append(args, systemMounts()...)
	args = append(args, "--proc", "/proc", "--dev", "/dev")
	mounts, err := p.mountArgs(self)
	if err != nil {
		return nil, err
	}
	args = append(args, mounts...)
	args = append(args, "--remount-ro", "/", "--chdir", "/", "--")
	args = append(args, tail...)
	if os.Geteuid() == 0 {
		if !hasReentered() {
			return nil, errNotReentered
		}
		return append([]string{self, devicesArg}, args...), nil
	}
	return args, nil
}

// stage is the command of our own last stage: itself at level Landlock, else inside of bubblewrap.
func (f Facts) stage(p Policy, args []string, flags ...string) ([]string, error) {
	if p.Level == Full {
		return f.enter(p, append([]string{BinaryInside}, args...), flags...)
	}
	self, err := ownBinary()
	return append([]string{self}, args...), err
}

func ownBinary() (string, error) {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return "", fmt.Errorf("own program: %w", err)
	}
	if _, err := os.Stat(self); err != nil {
		return "", fmt.Errorf("own program %s was replaced or removed while it runs; start it again: %w", self, err)
	}
	return self, nil
}

// systemMounts are the read-only system directories, merged into /usr or not.
func systemMounts() []string {
	args := []string{"--ro-bind", "/usr", "/usr"}
	for _, name := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		if target, err := os.Readlink(name); err == nil {
			args = append(args, "--symlink", target, name)
		} else if st, err := os.Stat(name); err == nil && st.IsDir() {
			args = append(args, "--ro-bind", name, name)
		}
	}
	for _, name := range etcVisible {
		path := "/etc/" + name
		if real, err := filepath.EvalSymlinks(path); err == nil {
			args = append(args, "--ro-bind", real, path)
		}
	}
	return args
}

// mountArgs are home, temp, tool chains and the policy's own mounts, outer before inner.
func (p Policy) mountArgs(self string) ([]string, error) {
	list := []Mount{{Source: self, Target: BinaryInside}}
	var args []string
	for _, d := range []Mount{{p.Home, HomeInside, true}, {p.Temp, TempInside, true}} {
		if d.Source == "" {
			args = append(args, "--perms", "0700", "--tmpfs", d.Target)
		} else {
			list = append(list, d)
		}
	}
	list = append(list, p.Tools...)
	list = append(list, p.Mounts...)
	slices.SortStableFunc(list, func(a, b Mount) int {
		return strings.Count(filepath.Clean(a.Target), "/") - strings.Count(filepath.Clean(b.Target), "/")
	})
	for _, m := range list {
		if err := m.check(); err != nil {
			return nil, err
		}
		real, err := filepath.EvalSymlinks(m.Source)
		if err != nil {
			return nil, fmt.Errorf("mount %s: %w", m.Target, err)
		}
		flag := "--ro-bind"
		if m.Write {
			flag = "--bind"
		}
		args = append(args, flag, real, m.Target)
	}
	return args, nil
}

// check refuses targets that would cover what confines the tree.
func (m Mount) check() error {
	if !filepath.IsAbs(m.Source) || !filepath.IsAbs(m.Target) || filepath.Clean(m.Target) != m.Target || m.Target == "/" {
		return fmt.Errorf("mount %q at %q: both must be absolute and clean", m.Source, m.Target)
	}
	for _, dir := range []string{"/proc", "/dev", "/usr", "/interlock/bin"} {
		if _, ok := Below(dir, m.Target); ok && m.Target != BinaryInside {
			return fmt.Errorf("mount %q at %q: nothing may be mounted in %s", m.Source, m.Target, dir)
		}
	}
	return nil
}

// writable are the paths inside that Landlock leaves writable.
func (p Policy) writable() []string {
	out := []string{HomeInside, TempInside}
	if p.Level == Landlock {
		out = slices.DeleteFunc([]string{p.Home, p.Temp}, func(dir string) bool { return dir == "" })
	}
	for _, m := range p.Mounts {
		switch {
		case m.Write && p.Level == Landlock:
			out = append(out, m.Source)
		case m.Write:
			out = append(out, m.Target)
		}
	}
	return out
}

// enterDevices puts the calling thread, which must be locked, into a mount namespace of its own
// in which the device nodes are read-only mounts, then executes argv. Root keeps the ownership
// of /dev/null and its like without any capability, and could change their mode for the whole
// host from inside; on a read-only mount it cannot, and reading and writing still work.
func enterDevices(argv []string) error {
	runtime.LockOSThread()
	if len(argv) == 0 {
		return errors.New("no command")
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	for _, dev := range confine.Devices {
		if _, err := os.Lstat(dev); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := unix.Mount(dev, dev, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind %s: %w", dev, err)
		}
		if err := unix.Mount("", dev, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID, ""); err != nil {
			return fmt.Errorf("read-only %s: %w", dev, err)
		}
	}
	return fmt.Errorf("exec %s: %w", argv[0], syscall.Exec(argv[0], argv, os.Environ()))
}
