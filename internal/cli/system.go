package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"interlock/internal/progress"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/secret"
	"interlock/internal/snapshot"
)

// Reenter runs what Interlock starts its own binary for: supervisors and what runs inside the
// sandbox. Main calls it before anything else; handled is false for the commands of people.
func Reenter(args []string) (code int, handled bool) {
	if code, handled := sandbox.Reenter(args, redactLog); handled {
		return code, true
	}
	return snapshot.Reenter(args)
}

// redactLog keeps secrets out of the log of a session.
func redactLog(to io.Writer, secrets []string) io.WriteCloser {
	var values []secret.Value
	for _, s := range secrets {
		values = append(values, secret.Value{Text: s})
	}
	return secret.New(nil, values...).Redactor(to)
}

// System is the environment of this process.
func System() (Env, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Env{}, fmt.Errorf("the working directory is gone: %w", err)
	}
	info, err := os.Stdout.Stat()
	return Env{
		Dir: dir, Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Now: time.Now,
		Terminal: err == nil && info.Mode()&os.ModeCharDevice != 0,
	}, nil
}

// Process is the whole program but for its exit: it runs one command line with this process's
// environment and signals, and returns the exit code.
func Process(args []string) int {
	if code, handled := Reenter(args); handled {
		return code
	}
	env, err := System()
	if err != nil {
		fmt.Fprintln(os.Stderr, "interlock:", err)
		return 2
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	stopWhenAsked(cancel)
	return Main(ctx, env, args)
}

// together is how close two signals may be to count as one: timeout(1) sends its signal to the
// program and then to the whole group.
const together = 50 * time.Millisecond

// stopWhenAsked ends the context at the first signal, and the process at the second. The engine
// can be killed at any moment without losing anything; a clean stop only saves the next one work.
func stopWhenAsked(cancel context.CancelCauseFunc) {
	asked := make(chan os.Signal, 2)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup means that it is to go on
		signal.Notify(asked, syscall.SIGHUP)
	}
	go func() { // lives as long as the process
		<-asked
		first := time.Now()
		clear := ""
		if progress.Terminal(os.Stderr) != nil && os.Getenv("TERM") != "dumb" {
			clear = "\r\x1b[K" // the live line
		}
		fmt.Fprintln(os.Stderr, clear+"interlock: stopping, everything is kept; once more stops at once")
		cancel(ErrInterrupted)
		for range asked {
			if time.Since(first) < together {
				continue
			}
			fmt.Fprintln(os.Stderr, "interlock: stopped at once; everything is kept, type the same command again to go on")
			os.Exit(run.ExitInterrupted)
		}
	}()
}
