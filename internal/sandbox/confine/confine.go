// Package confine is the last stage before a confined command: still trusted, it takes every right
// away from itself, then becomes the command. It starts no other process, and what it is told
// comes over a descriptor, never from its arguments.
package confine

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"

	"interlock/internal/sandbox/confine/seccomp"
)

// Order is what the stage inside the namespaces is told, over a descriptor.
type Order struct {
	Argv     []string `json:"argv"`
	Env      []string `json:"env"`
	Dir      string   `json:"dir"`
	Read     []string `json:"read"` // paths that may be read and executed
	Write    []string `json:"write"`
	Alone    bool     `json:"alone"`    // no namespaces: level Landlock
	Landlock int      `json:"landlock"` // ABI that was found outside; another one is an error
}

const (
	// Release is written after the order: the stage then goes on.
	Release = "go\n"
	// Ready is what the stage answers when only the command itself is still to come.
	Ready = "ready\n"
)

// Floor is the lowest Landlock ABI that is worked with: what kernel 5.19 has.
const Floor = 2

// Devices are the device nodes that every program expects.
var Devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// Main runs, at level Full inside bubblewrap, still trusted: it waits to be released, takes every right
// away from itself, then becomes the command. Arguments: descriptor of the order, and of
// the pipe on which readiness and a failed exec are told (-1: none).
func Main(args []string) error {
	runtime.LockOSThread() // the rights of the thread that calls exec are those the command gets
	if len(args) != 2 {
		return errors.New("wants two descriptors")
	}
	in, err := descriptor(args[0])
	if err != nil {
		return err
	}
	out, err := descriptor(args[1])
	if err != nil {
		return err
	}
	r := bufio.NewReader(in)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil // the supervisor is gone, and nothing has begun
	}
	var c Order
	if err := json.Unmarshal(line, &c); err != nil {
		return fmt.Errorf("order: %w", err)
	}
	if release, err := r.ReadString('\n'); err != nil || release != Release {
		return nil
	}
	if err := c.apply(); err != nil {
		return err
	}
	return c.run(out)
}

// descriptor opens an inherited one; "-1" gives nil.
func descriptor(s string) (*os.File, error) {
	fd, err := strconv.Atoi(s)
	if err != nil {
		return nil, fmt.Errorf("descriptor: %w", err)
	}
	if fd < 0 {
		return nil, nil
	}
	return os.NewFile(uintptr(fd), "inherited"), nil
}

// apply gives up everything that the command must not have. Order matters: Landlock needs the
// paths still to be opened, and is refused without no_new_privs.
func (c Order) apply() error {
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("descriptors: %w", err)
	}
	// A session keyring of its own: the operator's is inherited across namespaces. Where the
	// call is forbidden or absent the command cannot reach keys either.
	_, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
	if err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("keyring: %w", err)
	}
	// No core files; and one byte, not none, is what keeps the kernel from starting the host's
	// core handler outside.
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}); err != nil {
		return fmt.Errorf("core limit: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if err := c.restrict(); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	// The last: from here on only what every program needs.
	if err := seccomp.Install(); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	return nil
}

// ABI is the version of Landlock that the kernel has, 0 without it.
func ABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// landlockConfigs are the strict configurations by ABI. The network rights are left out: they
// miss Multipath TCP, so they bound nothing, and the network is decided by its namespace.
var landlockConfigs = []landlock.Config{
	{}, landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6,
	landlock.V7, landlock.V8, landlock.V9, landlock.V10, landlock.V11,
}

func (c Order) restrict() error {
	abi := ABI()
	if abi != c.Landlock || abi < Floor {
		return fmt.Errorf("the kernel has ABI %d, %d was expected", abi, c.Landlock)
	}
	strict := landlockConfigs[min(abi, len(landlockConfigs)-1)]
	strict.HandledAccessNet = 0
	return strict.Restrict(c.rules(abi)...)
}

// rules: what is named may be read and executed; only the session's own places and the devices
// every program expects may be written. Device ioctls are for terminals only. Without a mount
// namespace terminals and shared memory are the host's, and left out.
func (c Order) rules(abi int) []landlock.Rule {
	dev := landlock.RWFiles(Devices...).IgnoreIfMissing()
	pts := landlock.RWDirs("/dev/pts", "/dev/shm").IgnoreIfMissing()
	if abi >= 5 {
		dev, pts = dev.WithIoctlDev(), pts.WithIoctlDev()
	}
	rules := []landlock.Rule{dev}
	if !c.Alone {
		rules = append(rules, pts)
	}
	for _, path := range c.Read {
		if st, err := os.Stat(path); err == nil && !st.IsDir() {
			rules = append(rules, landlock.ROFiles(path))
			continue
		}
		rules = append(rules, landlock.RODirs(path))
	}
	for _, path := range c.Write {
		st, err := os.Stat(path)
		if err == nil && !st.IsDir() {
			rules = append(rules, landlock.RWFiles(path))
			continue
		}
		rules = append(rules, landlock.RWDirs(path).WithRefer()) // files may move between directories
	}
	return rules
}

func dropCapabilities() error {
	for bit := 0; ; bit++ {
		in, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(bit), 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // past the last capability of this kernel
		}
		if err != nil {
			return err
		}
		if in == 1 {
			err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(bit), 0, 0, 0)
			if errors.Is(err, unix.EPERM) {
				break // an ordinary user outside of a namespace: no_new_privs keeps it from all of them
			}
			if err != nil {
				return fmt.Errorf("bounding set %d: %w", bit, err)
			}
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("ambient set: %w", err)
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&hdr, &none[0])
}

// run becomes the command. It returns only when that fails; 127 and 126 are the shell's codes.
func (c Order) run(out *os.File) error {
	if err := os.Chdir(c.Dir); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	path, err := LookPath(c.Argv, c.Env)
	if out != nil {
		if _, werr := io.WriteString(out, Ready); werr != nil {
			return fmt.Errorf("supervisor: %w", werr)
		}
	}
	if err == nil {
		err = syscall.Exec(path, c.Argv, c.Env)
	}
	fmt.Fprintf(os.Stderr, "interlock: the command cannot be started: %v\n", err)
	os.Exit(StartCode(err))
	return nil
}

// StartCode is the exit code of a command that could not be started, as a shell gives it.
func StartCode(err error) int {
	if errors.Is(err, os.ErrNotExist) {
		return 127
	}
	return 126
}

// LookPath finds argv[0] in the PATH of env, which is not the caller's. A name with a slash is
// taken as it is, relative to the working directory.
func LookPath(argv, env []string) (string, error) {
	if len(argv) == 0 || argv[0] == "" {
		return "", errors.New("the command is empty")
	}
	name := argv[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	list := "/usr/local/bin:/usr/bin:/bin"
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			list = v
		}
	}
	for _, dir := range filepath.SplitList(list) {
		path := filepath.Join(dir, name)
		st, err := os.Stat(path)
		if filepath.IsAbs(dir) && err == nil && st.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%q is not in PATH: %w", name, os.ErrNotExist)
}

// Encode is the line that Main reads.
func (c Order) Encode() ([]byte, error) {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(c); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
