package cli

import (
	"fmt"
	"os"
	"time"

	"interlock/internal/engine"
	"interlock/internal/sandbox"
)

// Reenter runs what Interlock starts its own binary for: supervisors and what runs inside the
// sandbox. Main calls it before anything else; handled is false for the commands of people.
func Reenter(args []string) (code int, handled bool) {
	if code, handled := sandbox.Reenter(args); handled {
		return code, true
	}
	return engine.Reenter(args)
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
