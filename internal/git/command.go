package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	keptStderr = 64 << 10 // bytes of standard error kept
	maxStderr  = 16 << 20 // bytes of standard error after which a command is ended
	shownText  = 4 << 10  // bytes of it that reach an error
	drainDelay = 2 * time.Second
)

// closed is given to every command, in front of its own arguments.
var closed = []string{
	"-c", "core.hooksPath=/dev/null",
	"-c", "core.fsmonitor=false",
	"-c", "core.untrackedCache=false",
	"-c", "core.attributesFile=/dev/null",
	"-c", "core.excludesFile=/dev/null",
	"-c", "core.fsync=committed,loose-object",
	"-c", "credential.helper=",
	"-c", "gc.auto=0",
	"-c", "maintenance.auto=false",
	"-c", "protocol.allow=never",
	"-c", "protocol.file.allow=always",
	"-c", "submodule.recurse=false",
}

// Command is one call of git.
type Command struct {
	Dir       string // working directory, "" for the root directory
	Args      []string
	Stdin     []byte
	Env       []string      // NAME=value, added to the closed environment
	Timeout   time.Duration // 0: DefaultTimeout
	MaxOutput int64         // bytes of standard output, 0: DefaultMaxOutput
	To        io.Writer     // gets standard output as it comes, however much; nil: it is kept for Output

	bounds *bounds // what it may use up, nil: no bound
	cut    bool    // more output than MaxOutput is no failure: Output.cut is set
}

// Output is what a command printed. Stderr is escaped and holds at most 64 KiB.
type Output struct {
	Stdout []byte
	Stderr string

	cut bool
}

