// Package inode names a directory so that no other is ever called the same, whatever path leads to
// it. It follows symbolic links and opens nothing.
package inode

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"
)

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

// Name names a directory by device, inode and, where the filesystem keeps it, birth time: an
// inode alone is given again to the next directory after a removal. Errors name no path.
func Name(path string) (string, error) {
	number, known := statxNumbers[runtime.GOARCH]
	if !known {
		return plain(path)
	}
	const atCwd, wanted, hasBtime = -100, 0x7ff | 0x800, 0x800 // AT_FDCWD, STATX_BASIC_STATS|STATX_BTIME
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return "", fmt.Errorf("statx: %w", err)
	}
	var st statx
	cwd := atCwd
	_, _, errno := syscall.Syscall6(number, uintptr(cwd), uintptr(unsafe.Pointer(name)), 0, wanted,
		uintptr(unsafe.Pointer(&st)), 0)
	if errno == syscall.ENOSYS || errno == syscall.EPERM {
		return plain(path)
	}
	if errno != 0 {
		return "", fmt.Errorf("statx: %w", errno)
	}
	key := fmt.Sprintf("%d.%d-%d", st.devMajor, st.devMinor, st.ino)
	if st.mask&hasBtime != 0 {
		key += fmt.Sprintf("-%d.%09d", st.btimeSec, st.btimeNsec)
	}
	return key, nil
}

func plain(path string) (string, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return "", fmt.Errorf("stat: %w", err)
	}
	dev := uint64(st.Dev)
	major := (dev>>8)&0xfff | (dev>>32)&^0xfff
	minor := dev&0xff | (dev>>12)&^0xff
	return fmt.Sprintf("%d.%d-%d", major, minor, st.Ino), nil
}
