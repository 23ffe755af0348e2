package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"interlock/internal/sandbox/cgroup"
	"interlock/internal/sandbox/confine"
	"interlock/internal/sandbox/process"
)

// tree is the process tree of one session, seen from its supervisor.
type tree struct {
	policy Policy
	facts  Facts
	group  cgroup.Group
	log    *sessionLog
	stdin  string

	main   int        // pid of the process that was started, 0 before
	init   process.ID // of the pid namespace, when it was asked for
	spec   *os.File   // the confined stage waits on it; nil at level None
	report *os.File   // it tells readiness here
	info   *os.File   // bubblewrap tells the first process here; open as long as bubblewrap runs
	output *os.File   // read end of stdout and stderr

	started bool
	offset  int64         // of the log when the tree was started
	copied  chan struct{} // closed when the output has ended
	exited  chan struct{} // closed when main was reaped; its status is then in ws
	alone   chan struct{} // closed when no child is left at all
	ws      syscall.WaitStatus
	err     error // why the tree could not be started
}

// start starts the tree, once. At level Full its last stage then waits for release. With
// wantInit the first process of the pid namespace is found out and returned.
func (t *tree) start(wantInit bool) (process.ID, error) {
	if t.started {
		return t.init, nil
	}
	t.exited, t.alone, t.copied = make(chan struct{}), make(chan struct{}), make(chan struct{})
	t.offset = t.log.offset()
	cmd := &exec.Cmd{SysProcAttr: &unix.SysProcAttr{Setsid: true}}
	child, err := t.connect(cmd)
	defer func() { closeAll(child) }()
	if err != nil {
		return process.ID{}, err
	}
	if t.policy.Level == None {
		err = t.plain(cmd)
	} else {
		child, err = t.confine(cmd, child, wantInit)
	}
	if err == nil {
		err = t.launch(cmd)
	}
	if err != nil && t.policy.Level == None {
		t.notStarted(err)
		return process.ID{}, nil
	}
	if err != nil {
		return process.ID{}, fmt.Errorf("start: %w", err)
	}
	go t.copyOutput()
	go t.reap()
	if wantInit {
		return t.init, t.findInit()
	}
	return process.ID{}, nil
}

// connect opens the three standard streams; what it returns is to be closed after the start.
func (t *tree) connect(cmd *exec.Cmd) ([]*os.File, error) {
	path := t.stdin
	if path == "" {
		path = os.DevNull
	}
	stdin, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return []*os.File{stdin}, err
	}
	t.output = r
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, w, w
	return []*os.File{stdin, w}, nil
}

// plain is the command itself, for level None.
func (t *tree) plain(cmd *exec.Cmd) (err error) {
	cmd.Dir, cmd.Args = t.policy.Dir, t.policy.Argv
	cmd.Env = append([]string{}, t.policy.Env...) // not nil: nothing is inherited
	cmd.Path, err = confine.LookPath(t.policy.Argv, t.policy.Env)
	return err
}

// confine is our own stage, at level Full inside of bubblewrap. Descriptors of the child: 3 the order,
// 4 the report, 5 bubblewrap's status.
func (t *tree) confine(cmd *exec.Cmd, child []*os.File, wantInit bool) ([]*os.File, error) {
	pipes := make([]*os.File, 0, 6)
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			return append(child, pipes...), err
		}
		pipes = append(pipes, r, w)
	}
	t.spec, t.report, t.info = pipes[1], pipes[2], pipes[4]
	cmd.ExtraFiles = []*os.File{pipes[0], pipes[3]}
	child = append(child, pipes[0], pipes[3], pipes[5])
	var flags []string
	if wantInit {
		cmd.ExtraFiles = append(cmd.ExtraFiles, pipes[5])
		flags = []string{"--json-status-fd", "5"}
	}
	argv, err := t.facts.stage(t.policy, []string{confineArg, "3", "4"}, flags...)
	if err != nil {
		return child, err
	}
	cmd.Path, cmd.Args, cmd.Dir = argv[0], argv, "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	return child, nil
}

