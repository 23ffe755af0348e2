package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"
)

// Location is where a repository is and what it is called, whatever path led to it.
type Location struct {
	Key       string // "local:<device>-<inode>-<birth time>" of the common git directory
	CommonDir string // absolute, symbolic links resolved
	Worktree  string // top of the work tree the path is in, "" when it is in none
	Bare      bool
}

// Locate finds the repository that path is in. Subdirectories, symbolic links, linked work trees
// and bind mounts of one repository give one Key. ErrNotRepository; ErrRefused when its objects are
// named by another hash than SHA-1.
func (g *Git) Locate(ctx context.Context, path string) (Location, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return Location{}, err
	}
	info, err := os.Stat(abs)
	if err != nil || !info.IsDir() {
		return Location{}, fmt.Errorf("%w: %s is not a directory that can be read", ErrNotRepository, Escape(abs))
	}
	common, err := g.askPath(ctx, abs, "--git-common-dir")
	if err != nil {
		return Location{}, err
	}
	if err := g.needSHA1(ctx, abs); err != nil {
		return Location{}, err
	}
	if common, err = filepath.EvalSymlinks(common); err != nil {
		return Location{}, fmt.Errorf("%w: %s: %w", ErrNotRepository, Escape(abs), err)
	}
	loc := Location{CommonDir: common}
	bare, err := g.askPath(ctx, abs, "--is-bare-repository")
	if err != nil {
		return Location{}, err
	}
	inside, err := g.askPath(ctx, abs, "--is-inside-work-tree")
	if err != nil {
		return Location{}, err
	}
	loc.Bare = bare == "true"
	if inside == "true" {
		if loc.Worktree, err = g.askPath(ctx, abs, "--show-toplevel"); err != nil {
			return Location{}, err
		}
	}
	loc.Key, err = fileKey(common)
	return loc, err
}

func (g *Git) needSHA1(ctx context.Context, dir string) error {
	format, err := g.askPath(ctx, dir, "--show-object-format")
	if err == nil && format != "sha1" {
		err = fmt.Errorf("%w: the repository at %s names objects by %s; only sha1 is supported",
			ErrRefused, Escape(dir), Escape(format))
	}
	return err
}

// askPath asks rev-parse one question, so that an answer with a newline in it stays one answer.
func (g *Git) askPath(ctx context.Context, dir, question string) (string, error) {
	out, err := g.Run(ctx, Command{Dir: dir, Args: []string{"-c", "safe.directory=*",
		"rev-parse", "--path-format=absolute", question}})
	if err == nil {
		return strings.TrimSuffix(string(out.Stdout), "\n"), nil
	}
	var failed *Error
	if errors.As(err, &failed) && !failed.Timeout && failed.Code > 0 {
		return "", fmt.Errorf("%w: %s: %s", ErrNotRepository, Escape(dir), failed.Stderr)
	}
	return "", err
}

// statxNumbers are the system call numbers of statx(2), which package syscall does not have.
var statxNumbers = map[string]uintptr{
	"amd64": 332, "arm64": 291, "riscv64": 291, "loong64": 291, "arm": 397, "386": 383,
	"ppc64": 383, "ppc64le": 383, "s390x": 379, "mips64": 5326, "mips64le": 5326,
	"mips": 4366, "mipsle": 4366,
}

// statx is struct statx of the kernel, as far as it is read here; it is 256 bytes long.
type statx struct {
	mask      uint32
	_         [28]byte
	ino       uint64
	_         [40]byte
	btimeSec  int64
	btimeNsec uint32
	_         [44]byte
	devMajor  uint32
	devMinor  uint32
	_         [112]byte
}

// fileKey names a directory by device, inode and, where the filesystem keeps it, birth time: an
// inode alone is given again to the next directory after a removal.
func fileKey(path string) (string, error) {
	number, known := statxNumbers[runtime.GOARCH]
	if !known {
		return plainKey(path)
	}
	const atCwd, wanted, hasBtime = -100, 0x7ff | 0x800, 0x800 // AT_FDCWD, STATX_BASIC_STATS|STATX_BTIME
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	var st statx
	cwd := atCwd
	_, _, errno := syscall.Syscall6(number, uintptr(cwd), uintptr(unsafe.Pointer(name)), 0, wanted,
		uintptr(unsafe.Pointer(&st)), 0)
	if errno == syscall.ENOSYS || errno == syscall.EPERM {
		return plainKey(path)
	}
	if errno != 0 {
		return "", &os.PathError{Op: "statx", Path: Escape(path), Err: errno}
	}
	key := fmt.Sprintf("local:%d.%d-%d", st.devMajor, st.devMinor, st.ino)
	if st.mask&hasBtime != 0 {
		key += fmt.Sprintf("-%d.%09d", st.btimeSec, st.btimeNsec)
	}
	return key, nil
}

func plainKey(path string) (string, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return "", &os.PathError{Op: "stat", Path: Escape(path), Err: err}
	}
	dev := uint64(st.Dev)
	major := (dev>>8)&0xfff | (dev>>32)&^0xfff
	minor := dev&0xff | (dev>>12)&^0xff
	return fmt.Sprintf("local:%d.%d-%d", major, minor, st.Ino), nil
}
