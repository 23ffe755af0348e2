//go:build failpoint

package failpoint

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
)

// Failpoints exist only in builds with the tag failpoint, which are for tests. The environment
// names a point, which counts at its first pass in a process:
//
//	INTERLOCK_FAILPOINT        this process is killed there with SIGKILL
//	INTERLOCK_FAULT            the write there has happened, but its answer is an error
//	INTERLOCK_FAILPOINT_TRACE  a file to which every first pass is appended, one a line

var (
	mu     sync.Mutex
	passed = map[string]bool{}
)

// Here is a place at which a process can be killed.
func Here(name string) {
	if reached("INTERLOCK_FAILPOINT", "kill "+name, name) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

var errFault = errors.New("a failure after the write, made for a test")

// Fault is called after a write that has happened; its error says that it has not.
func Fault(name string) error {
	if reached("INTERLOCK_FAULT", "fault "+name, name) {
		return errFault
	}
	return nil
}

// reached reports whether this is the first pass of the point that the environment names.
func reached(variable, count, name string) bool {
	mu.Lock()
	defer mu.Unlock()
	if passed[count] {
		return false
	}
	passed[count] = true
	if file := os.Getenv("INTERLOCK_FAILPOINT_TRACE"); file != "" && strings.HasPrefix(count, "kill ") {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			panic(err) // a test that cannot trace proves nothing
		}
		defer f.Close()
		fmt.Fprintln(f, name)
	}
	return os.Getenv(variable) == name
}