// launch starts the command directly in the cgroup, so that there is no moment outside of it.
func (t *tree) launch(cmd *exec.Cmd) error {
	if t.group.Main != "" {
		dir, err := os.Open(t.group.Main)
		if err != nil {
			return fmt.Errorf("cgroup: %w", err)
		}
		defer dir.Close()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	}
	return t.group.Around(func() error {
		if err := cmd.Start(); err != nil {
			return err
		}
		t.started, t.main = true, cmd.Process.Pid
		return nil
	})
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// notStarted is the outcome of a command that cannot be executed: that of a shell, and no tree.
func (t *tree) notStarted(err error) {
	t.log.note("the command cannot be started: " + err.Error())
	t.started, t.ws = true, syscall.WaitStatus(confine.StartCode(err)<<8)
	close(t.exited)
	close(t.alone)
	close(t.copied)
}

// release hands the confined stage what it must do, and lets it go on.
func (t *tree) release() error {
	if t.spec == nil {
		return nil
	}
	p := t.policy
	line, err := p.order(t.facts.Landlock).Encode()
	if err != nil {
		return err
	}
	go func() { // ends with the stage, which reads it or dies
		t.spec.Write(append(line, confine.Release...))
		t.spec.Close()
	}()
	return nil
}

// workDir is the working directory inside.
func (p Policy) workDir() string {
	if p.Dir == "" {
		return "/"
	}
	return p.Inside(p.Dir)
}

// copyOutput ends when no process holds the other end any more.
func (t *tree) copyOutput() {
	defer close(t.copied)
	io.Copy(t.log, t.output) // the log never fails; it drops and counts
}

// reap is the only place that waits for children: main, and all orphans of the tree, which
// become children of this process. No child left means no process of the tree left.
func (t *tree) reap() {
	defer close(t.alone)
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return // ECHILD
		}
		if pid == t.main {
			t.ws = syscall.WaitStatus(ws)
			close(t.exited)
		}
	}
}

// findInit reads the first process of the pid namespace from bubblewrap. It cannot exit unseen:
// its last stage waits for release.
func (t *tree) findInit() error {
	var got struct {
		PID int `json:"child-pid"`
	}
	if err := t.info.SetReadDeadline(time.Now().Add(startBound / 2)); err != nil {
		return err
	}
	if err := json.NewDecoder(t.info).Decode(&got); err != nil {
		return fmt.Errorf("bubblewrap did not come up (%w): %s", err, tail(t.log.path, t.offset))
	}
	var err error
	t.init, err = process.Of(got.PID)
	return err
}

// failedSetup says, after main has exited, whether the command was never reached.
func (t *tree) failedSetup() bool {
	if t.report == nil {
		return false
	}
	t.report.SetReadDeadline(time.Now().Add(time.Second))
	b := make([]byte, len(confine.Ready))
	_, err := io.ReadFull(t.report, b)
	return err != nil || string(b) != confine.Ready
}

// trouble is why the command was never reached.
func (t *tree) trouble() string {
	if t.err != nil {
		return t.err.Error()
	}
	if text := tail(t.log.path, t.offset); text != "" {
		return text
	}
	return "the sandbox ended without a word: " + describe(t.ws)
}

func describe(ws syscall.WaitStatus) string {
	if ws.Signaled() {
		return unix.SignalName(ws.Signal())
	}
	return fmt.Sprintf("exit %d", ws.ExitStatus())
}

// status is main's exit code, or -1 and the signal. bubblewrap tells a signal as 128 plus its
// number, as shells do, and that is read back as the signal.
func (t *tree) status() (code int, sig string) {
	switch {
	case t.ws.Signaled():
		return -1, unix.SignalName(t.ws.Signal())
	case t.policy.Level == Full && t.ws.ExitStatus() > 128:
		if name := unix.SignalName(syscall.Signal(t.ws.ExitStatus() - 128)); name != "" {
			return -1, name
		}
	}
	return t.ws.ExitStatus(), ""
}
