package sandbox

import (
	"errors"
	"fmt"
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

// hasReentered guards against executing a program that would not know the hidden subcommands
// and would begin its own work once more.
func hasReentered() bool { return reentered.Load() }

// Reenter must be called first of all by every program that uses this package, tests included,
// with its arguments (os.Args or os.Args[1:]). When they are a hidden subcommand, Reenter does
// it: handled is true and the program must exit with code at once.
func Reenter(args []string) (code int, handled bool) {
	reentered.Store(true)
	for i := range min(2, len(args)) {
		rest := args[i+1:]
		switch args[i] {
		case superviseArg:
			return superviseMain(), true
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
