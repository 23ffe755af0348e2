package seccomp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"interlock/internal/covered"
	"interlock/internal/sandbox/confine/seccomp"
)

// call is one system call to be made for real, and the error that is expected of it.
type call struct {
	Name string
	Nr   uintptr
	Args [6]uintptr
	Want unix.Errno
}

// TestMain also plays the child that puts the filter on itself and makes calls.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "make-calls" {
		makeCalls(os.Args[2] != "free")
		return
	}
	if len(os.Args) == 3 && os.Args[1] == "make-calls-exec" {
		runtime.LockOSThread()
		check(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		check(seccomp.Install())
		check(unix.Exec(os.Args[2], os.Args[2:], nil))
	}
	covered.Children()
	os.Exit(m.Run())
}

// makeCalls reads calls from standard input and prints the error of each.
func makeCalls(filtered bool) {
	runtime.LockOSThread()
	var calls []call
	check(json.NewDecoder(os.Stdin).Decode(&calls))
	check(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	if filtered {
		check(seccomp.Install())
	}
	got := make([]unix.Errno, len(calls))
	for i, c := range calls {
		a := c.Args
		_, _, got[i] = unix.RawSyscall6(c.Nr, a[0], a[1], a[2], a[3], a[4], a[5])
	}
	check(json.NewEncoder(os.Stdout).Encode(got))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// results makes the calls in a child of its own, in a session without a terminal.
func results(t *testing.T, how string, calls []call) []unix.Errno {
	t.Helper()
	if err := seccomp.Supported(); err != nil {
		if os.Getenv("INTERLOCK_CI") != "" {
			t.Fatalf("this may not be skipped in CI: %v", err)
		}
		t.Skipf("there is no seccomp here: %v", err)
	}
	in, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "make-calls", how)
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(in)), os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if how != "refused" { // what these calls do leaves no process that could write its coverage
		cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "GOCOVERDIR=") })
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []unix.Errno
	if err := json.Unmarshal(out, &got); err != nil || len(got) != len(calls) {
		t.Fatalf("%v: %q", err, out)
	}
	return got
}

// bad are arguments with which no call does anything, if it is made after all.
var bad = [6]uintptr{^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0)}

// shapes are the arguments for the rules that look at them.
var shapes = map[string][]call{
	"clone": {
		{Args: [6]uintptr{unix.CLONE_NEWUSER}}, {Args: [6]uintptr{unix.CLONE_NEWNS | unix.CLONE_VM}},
		{Args: [6]uintptr{unix.CLONE_NEWPID | 17}}, {Args: [6]uintptr{unix.CLONE_NEWNET}},
	},
	"unshare": {
		{Args: [6]uintptr{unix.CLONE_NEWUSER}}, {Args: [6]uintptr{unix.CLONE_NEWNS | unix.CLONE_FS}},
		{Args: [6]uintptr{unix.CLONE_NEWTIME}}, {Args: [6]uintptr{unix.CLONE_NEWCGROUP}},
	},
	"ioctl": {
		{Args: [6]uintptr{bad[0], unix.TIOCSTI}}, {Args: [6]uintptr{bad[0], unix.TIOCSTI | 1<<40}},
		{Args: [6]uintptr{bad[0], 0x541c}},
	},
	"personality": {{Args: [6]uintptr{0x0400000}}, {Args: [6]uintptr{0x0008 | 0x0100000}}},
	"socket": {
		{Args: [6]uintptr{unix.AF_PACKET, 3}, Want: unix.EAFNOSUPPORT}, {Args: [6]uintptr{unix.AF_VSOCK, 1}, Want: unix.EAFNOSUPPORT},
		{Args: [6]uintptr{unix.AF_ALG, 5}, Want: unix.EAFNOSUPPORT}, {Args: [6]uintptr{unix.AF_ALG | 1<<32, 5}, Want: unix.EAFNOSUPPORT},
		{Args: [6]uintptr{unix.AF_NETLINK, 3, unix.NETLINK_NETFILTER}, Want: unix.EPROTONOSUPPORT},
		{Args: [6]uintptr{unix.AF_NETLINK, 3, unix.NETLINK_KOBJECT_UEVENT}, Want: unix.EPROTONOSUPPORT},
	},
	"socketpair": {{Args: [6]uintptr{unix.AF_TIPC, 1}, Want: unix.EAFNOSUPPORT}},
}

