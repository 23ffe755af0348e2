package seccomp

import "golang.org/x/sys/unix"

const (
	arch   = unix.AUDIT_ARCH_AARCH64
	newest = unix.SYS_RSEQ_SLICE_YIELD
)

// native are the calls that only this architecture has.
var native = always(unix.EPERM, map[string]uint32{"lookup_dcookie": unix.SYS_LOOKUP_DCOOKIE})
