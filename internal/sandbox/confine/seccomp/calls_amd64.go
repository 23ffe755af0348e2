package seccomp

import "golang.org/x/sys/unix"

const (
	arch   = unix.AUDIT_ARCH_X86_64
	newest = unix.SYS_RSEQ_SLICE_YIELD
)

// native are the calls that only this architecture has.
var native = always(unix.EPERM, map[string]uint32{
	"iopl": unix.SYS_IOPL, "ioperm": unix.SYS_IOPERM, "modify_ldt": unix.SYS_MODIFY_LDT,
	"uselib": unix.SYS_USELIB, "ustat": unix.SYS_USTAT, "sysfs": unix.SYS_SYSFS, "_sysctl": unix.SYS__SYSCTL,
	"create_module": unix.SYS_CREATE_MODULE, "get_kernel_syms": unix.SYS_GET_KERNEL_SYMS,
	"query_module": unix.SYS_QUERY_MODULE, "lookup_dcookie": unix.SYS_LOOKUP_DCOOKIE,
})