// refusedCalls is each rule as a call, and numbers that this kernel or this table does not know.
func refusedCalls() []call {
	var out []call
	for _, r := range seccomp.Rules() {
		if len(r.When) == 0 {
			out = append(out, call{r.Name, uintptr(r.Nr), bad, r.Errno})
			continue
		}
		for _, c := range shapes[r.Name] {
			if c.Want == 0 {
				c.Want = r.Errno
			}
			c.Name, c.Nr = r.Name, uintptr(r.Nr)
			out = append(out, c)
		}
	}
	for _, nr := range []uintptr{472, 500, 1 << 20, 0x40000000 | unix.SYS_GETPID, 0x40000000 | unix.SYS_MOUNT} {
		out = append(out, call{fmt.Sprintf("number %#x", nr), nr, bad, unix.ENOSYS})
	}
	return out
}

// TestEachRefusedCall makes every call of the table for real, and those that must not slip past.
func TestEachRefusedCall(t *testing.T) {
	t.Parallel()
	calls := refusedCalls()
	for i, errno := range results(t, "refused", calls) {
		if errno != calls[i].Want {
			t.Errorf("%s %#x: got %d (%v), want %v", calls[i].Name, calls[i].Args, errno, errno, calls[i].Want)
		}
	}
	t.Logf("%d calls refused, %d rules", len(calls), len(seccomp.Rules()))
}

// TestRefusedByTheFilter: without the filter the same calls fail in other ways or not at all, so
// that it is the filter that was tested.
func TestRefusedByTheFilter(t *testing.T) {
	t.Parallel()
	calls := slices.DeleteFunc(refusedCalls(), func(c call) bool { return c.Name == "vhangup" || c.Name == "clone" })
	same := []string{}
	for i, errno := range results(t, "free", calls) {
		if errno == calls[i].Want && calls[i].Want != unix.ENOSYS {
			same = append(same, calls[i].Name)
		}
	}
	t.Logf("refused by this kernel too: %q", same)
	if os.Geteuid() == 0 && len(same) > 5 {
		t.Errorf("%d of %d calls prove nothing here", len(same), len(calls))
	}
}

