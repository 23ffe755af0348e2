//go:build failpoint

package engine

import (
	"os"
	"syscall"
)

// failpoint kills this process with SIGKILL when the environment names the point. It exists only
// in builds with the tag failpoint, which are for tests.
func failpoint(name string) {
	if os.Getenv("INTERLOCK_FAILPOINT") == name {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
