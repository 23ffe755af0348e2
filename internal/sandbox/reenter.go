package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"interlock/internal/sandbox/confine"
)

// The hidden subcommands. The program executes itself with them; people never type them.
const (
	superviseArg = "__supervise"
	confineArg   = "__confine"
	execArg      = "__exec"
	devicesArg   = "__devices"
)

var (
	reentered       atomic.Bool
	errNotReentered = errors.New("sandbox: the program did not call Reenter first")
)

// Redact returns a writer that passes on to another what is written to it, without the secrets.
type Redact func(to io.Writer, secrets []string) io.WriteCloser

// hasReentered guards against executing a program that would not know the hidden subcommands
// and would begin its own work once more.
func hasReentered() bool { return reentered.Load() }

// Reenter must be called first of all by every program that uses this package, tests included,
// with its arguments (os.Args or os.Args[1:]). When they are a hidden subcommand, Reenter does
// it: handled is true and the program must exit with code at once.
// redact is how a program that has sessions with Spec.Secrets takes those out of a log.
func Reenter(args []string, redact ...Redact) (code int, handled bool) {
	reentered.Store(true)
	for i := range min(2, len(args)) {
		rest := args[i+1:]
		switch args[i] {
		case superviseArg:
			return superviseMain(redact), true
		case confineArg:
			return report("confine", confine.Main(rest)), true
		case execArg:
			return report("exec", execMain(rest)), true
		case devicesArg:
			return report("devices", enterDevices(rest)), true
		}
	}
	return 0, false
}

// report prints why a stage could not go on; stages that succeed never return. 125 is what
// env(1) and its kin use for "the wrapper itself failed".
func report(stage string, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "interlock %s: %v\n", stage, err)
	return 125
}
