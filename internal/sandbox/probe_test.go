package sandbox_test

import (
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reach tries what only the tests of level Landlock try. known is false for another word.
func reach(what string, args []string) (err error, known bool) {
	arg := ""
	if len(args) > 0 {
		arg = args[0]
	}
	n, _ := strconv.Atoi(arg)
	switch what {
	case "signal":
		err = unix.Kill(n, 0)
	case "stat":
		_, err = os.Stat(arg)
	case "watch":
		err = watchOne(arg)
	case "prlimit":
		var was unix.Rlimit
		if err = unix.Prlimit(n, unix.RLIMIT_CORE, nil, &was); err == nil {
			err = unix.Prlimit(n, unix.RLIMIT_CORE, &was, nil)
		}
	case "shm":
		var b []byte
		if b, err = unix.SysvShmAttach(n, 0, 0); err == nil {
			err = unix.SysvShmDetach(b)
		}
	case "udp":
		err = sendUDP(arg)
	case "list":
		_, err = os.ReadDir(arg)
	case "readlink":
		_, err = os.Readlink(arg)
	case "mkdir":
		err = os.Mkdir(arg, 0o700)
	case "symlink":
		err = os.Symlink("x", arg)
	case "rename":
		err = os.Rename(arg, args[1])
	case "link":
		err = os.Link(arg, args[1])
	case "fifo":
		err = unix.Mkfifo(arg, 0o600)
	case "dev":
		err = unix.Mknod(arg, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
	default:
		return call(what, n, arg)
	}
	return err, true
}

// call tries single system calls with arguments that change nothing, should they be allowed.
func call(what string, n int, arg string) (err error, known bool) {
	switch what {
	case "ptrace":
		err = unix.PtraceSeize(n)
	case "vmread":
		b := make([]byte, 8)
		local := unix.Iovec{Base: &b[0], Len: 8}
		_, err = unix.ProcessVMReadv(n, []unix.Iovec{local}, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
		if err == unix.EFAULT {
			err = nil // it was let in, and there is nothing at that address
		}
	case "keyctl":
		_, err = unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, false)
	case "iouring":
		var params [120]byte
		_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
		err = asError(errno)
	case "packet":
		_, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM, 0)
	case "clock":
		_, _, errno := unix.Syscall(unix.SYS_SETTIMEOFDAY, 0, 0, 0) // sets nothing
		err = asError(errno)
	case "chroot":
		err = syscall.Chroot(arg)
	default:
		return nil, false
	}
	return err, true
}

func asError(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
