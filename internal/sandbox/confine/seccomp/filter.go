// Package seccomp closes the system calls that no agent and no test needs and that widen what the
// kernel exposes: a deny list, as a classic BPF program. It never allows what the kernel forbids,
// and never looks at what a pointer points to, since the memory could change after the look.
package seccomp

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rule closes one system call, or the part of it that When tells.
type Rule struct {
	Name  string
	Nr    uint32
	Errno unix.Errno // what the caller gets
	When  []Test     // all of them hold; none: always
}

// Test looks at the low 32 bits of one argument: all that the kernel looks at in those tested.
type Test struct {
	Arg    int
	Bits   uint32   // holds when one of these bits is set; 0: see the others
	Is     []uint32 // holds when the argument is one of these
	IsNone []uint32 // holds when it is none of these
}

// Offsets in struct seccomp_data, on little-endian machines.
const (
	offsetNr   = 0
	offsetArch = 4
	offsetArgs = 16
)

const (
	load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	above = unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K
	bits  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	ret   = unix.BPF_RET | unix.BPF_K
)

// onward marks a jump to the end of its rule, filled in when the rule is complete.
const onward = 0xff

// Rules is the whole deny list of this architecture.
func Rules() []Rule { return append(append([]Rule(nil), common...), native...) }

// Program is the filter. A call of another architecture (32-bit calls on a 64-bit kernel) kills
// the process: every number means something else there. Numbers past the newest that is known
// here, the x32 ones among them, do not exist (ENOSYS), so that programs fall back.
func Program() ([]unix.SockFilter, error) {
	p := []unix.SockFilter{
		{Code: load, K: offsetArch},
		{Code: equal, K: arch, Jt: 1},
		{Code: ret, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: load, K: offsetNr},
		{Code: above, K: newest, Jf: 1},
		refuse(unix.ENOSYS),
	}
	for _, r := range Rules() {
		block, err := r.compile()
		if err != nil {
			return nil, fmt.Errorf("rule for %s: %w", r.Name, err)
		}
		p = append(p, block...)
	}
	return append(p, unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW}), nil
}

func refuse(errno unix.Errno) unix.SockFilter {
	return unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

// compile makes the block of one rule. It is entered with the call's number in the accumulator,
// and left with it when the rule does not apply.
func (r Rule) compile() ([]unix.SockFilter, error) {
	block := []unix.SockFilter{{Code: equal, K: r.Nr, Jf: onward}}
	for _, t := range r.When {
		block = append(block, t.compile()...)
	}
	block = append(block, refuse(r.Errno))
	end := len(block)
	if len(r.When) > 0 {
		block = append(block, unix.SockFilter{Code: load, K: offsetNr})
	}
	for i := range block {
		if block[i].Code&0x07 != unix.BPF_JMP {
			continue
		}
		if end-i-1 >= onward {
			return nil, errors.New("too long for its jumps")
		}
		for _, jump := range []*uint8{&block[i].Jt, &block[i].Jf} {
			if *jump == onward {
				*jump = uint8(end - i - 1)
			}
		}
	}
	return block, nil
}

// compile tests one argument: it goes on to what follows when the test holds, onward otherwise.
func (t Test) compile() []unix.SockFilter {
	out := []unix.SockFilter{{Code: load, K: uint32(offsetArgs + 8*t.Arg)}}
	if t.Bits != 0 {
		out = append(out, unix.SockFilter{Code: bits, K: t.Bits, Jf: onward})
	}
	for _, v := range t.IsNone {
		out = append(out, unix.SockFilter{Code: equal, K: v, Jt: onward})
	}
	for i, v := range t.Is {
		j := unix.SockFilter{Code: equal, K: v, Jt: uint8(len(t.Is) - 1 - i)}
		if i == len(t.Is)-1 {
			j.Jf = onward
		}
		out = append(out, j)
	}
	return out
}

// Supported says why calls cannot be filtered here; nil: they can.
func Supported() error {
	if arch == 0 {
		return errors.New("there is no table of system calls for this architecture")
	}
	for _, action := range []uint32{unix.SECCOMP_RET_KILL_PROCESS, unix.SECCOMP_RET_ERRNO} {
		_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
		if errno != 0 {
			return fmt.Errorf("the kernel does not filter system calls (seccomp: %w)", errno)
		}
	}
	return nil
}

// Install puts the filter on the calling thread, which must be locked and have no_new_privs set.
// It holds for all that the thread becomes and starts, and cannot be taken off.
func Install() error {
	if err := Supported(); err != nil {
		return err
	}
	p, err := Program()
	if err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	return nil
}
