// Command interlock lets coding agents work the issues of a repository, unattended and safely.
// It has signals and the exit code, and nothing else; all commands are in package cli.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"interlock/internal/cli"
)

func main() { os.Exit(interlock(os.Args[1:])) }

func interlock(args []string) int {
	if code, handled := cli.Reenter(args); handled {
		return code
	}
	env, err := cli.System()
	if err != nil {
		fmt.Fprintln(os.Stderr, "interlock:", err)
		return 2
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	stopWhenAsked(cancel)
	return cli.Main(ctx, env, args)
}

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
		fmt.Fprintln(os.Stderr, "interlock: stopping, everything is kept; once more stops at once")
		cancel(cli.ErrInterrupted)
		<-asked
		os.Exit(130)
	}()
}