// TestEachNeededCall: what programs are made of goes on working. Bad arguments do, since a filter
// would answer first.
func TestEachNeededCall(t *testing.T) {
	t.Parallel()
	calls := []call{
		{Name: "socket unix", Nr: unix.SYS_SOCKET, Args: [6]uintptr{unix.AF_UNIX, 1}},
		{Name: "socket inet", Nr: unix.SYS_SOCKET, Args: [6]uintptr{unix.AF_INET, 1}},
		{Name: "socket inet6", Nr: unix.SYS_SOCKET, Args: [6]uintptr{unix.AF_INET6, 2 | unix.SOCK_CLOEXEC}},
		{Name: "socket route", Nr: unix.SYS_SOCKET, Args: [6]uintptr{unix.AF_NETLINK, 3, 0}},
		{Name: "socketpair", Nr: unix.SYS_SOCKETPAIR, Args: [6]uintptr{unix.AF_UNIX, 1, 0, 0}},
		{Name: "personality query", Nr: unix.SYS_PERSONALITY, Args: [6]uintptr{0xffffffff}},
		{Name: "personality for debuggers", Nr: unix.SYS_PERSONALITY, Args: [6]uintptr{0x40000}},
		{Name: "unshare files", Nr: unix.SYS_UNSHARE, Args: [6]uintptr{unix.CLONE_FILES}},
		{Name: "ioctl", Nr: unix.SYS_IOCTL, Args: [6]uintptr{0, unix.TIOCGWINSZ}},
		{Name: "ptrace", Nr: unix.SYS_PTRACE, Args: [6]uintptr{16, ^uintptr(0) >> 1}},
		{Name: "process_vm_readv", Nr: unix.SYS_PROCESS_VM_READV, Args: [6]uintptr{0, 0, 0, 0, 0, 0}},
		{Name: "memfd_create", Nr: unix.SYS_MEMFD_CREATE, Args: [6]uintptr{}},
		{Name: "inotify_init1", Nr: unix.SYS_INOTIFY_INIT1, Args: [6]uintptr{}},
		{Name: "epoll_create1", Nr: unix.SYS_EPOLL_CREATE1, Args: [6]uintptr{}},
		{Name: "eventfd2", Nr: unix.SYS_EVENTFD2, Args: [6]uintptr{}},
		{Name: "timerfd_create", Nr: unix.SYS_TIMERFD_CREATE, Args: [6]uintptr{}},
		{Name: "getrandom", Nr: unix.SYS_GETRANDOM, Args: [6]uintptr{}},
		{Name: "statx", Nr: unix.SYS_STATX, Args: bad},
		{Name: "openat2", Nr: unix.SYS_OPENAT2, Args: bad},
		{Name: "faccessat2", Nr: unix.SYS_FACCESSAT2, Args: bad},
		{Name: "copy_file_range", Nr: unix.SYS_COPY_FILE_RANGE, Args: bad},
		{Name: "pidfd_open", Nr: unix.SYS_PIDFD_OPEN, Args: bad},
		{Name: "close_range", Nr: unix.SYS_CLOSE_RANGE, Args: [6]uintptr{100, 200}},
		{Name: "membarrier", Nr: unix.SYS_MEMBARRIER, Args: [6]uintptr{}},
		{Name: "landlock_create_ruleset", Nr: unix.SYS_LANDLOCK_CREATE_RULESET, Args: bad},
		{Name: "seccomp", Nr: unix.SYS_SECCOMP, Args: bad},
		{Name: "sched_setaffinity", Nr: unix.SYS_SCHED_SETAFFINITY, Args: [6]uintptr{0, 8, 0}},
		{Name: "prlimit64", Nr: unix.SYS_PRLIMIT64, Args: [6]uintptr{}},
		{Name: "splice", Nr: unix.SYS_SPLICE, Args: bad},
		{Name: "flock", Nr: unix.SYS_FLOCK, Args: bad},
		{Name: "mknodat", Nr: unix.SYS_MKNODAT, Args: bad},
		{Name: "msync", Nr: unix.SYS_MSYNC, Args: [6]uintptr{}},
		{Name: "shmget", Nr: unix.SYS_SHMGET, Args: [6]uintptr{1 << 20, 0, 0}},
		{Name: "futex_waitv", Nr: unix.SYS_FUTEX_WAITV, Args: bad},
	}
	for i, errno := range results(t, "filtered", calls) {
		if slices.Contains([]unix.Errno{unix.EPERM, unix.ENOSYS, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT}, errno) {
			t.Errorf("%s: got %d (%v)", calls[i].Name, errno, errno)
		}
	}
}

// TestOtherArchitecture: a 32-bit call ends the program, since its number means something else.
func TestOtherArchitecture(t *testing.T) {
	t.Parallel()
	gcc, err := exec.LookPath("gcc")
	if err != nil || runtime.GOARCH != "amd64" {
		t.Skipf("needs gcc on amd64: %v", err)
	}
	results(t, "filtered", nil) // skips where there is no seccomp
	dir := t.TempDir()
	src, bin := filepath.Join(dir, "c.c"), filepath.Join(dir, "c")
	// 20 is getpid for 32-bit programs and writev for 64-bit ones.
	program := `int main(){ long r; __asm__ volatile("int $0x80" : "=a"(r) : "a"(20) : "memory"); return r > 0 ? 3 : 4; }`
	if err := os.WriteFile(src, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), gcc, "-o", bin, src).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if code := exitCode(t, bin); code != 3 {
		t.Skipf("this kernel has no 32-bit calls (%d)", code)
	}
	if code := exitCode(t, "/proc/self/exe", "make-calls-exec", bin); code != 128+int(unix.SIGSYS) {
		t.Errorf("a 32-bit call ended with %d, not with SIGSYS", code)
	}
}

func exitCode(t *testing.T, argv ...string) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	_ = cmd.Run()
	ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// TestProgram: every jump stays inside, and the rules fit the kernel's limit.
func TestProgram(t *testing.T) {
	t.Parallel()
	p, err := seccomp.Program()
	if err != nil {
		t.Fatal(err)
	}
	for i, ins := range p {
		if ins.Code&7 == unix.BPF_JMP && i+1+int(max(ins.Jt, ins.Jf)) >= len(p) {
			t.Errorf("instruction %d jumps out of the program: %+v", i, ins)
		}
	}
	if last := p[len(p)-1]; last.K != unix.SECCOMP_RET_ALLOW || len(p) > 4096 {
		t.Errorf("%d instructions, the last is %+v", len(p), last)
	}
	t.Logf("%d instructions", len(p))
}