// Error says that a command of git failed.
type Error struct {
	Op        string // the subcommand
	Code      int    // exit code, -1 when ended by a signal
	Stderr    string // what it said, escaped and capped
	Timeout   bool   // it was ended because its deadline or its context ended
	Truncated bool   // it was ended because it printed too much
	Err       error  // the cause where it was not git's own
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("git " + e.Op)
	switch {
	case e.Timeout:
		b.WriteString(": ended at its deadline")
	case e.Truncated:
		b.WriteString(": ended, it printed too much")
	case e.Err != nil && e.Code == 0:
	case e.Code < 0:
		b.WriteString(": ended by a signal")
	default:
		fmt.Fprintf(&b, ": exit code %d", e.Code)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.Stderr != "" {
		b.WriteString(": " + e.Stderr)
	}
	return b.String()
}

// Unwrap returns ErrTooBig, the context's error, or what the system said.
func (e *Error) Unwrap() error { return e.Err }

// environment is built from nothing, so that neither a user's nor the system's configuration, no
// credential and no agent socket reaches git. PATH is the operator's: hooks of a repository pushed
// to need it.
func (g *Git) environment(extra []string) []string {
	return append([]string{
		"PATH=" + g.path,
		"HOME=/nonexistent",
		"LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=/bin/false",
		"SSH_ASKPASS=/bin/false",
		"GIT_EDITOR=/bin/false",
		"GIT_PAGER=cat",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_GRAFT_FILE=/nonexistent",
		"GIT_NO_LAZY_FETCH=1",
		"GIT_PROTOCOL_FROM_USER=0",
		"GIT_ALLOW_PROTOCOL=file",
		"GIT_AUTHOR_NAME=" + authorName,
		"GIT_AUTHOR_EMAIL=" + authorEmail,
		"GIT_COMMITTER_NAME=" + authorName,
		"GIT_COMMITTER_EMAIL=" + authorEmail,
	}, extra...)
}

// Run runs git in the closed environment, in a process group of its own. When the deadline or ctx
// ends, or when it prints too much, the whole group is killed. It returns an *Error when git cannot
// be started, exits with another code than 0, or was ended.
func (g *Git) Run(ctx context.Context, c Command) (Output, error) {
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	max := c.MaxOutput
	if max <= 0 {
		max = DefaultMaxOutput
	}
	stdout := &limited{keep: max, end: max, over: cancel}
	stderr := &limited{keep: keptStderr, end: maxStderr, over: cancel}
	cmd := g.prepare(c)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if c.To != nil {
		cmd.Stdout = c.To
	}
	err := runGroup(bounded, cmd)
	out := Output{Stdout: stdout.buf.Bytes(), Stderr: tidy(stderr.buf.String(), keptStderr)}
	if c.cut && stdout.tooBig.Load() {
		out.cut = true
		return out, nil
	}
	if err == nil && !stdout.tooBig.Load() {
		return out, nil
	}
	return out, failure(c, out, err, bounded, stdout.tooBig.Load() || stderr.tooBig.Load())
}

func (g *Git) prepare(c Command) *exec.Cmd {
	argv := slices.Concat([]string{g.program}, closed, c.Args)
	if c.bounds != nil {
		argv = slices.Concat(c.bounds.shell(), argv)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = c.Dir
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	cmd.Env = g.environment(c.Env)
	if len(c.Stdin) > 0 {
		cmd.Stdin = bytes.NewReader(c.Stdin)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = drainDelay
	return cmd
}

// bounds are kept by the kernel for git and each process it starts.
type bounds struct {
	file   int64 // bytes of any one file that is written
	memory int64 // bytes of writable memory of any one process
}

// shell is the start of a command line that sets the bounds and becomes the rest of it. git starts a
// shell for each local transport as well, so that needing one is nothing new. A limit that is lower
// already stays. With the signal ignored, a write over the bound fails and git says so.
func (b *bounds) shell() []string {
	script := fmt.Sprintf(`trap '' XFSZ
bound() { ulimit -S $1 $2 2>/dev/null || test "$(ulimit -H $1)" -lt $2; }
bound -f %d && bound -d %d && exec "$@"`, (b.file+511)/512, (b.memory+1023)/1024)
	return []string{"/bin/sh", "-c", script, "sh"}
}

// unbound stands in front of a shell command for the other side of a transport, whose bounds are
// not ours to set.
const unbound = `ulimit -S -f "$(ulimit -H -f)"; ulimit -S -d "$(ulimit -H -d)"; `

// failure makes the error of a command that did not end well.
func failure(c Command, out Output, err error, ctx context.Context, tooBig bool) *Error {
	e := &Error{Op: operation(c.Args), Stderr: tidy(out.Stderr, shownText)}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		e.Code = exit.ExitCode()
	} else if err != nil {
		e.Err = err
	}
	switch {
	case tooBig:
		e.Truncated, e.Err = true, ErrTooBig
	case ctx.Err() != nil:
		e.Timeout, e.Err = true, context.Cause(ctx)
	}
	return e
}

// operation is the subcommand among the arguments.
func operation(args []string) string {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-c" || a == "-C":
			i++
		case !strings.HasPrefix(a, "-"):
			return Escape(a)
		}
	}
	return ""
}

// runGroup starts cmd and waits for it; when ctx ends first its whole process group is killed.
func runGroup(ctx context.Context, cmd *exec.Cmd) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	exited, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-exited:
		case <-ctx.Done():
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}()
	awaitExit(cmd.Process.Pid)
	close(exited)
	<-watched
	err := cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		// git itself exited with 0; something that it or a hook started keeps our pipe.
		return nil
	}
	return err
}

// awaitExit returns when the child has exited and leaves it unreaped: until then its number, which
// is also that of its process group, cannot be given to anybody else, and the group can be killed
// without the risk of meeting a stranger.
func awaitExit(pid int) {
	const pidType, exitedNoReap = 1, 0x4 | 0x01000000 // P_PID, WEXITED|WNOWAIT
	var info [128]byte
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pidType, uintptr(pid),
			uintptr(unsafe.Pointer(&info[0])), exitedNoReap, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}

// limited keeps the first bytes written to it, counts the rest, and calls over once more than end
// bytes have come.
type limited struct {
	buf       bytes.Buffer
	keep, end int64
	seen      int64
	over      func()
	tooBig    atomic.Bool
}

func (l *limited) Write(p []byte) (int, error) {
	if room := l.keep - int64(l.buf.Len()); room > 0 {
		l.buf.Write(p[:min(int64(len(p)), room)])
	}
	if l.seen += int64(len(p)); l.seen > l.end {
		if !l.tooBig.Swap(true) {
			l.over()
		}
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}
