package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/toolchain"
)

// command runs one check in a session of its own and counts its tests.
func (req *Request) command(ctx context.Context, policy sandbox.Policy, session, line, remark string) (run.Command, counted, error) {
	if err := context.Cause(ctx); err != nil {
		return run.Command{}, counted{}, err
	}
	from, err := begin(req.Log, line+remark)
	if err != nil {
		return run.Command{}, counted{}, err
	}
	before := reportsIn(policy.Dir)
	shell, asked := withJSON(line)
	policy.Argv = []string{"/bin/sh", "-c", shell}
	spec := sandbox.Spec{
		Session: session,
		Policy:  policy,
		Limits:  sandbox.Limits{Total: req.Total, Log: run.LogBytes, Tasks: req.MaxTasks, Memory: req.MaxMemory},
		Log:     req.Log,
		Secrets: req.Secrets,
	}
	result, err := req.session(ctx, spec)
	if err != nil {
		return run.Command{}, counted{}, err
	}
	out, err := readOutput(req.Log, from)
	if err != nil {
		return run.Command{}, counted{}, err
	}
	c := run.Command{Line: line, Exit: result.Exit, Why: why(result, spec.Limits), Duration: result.Took}
	reports, notes := readReports(policy.Dir, before)
	tests := count(out, asked, reports, notes)
	tests.dropped, tests.ended = result.Dropped > 0, result.Why == "exit" && result.Signal == ""
	tests.record(&c)
	if tests.known && c.Why == "" && tests.ran == 0 && !req.AllowNoTests {
		c.Why = noTest(tests.skipped, result.Dropped)
	}
	c.Output = out.text(c.Why != "", result.Dropped)
	return c, tests, nil
}

// session starts one session and waits until its whole tree is gone.
func (req *Request) session(ctx context.Context, spec sandbox.Spec) (sandbox.Result, error) {
	s, err := sandbox.Prepare(ctx, req.Facts, spec)
	if err != nil {
		return sandbox.Result{}, err
	}
	if req.OnSession != nil {
		if err := req.OnSession(s.Identity()); err != nil {
			s.Stop()
			_, end := s.Wait(ctx)
			return sandbox.Result{}, errors.Join(fmt.Errorf("session not recorded, so not started: %w", err), notProved(end))
		}
	}
	startErr := s.Start()
	result, err := s.Wait(ctx)
	if err = errors.Join(startErr, err); err != nil {
		return sandbox.Result{}, err
	}
	if req.OnEnd != nil {
		if err := req.OnEnd(s.Identity()); err != nil {
			return sandbox.Result{}, fmt.Errorf("end of session not recorded: %w", err)
		}
	}
	switch result.Why {
	case "exit", "total", "idle", "tasks", "memory":
		return result, nil
	}
	if err := context.Cause(ctx); err != nil {
		return sandbox.Result{}, fmt.Errorf("stopped: %w", err)
	}
	return sandbox.Result{}, fmt.Errorf("the session ended early: %s", result.Why)
}

// notProved keeps only what matters of how a session ended that never ran.
func notProved(err error) error {
	if errors.Is(err, sandbox.ErrNotProved) {
		return err
	}
	return nil
}

// policy is what a check sees: its own tree, the borrowed objects read-only, the tool chains, an empty
// temporary directory, and a home that is empty or a copy of what the same check left at the base. So
// no cache that an agent could write is ever read.
func (req *Request) policy(ctx context.Context, room sandbox.Room) sandbox.Policy {
	tools, path := toolchain.Find(ctx, req.Env)
	return sandbox.Policy{
		Level: req.Level,
		Mounts: []sandbox.Mount{
			{Source: room.Tree(), Target: sandbox.WorkspaceInside, Write: true},
			{Source: req.Repo.Objects(), Target: sandbox.ObjectsInside},
		},
		Tools:   tools,
		Home:    room.Home(),
		Temp:    room.Temp(),
		Dir:     room.Tree(),
		Network: req.Network,
		Env:     toolchain.Env(req.Env, req.Level, room, path),
	}
}

// why says in words how a command failed; "" if it did not.
func why(r sandbox.Result, l sandbox.Limits) string {
	switch {
	case r.Why == "total":
		return fmt.Sprintf("ended by the time limit of %s", l.Total)
	case r.Why == "idle":
		return "ended because nothing happened any more"
	case r.Why == "tasks":
		return fmt.Sprintf("ended at the limit of %d processes and threads (--max-tasks)", l.Tasks)
	case r.Why == "memory":
		return fmt.Sprintf("ended at the limit of %d bytes of memory (--max-memory)", l.Memory)
	case r.Signal != "":
		return "ended by signal " + r.Signal
	case r.Exit == 126:
		return "exit code 126: a program was found that cannot be executed"
	case r.Exit == 127:
		return "exit code 127: a program was not found"
	case r.Exit > 128 && r.Exit < 128+65:
		return fmt.Sprintf("exit code %d: a program was ended by signal %d (%s)", r.Exit, r.Exit-128, syscall.Signal(r.Exit-128))
	case r.Exit != 0:
		return fmt.Sprintf("exit code %d", r.Exit)
	}
	return ""
}

func noTest(skipped int, dropped int64) string {
	text := "no test ran"
	switch {
	case skipped == 1:
		text += "; one was skipped"
	case skipped > 1:
		text += fmt.Sprintf("; %d were skipped", skipped)
	}
	if dropped > 0 {
		return text + fmt.Sprintf(" within the first %d MiB of output, and the rest was not kept", run.LogBytes>>20)
	}
	return text + "; a check that tests nothing proves nothing"
}

// begin writes the line into the log and returns where the output of the command will begin.
func begin(path, line string) (int64, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return 0, fmt.Errorf("log: %w", err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "$ %s\n", oneLine(line)); err != nil {
		return 0, fmt.Errorf("log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("log: %w", err)
	}
	return info.Size(), f.Close()
}

// readOutput reads what a command wrote into the log, tests and text.
func readOutput(path string, from int64) (*stream, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	s := newStream()
	if err := s.read(f); err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return s, nil
}
