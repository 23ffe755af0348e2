package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"interlock/internal/sandbox/cgroup"
)

var (
	// ErrNotProved: the death of a tree could not be proved. It may still run.
	ErrNotProved = errors.New("the end of the session's processes is not proved")
	// ErrSetup: the sandbox could not be set up, and nothing of the command ran.
	ErrSetup = errors.New("the sandbox could not be set up")
)

// How long a tree may take to die before its end counts as not proved, and how long the
// supervisor may take to come up.
const (
	endBound   = 15 * time.Second
	startBound = 30 * time.Second
)

// Spec is one session to be started.
type Spec struct {
	Session string   `json:"session"` // names it, for people
	Policy  Policy   `json:"policy"`
	Limits  Limits   `json:"limits"`
	Stdin   string   `json:"stdin"` // file, "" is /dev/null
	Log     string   `json:"log"`   // file that gets stdout and stderr, appended, 0600
	Watch   []string `json:"watch"` // directories of the host whose changes count as activity
	// Secrets are texts that are taken out of the output before any of it is kept.
	Secrets []string `json:"secrets,omitempty"`
}

// Session is one process tree with its supervisor. The engine that holds it keeps it alive: when
// the engine's process is gone, however it went, the supervisor ends the tree.
type Session struct {
	id      Identity
	control *os.File
	cmd     *exec.Cmd
	done    chan struct{} // closed when the supervisor is reaped
	ending  chan struct{} // closed when it began to end the tree

	mu     sync.Mutex // guards writes to control
	result *Result
	err    error
}

// Messages of the supervisor, one JSON object a line.
type message struct {
	Identity *Identity `json:"identity,omitempty"`
	Ending   bool      `json:"ending,omitempty"`
	Result   *Result   `json:"result,omitempty"`
	Setup    string    `json:"setup,omitempty"` // why the sandbox could not be set up
}

// supervision is what the supervisor is told first.
type supervision struct {
	Spec  Spec   `json:"spec"`
	Bwrap string `json:"bwrap"`

	NoNesting bool `json:"no_nesting"`
	Landlock  int  `json:"landlock"`

	Place cgroup.Place `json:"place"`
}

// Prepare starts the supervisor, which makes the session's cgroup. Nothing of the command runs
// before Start; a session that is never started leaves nothing behind. *UnfitError, ErrSetup.
func Prepare(ctx context.Context, facts Facts, spec Spec) (*Session, error) {
	if err := facts.CheckNetwork(spec.Policy.Level, spec.Policy.Network); err != nil {
		return nil, err
	}
	if !hasReentered() {
		return nil, errNotReentered
	}
	if !filepath.IsAbs(spec.Log) {
		return nil, fmt.Errorf("session %s: the log %q must be absolute", spec.Session, spec.Log)
	}
	s, status, err := launch(spec)
	if err != nil {
		return nil, fmt.Errorf("session %s: supervisor: %w", spec.Session, err)
	}
	first := make(chan message, 1)
	go s.follow(status, first)
	if err := s.tell(supervision{spec, facts.Bwrap, facts.NoNesting, facts.Landlock, facts.place()}); err != nil {
		return nil, s.abandon(err)
	}
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	select {
	case m := <-first:
		if m.Identity == nil {
			return nil, s.abandon(fmt.Errorf("%w: %s", ErrSetup, m.Setup))
		}
		s.id = *m.Identity
		return s, nil
	case <-ctx.Done():
		return nil, s.abandon(context.Cause(ctx))
	}
}

// launch starts the supervisor in a session of its own, with two pipes as its only link.
func launch(spec Spec) (*Session, *os.File, error) {
	controlR, controlW, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer controlR.Close()
	statusR, statusW, err := os.Pipe()
	if err != nil {
		controlW.Close()
		return nil, nil, err
	}
	defer statusW.Close()
	log, err := openLog(spec.Log)
	if err == nil {
		defer log.Close()
		cmd := exec.Command("/proc/self/exe", superviseArg)
		cmd.Args[0] = "interlock"
		cmd.Dir = "/"
		cmd.Env = supervisorEnv()
		cmd.Stderr = log // where a broken invariant would say so
		cmd.ExtraFiles = []*os.File{controlR, statusW}
		cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
		s := &Session{control: controlW, cmd: cmd, done: make(chan struct{}), ending: make(chan struct{})}
		if err = cmd.Start(); err == nil {
			return s, statusR, nil
		}
	}
	controlW.Close()
	statusR.Close()
	return nil, nil, err
}

// supervisorEnv is all that the supervisor gets; the tree's environment travels in the policy.
func supervisorEnv() []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	if dir := os.Getenv("GOCOVERDIR"); dir != "" {
		env = append(env, "GOCOVERDIR="+dir) // statement coverage of child processes
	}
	return env
}

// follow reads what the supervisor says until it is gone, then reaps it. It ends with the
// supervisor, which ends with this process or before.
func (s *Session) follow(status *os.File, first chan<- message) {
	defer close(s.done)
	defer status.Close()
	r := bufio.NewReader(status)
	for n := 0; ; n++ {
		line, err := r.ReadBytes('\n')
		if err != nil {
			break
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			break
		}
		if n == 0 {
			first <- m
		}
		if m.Ending {
			close(s.ending)
		}
		if m.Result != nil {
			s.result = m.Result
		}
		if m.Setup != "" {
			s.err = fmt.Errorf("%w: %s", ErrSetup, m.Setup)
		}
	}
	s.cmd.Wait() // its status says nothing that the messages do not
	select {
	case first <- message{Setup: "the supervisor ended at once"}:
	default:
	}
}

func (s *Session) tell(v any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return json.NewEncoder(s.control).Encode(v)
}

// abandon ends a session whose supervisor never answered well.
func (s *Session) abandon(cause error) error {
	s.control.Close()
	select {
	case <-s.done:
	case <-time.After(endBound):
		s.cmd.Process.Kill()
		<-s.done
	}
	if s.err != nil {
		return s.err
	}
	return cause
}

// Identity is to be saved before Start.
func (s *Session) Identity() Identity { return s.id }

// Start lets the command begin. Call it only after the identity was saved durably.
func (s *Session) Start() error {
	if err := s.tell("go"); err != nil {
		return fmt.Errorf("session %s: the supervisor is gone: %w", s.id.Session, err)
	}
	return nil
}

// Stop asks for the end of the whole tree and returns at once; Wait tells the outcome. A session
// that was not started ends as well.
func (s *Session) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	json.NewEncoder(s.control).Encode("stopped") // when this fails the supervisor is gone already
}

// Wait returns when the whole tree is gone and that is confirmed. When ctx ends first, the tree
// is ended and Result.Why is "stopped". ErrSetup when nothing of the command ran; ErrNotProved
// when the end could not be confirmed within a bound. Call it once.
func (s *Session) Wait(ctx context.Context) (Result, error) {
	defer s.control.Close()
	select {
	case <-s.done:
	case <-s.ending:
	case <-ctx.Done():
		s.Stop()
	}
	select {
	case <-s.done:
	case <-time.After(endBound):
		return s.force(ctx)
	}
	if s.err != nil {
		return Result{Exit: -1, Why: "setup"}, s.err
	}
	if s.result != nil {
		return *s.result, nil
	}
	return s.force(ctx)
}

// force ends the tree of a supervisor that is gone or does not come to an end.
func (s *Session) force(ctx context.Context) (Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endBound)
	defer cancel()
	proof, err := End(ctx, s.id)
	return Result{Exit: -1, Why: "supervisor gone", Tree: proof}, err
}

func openLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
}
