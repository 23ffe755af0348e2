// Package agent says what a coding-agent runtime is: something that turns a task into a command
// that is then run confined. It starts nothing itself.
package agent

import (
	"context"
	"errors"
	"fmt"

	"interlock/internal/sandbox"
)

// ErrMissing: the agent's program is not there.
var ErrMissing = errors.New("the agent was not found")

// NotExecutableError says that the agent's file is there but cannot be executed. It is an ErrMissing.
type NotExecutableError struct {
	Path string // absolute
	Err  error  // what the system said
}

func (e *NotExecutableError) Error() string {
	return fmt.Sprintf("the agent %q cannot be executed: %v", e.Path, e.Err)
}

// Unwrap returns ErrMissing and what the system said.
func (e *NotExecutableError) Unwrap() []error { return []error{ErrMissing, e.Err} }

// Launch is how a runtime wants a session to be started.
type Launch struct {
	Argv   []string        // inside the sandbox
	Env    []string        // NAME=value, added to the session's environment
	Mounts []sandbox.Mount // files of the operator's that the agent needs, read-only
	Digest string          // SHA-256 of the bound files, "" if none
}

// Runtime is a kind of agent. Result of a session is its exit code and what is in the workspace;
// what it prints is logged and never believed.
type Runtime interface {
	// Name names the runtime for people.
	Name() string
	// Prepare checks that the agent can be started and says how. dir is the directory the
	// operator typed the command in. ErrMissing.
	Prepare(ctx context.Context, dir string, level sandbox.Level) (Launch, error)
}
