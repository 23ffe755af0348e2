// Package statedir is the directory that state is kept in: whether it is fit for that, that it is
// private, whose turn it is to write in it, and who has it open. It knows nothing of what is kept
// there, and it never decides by a lock alone that somebody is dead.
package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// UnfitError says why a directory cannot hold state safely, and what to do.
type UnfitError struct {
	Why string
	Err error // may be nil
}

func (e *UnfitError) Error() string {
	if e.Err == nil {
		return e.Why
	}
	return e.Why + ": " + e.Err.Error()
}

// Unwrap returns the error of the system, if there was one.
func (e *UnfitError) Unwrap() error { return e.Err }

func unfit(err error, format string, args ...any) error {
	return &UnfitError{fmt.Sprintf(format, args...), err}
}

// Statfs returns the magic number of the filesystem that holds path, as statfs(2) gives it.
type Statfs func(path string) (magic int64, err error)

// SystemStatfs is statfs(2).
func SystemStatfs(path string) (int64, error) {
	var st unix.Statfs_t
	err := unix.Statfs(path, &st)
	return int64(st.Type), err
}

// shared names the filesystems on which locks or the order of writes cannot be trusted, or which
// several machines mount at once: a boot id says nothing about a holder on another machine.
var shared = map[uint32]string{
	unix.NFS_SUPER_MAGIC:   "NFS",
	unix.SMB_SUPER_MAGIC:   "SMB",
	unix.CIFS_SUPER_MAGIC:  "CIFS",
	unix.SMB2_SUPER_MAGIC:  "SMB2",
	unix.FUSE_SUPER_MAGIC:  "FUSE",
	unix.V9FS_MAGIC:        "9P",
	unix.CEPH_SUPER_MAGIC:  "Ceph",
	unix.AFS_SUPER_MAGIC:   "AFS",
	unix.AFS_FS_MAGIC:      "AFS",
	unix.CODA_SUPER_MAGIC:  "Coda",
	unix.NCP_SUPER_MAGIC:   "NCP",
	unix.OCFS2_SUPER_MAGIC: "OCFS2",
	0x01161970:             "GFS2",
	0x0bd00bd0:             "Lustre",
	0x47504653:             "GPFS",
	0x19830326:             "BeeGFS",
	0x786f4256:             "VirtualBox shared folder",
}

// CheckFilesystem refuses a filesystem on which no lease is safe. dir need not exist yet; then
// its nearest ancestor is asked.
func CheckFilesystem(dir string, ask Statfs) (warning string, err error) {
	at := dir
	magic, err := ask(at)
	for errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
		at = filepath.Dir(at)
		magic, err = ask(at)
	}
	if err != nil {
		return "", unfit(err, "the filesystem of %s cannot be told, nothing was changed; name a local directory with --state-dir", dir)
	}
	kind := uint32(magic) // f_type is signed on some platforms
	if name, bad := shared[kind]; bad {
		return "", unfit(nil, "%s is on %s, where neither locks nor the order of writes can be trusted; nothing was changed; "+
			"name a directory on a local disk, for example --state-dir /var/lib/interlock", dir, name)
	}
	if kind == unix.OVERLAYFS_SUPER_MAGIC {
		return fmt.Sprintf("the state directory %s is on overlayfs: it is lost with the container; name a volume with --state-dir", dir), nil
	}
	return "", nil
}

// Prepare makes the state directory, or makes sure that one that is there is private.
// One that others can enter is made private only when it is empty or holds the file name. Other
// errors than *UnfitError are the system's.
func Prepare(dir, name string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return unfit(err, "%s", dir)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return unfit(nil, "%s belongs to user %d, not to you (%d); nothing was changed; name a directory of your own with --state-dir",
			dir, st.Uid, os.Geteuid())
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	ours, err := emptyOrOurs(dir, name)
	if err != nil {
		return unfit(err, "%s", dir)
	}
	if !ours || info.Mode()&fs.ModeSticky != 0 {
		return unfit(nil, "%s is open to others (mode %04o) and holds other files; nothing was changed; "+
			"name an empty or new directory with --state-dir", dir, info.Mode().Perm())
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return unfit(err, "%s cannot be made private", dir)
	}
	return nil
}

// emptyOrOurs reports whether a directory may be made private without surprise.
func emptyOrOurs(dir, ours string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	if len(entries) == 0 {
		return true, nil
	}
	_, err = os.Lstat(filepath.Join(dir, ours))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// TimeNamespace names the time namespace of this process. CLOCK_BOOTTIME of another one may be
// shifted, so leases of the two cannot be compared. A kernel without them has only one.
func TimeNamespace() (string, error) {
	ns, err := os.Readlink("/proc/self/ns/time")
	if errors.Is(err, fs.ErrNotExist) {
		return "none", nil
	}
	return ns, err
}
