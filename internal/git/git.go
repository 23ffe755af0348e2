// Package git runs the git program with bounded output in a closed environment, and holds what
// Interlock does with repositories: canonical identity, the engine's own bare repositories, private
// workspaces, the import of an agent's work, compare-and-set of refs and pushes with an answer that
// can be trusted. It never runs git inside a directory an agent can write, never reads the
// configuration of a user or of the system, and never lets text from outside become an option or
// reach an error unescaped.
package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The errors a caller decides by. All other failures are an *Error or a fault of the machine.
var (
	// ErrUnfit: the git program is missing or below the floor of its release line.
	ErrUnfit = errors.New("git is not fit")
	// ErrNotRepository: the path is in no git repository.
	ErrNotRepository = errors.New("not a git repository")
	// ErrNoCommit: the name stands for no commit of this repository.
	ErrNoCommit = errors.New("no such commit")
	// ErrStaleRef: a ref was not where it was expected. Nothing was moved.
	ErrStaleRef = errors.New("a ref is not where it was expected")
	// ErrRefused: the other side, or git itself, refuses: a hook, a permission, a shallow or
	// corrupt repository. Nothing was moved.
	ErrRefused = errors.New("refused")
	// ErrUnknown: a push was cut or gave no clear answer. Read back with LsRemote.
	ErrUnknown = errors.New("outcome unknown")
	// ErrNoRef: the other side has no such ref, or a fetch left none.
	ErrNoRef = errors.New("no such ref")
	// ErrTooBig: there is more than the bound allows. What was begun was ended.
	ErrTooBig = errors.New("too big")
	// ErrDetached: HEAD names no branch.
	ErrDetached = errors.New("HEAD names no branch")
	// ErrLocked: a lock file of git is in the way. Nothing was moved. Whether its owner still
	// lives cannot be proved, so it is never removed by Interlock; LockedError names it.
	ErrLocked = errors.New("a lock file of git is in the way")
	// ErrInvalid: a name or a combination of arguments that must never be given to git.
	ErrInvalid = errors.New("invalid argument for git")
)

// NotRepositoryError says which path is in no repository. It is an ErrNotRepository.
type NotRepositoryError struct {
	Path string // escaped
	Why  string // what git or the system said; safe to print
}

func (e *NotRepositoryError) Error() string {
	if e.Why == "" || strings.Contains(e.Why, ErrNotRepository.Error()) {
		return e.Path + " is in no git repository"
	}
	return e.Path + " is in no git repository: " + e.Why
}

// Unwrap returns ErrNotRepository.
func (e *NotRepositoryError) Unwrap() error { return ErrNotRepository }

// Defaults of Command.
const (
	DefaultTimeout         = 2 * time.Minute
	DefaultMaxOutput int64 = 16 << 20
)

// Git is the git program of this machine. It is safe for use by many goroutines.
type Git struct {
	program string // absolute
	path    string // PATH of the environment it was found in
	version string
}

// Find looks for git in PATH and reads its version. It returns an error that wraps ErrUnfit when
// there is none or when a hostile repository could make this version run commands.
func Find(ctx context.Context) (*Git, error) {
	path := os.Getenv("PATH")
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("%w: no git program in PATH; install git (%s or newer)", ErrUnfit, oldestFloor())
	}
	if program, err = filepath.Abs(program); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	g := &Git{program: program, path: path}
	out, err := g.Run(ctx, Command{Args: []string{"version"}, Timeout: 10 * time.Second})
	if err != nil {
		return nil, fmt.Errorf("%w: %s does not tell its version: %w", ErrUnfit, program, err)
	}
	if g.version, err = checkVersion(string(out.Stdout)); err != nil {
		return nil, err
	}
	return g, nil
}

// Version is the version of git, for example "2.39.5".
func (g *Git) Version() string { return g.version }

// Program is the absolute path of the git program.
func (g *Git) Program() string { return g.program }
