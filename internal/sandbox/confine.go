package sandbox

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

	"interlock/internal/sandbox/seccomp"
)

// confinement is what the stage inside the namespaces is told, over a descriptor.
type confinement struct {
	Argv     []string `json:"argv"`
	Env      []string `json:"env"`
	Dir      string   `json:"dir"`
	Read     []string `json:"read"` // paths that may be read and executed
	Write    []string `json:"write"`
	Alone    bool     `json:"alone"`    // no namespaces: level Landlock
	Landlock int      `json:"landlock"` // ABI that was found outside; another one is an error
}

const (
	releaseLine = "go\n"
	readyLine   = "ready\n"
)

// confinement is what the last stage does for this policy. At level Full all that is mounted may
// be read, for nothing else is there.
func (p Policy) confinement(abi int) confinement {
	c := confinement{Argv: p.Argv, Env: p.Env, Dir: p.workDir(), Write: p.writable(), Landlock: abi}
	if c.Alone = p.Level == Landlock; c.Alone {
		c.Read = p.readable()
	} else {
		c.Read = []string{"/"}
	}
	return c
}

// confineMain runs, at level Full inside bubblewrap, still trusted: it waits to be released, takes every right
// away from itself, then becomes the command. Arguments: descriptor of the confinement, and of
// the pipe on which readiness and a failed exec are told (-1: none).
func confineMain(args []string) error {
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
	var c confinement
	if err := json.Unmarshal(line, &c); err != nil {
		return fmt.Errorf("confinement: %w", err)
	}
	if release, err := r.ReadString('\n'); err != nil || release != releaseLine {
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
func (c confinement) apply() error {
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

// landlockConfigs are the strict configurations by ABI. The network rights are left out: they
// miss Multipath TCP, so they bound nothing, and the network is decided by its namespace.
var landlockConfigs = []landlock.Config{
	{}, landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6,
	landlock.V7, landlock.V8, landlock.V9, landlock.V10, landlock.V11,
}

func (c confinement) restrict() error {
	abi := landlockABI()
	if abi != c.Landlock || abi < landlockFloor {
		return fmt.Errorf("the kernel has ABI %d, %d was expected", abi, c.Landlock)
	}
	strict := landlockConfigs[min(abi, len(landlockConfigs)-1)]
	strict.HandledAccessNet = 0
	return strict.Restrict(c.rules(abi)...)
}

// rules: what is named may be read and executed; only the session's own places and the devices
// every program expects may be written. Device ioctls are for terminals only. Without a mount
// namespace terminals and shared memory are the host's, and left out.
func (c confinement) rules(abi int) []landlock.Rule {
	dev := landlock.RWFiles(devices...).IgnoreIfMissing()
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
func (c confinement) run(out *os.File) error {
	if err := os.Chdir(c.Dir); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	path, err := lookPath(c.Argv, c.Env)
	if out != nil {
		if _, werr := io.WriteString(out, readyLine); werr != nil {
			return fmt.Errorf("supervisor: %w", werr)
		}
	}
	if err == nil {
		err = syscall.Exec(path, c.Argv, c.Env)
	}
	fmt.Fprintf(os.Stderr, "interlock: the command cannot be started: %v\n", err)
	os.Exit(startCode(err))
	return nil
}

// startCode is the exit code of a command that could not be started, as a shell gives it.
func startCode(err error) int {
	if errors.Is(err, os.ErrNotExist) {
		return 127
	}
	return 126
}

// lookPath finds argv[0] in the PATH of env, which is not the caller's. A name with a slash is
// taken as it is, relative to the working directory.
func lookPath(argv, env []string) (string, error) {
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

// encode is the line that confineMain reads.
func (c confinement) encode() ([]byte, error) {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(c); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
