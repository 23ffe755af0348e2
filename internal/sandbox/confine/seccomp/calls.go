package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"
)

// namespaces are the flags of clone and unshare that make one. CLONE_NEWTIME is among the flags
// of unshare only: in those of clone the same bit belongs to the exit signal.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// tiocLinux is the ioctl by which a console's screen is read and its keys are fed.
const tiocLinux = 0x541c

// common are the rules of every architecture. ptrace and process_vm_readv stay open, so that
// debuggers work: Landlock confines both to processes of the same tree.
var common = slices.Concat(shut, missing, sockets("socket", unix.SYS_SOCKET), sockets("socketpair", unix.SYS_SOCKETPAIR), shaped)

var shut = always(unix.EPERM, map[string]uint32{
	// The tree of files as it is seen, and files by handle, past every path.
	"mount": unix.SYS_MOUNT, "umount2": unix.SYS_UMOUNT2, "pivot_root": unix.SYS_PIVOT_ROOT,
	"chroot": unix.SYS_CHROOT, "mount_setattr": unix.SYS_MOUNT_SETATTR, "open_tree": unix.SYS_OPEN_TREE,
	"open_tree_attr": unix.SYS_OPEN_TREE_ATTR, "move_mount": unix.SYS_MOVE_MOUNT, "fsopen": unix.SYS_FSOPEN,
	"fsconfig": unix.SYS_FSCONFIG, "fsmount": unix.SYS_FSMOUNT, "fspick": unix.SYS_FSPICK,
	"name_to_handle_at": unix.SYS_NAME_TO_HANDLE_AT, "open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT,
	"fanotify_init": unix.SYS_FANOTIFY_INIT, "quotactl": unix.SYS_QUOTACTL, "quotactl_fd": unix.SYS_QUOTACTL_FD,
	"swapon": unix.SYS_SWAPON, "swapoff": unix.SYS_SWAPOFF, "acct": unix.SYS_ACCT,
	// The machine.
	"reboot": unix.SYS_REBOOT, "kexec_load": unix.SYS_KEXEC_LOAD, "kexec_file_load": unix.SYS_KEXEC_FILE_LOAD,
	"init_module": unix.SYS_INIT_MODULE, "finit_module": unix.SYS_FINIT_MODULE, "delete_module": unix.SYS_DELETE_MODULE,
	"settimeofday": unix.SYS_SETTIMEOFDAY, "clock_settime": unix.SYS_CLOCK_SETTIME, "adjtimex": unix.SYS_ADJTIMEX,
	"clock_adjtime": unix.SYS_CLOCK_ADJTIME, "sethostname": unix.SYS_SETHOSTNAME,
	"setdomainname": unix.SYS_SETDOMAINNAME, "syslog": unix.SYS_SYSLOG, "vhangup": unix.SYS_VHANGUP,
	// Programs in the kernel, and what made many of its faults usable.
	"bpf": unix.SYS_BPF, "perf_event_open": unix.SYS_PERF_EVENT_OPEN, "userfaultfd": unix.SYS_USERFAULTFD,
	"keyctl": unix.SYS_KEYCTL, "add_key": unix.SYS_ADD_KEY, "request_key": unix.SYS_REQUEST_KEY,
	"setns": unix.SYS_SETNS, "move_pages": unix.SYS_MOVE_PAGES, "migrate_pages": unix.SYS_MIGRATE_PAGES,
})

// missing are answered as by a kernel that does not have them: programs then do without.
var missing = always(unix.ENOSYS, map[string]uint32{
	// Calls made through a ring are seen by no filter.
	"io_uring_setup": unix.SYS_IO_URING_SETUP, "io_uring_enter": unix.SYS_IO_URING_ENTER,
	"io_uring_register": unix.SYS_IO_URING_REGISTER,
	// Its flags are in memory, where a filter cannot look. Without it libc uses clone.
	"clone3": unix.SYS_CLONE3,
	// Removed from kernels long ago.
	"nfsservctl": unix.SYS_NFSSERVCTL,
})

// shaped are closed for some arguments only.
var shaped = []Rule{
	Rule{Name: "unshare", Nr: unix.SYS_UNSHARE, Errno: unix.EPERM, When: []Test{{Arg: 0, Bits: namespaces | unix.CLONE_NEWTIME}}},
	Rule{Name: "clone", Nr: unix.SYS_CLONE, Errno: unix.EPERM, When: []Test{{Arg: 0, Bits: namespaces}}},
	// Feeding a terminal's input is typing in the operator's name.
	Rule{Name: "ioctl", Nr: unix.SYS_IOCTL, Errno: unix.EPERM, When: []Test{{Arg: 1, Is: []uint32{unix.TIOCSTI, tiocLinux}}}},
	// Left are: asking, plain Linux, 32-bit names, old release numbers, and fixed addresses (debuggers).
	Rule{Name: "personality", Nr: unix.SYS_PERSONALITY, Errno: unix.EPERM, When: []Test{{Arg: 0, IsNone: []uint32{
		0, 0x8, 0x20000, 0x20008, 0x40000, 0xffffffff}}}},
}

// sockets leaves the families that programs need; of netlink only the one for routes, by which
// libc and every runtime list the network interfaces.
func sockets(name string, nr uint32) []Rule {
	return []Rule{
		{Name: name, Nr: nr, Errno: unix.EAFNOSUPPORT, When: []Test{{Arg: 0, IsNone: []uint32{
			unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}}}},
		{Name: name, Nr: nr, Errno: unix.EPROTONOSUPPORT, When: []Test{
			{Arg: 0, Is: []uint32{unix.AF_NETLINK}}, {Arg: 2, IsNone: []uint32{unix.NETLINK_ROUTE}}}},
	}
}
