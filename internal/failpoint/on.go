//go:build failpoint

package failpoint

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Failpoints exist only in builds with the tag failpoint, which are for tests. The environment
// names a point, which counts at its first pass in a process:
//
//	INTERLOCK_FAILPOINT        this process is killed there with SIGKILL
//	INTERLOCK_STOPPOINT        this process is stopped there with SIGSTOP, until somebody continues it
//	INTERLOCK_FAULT            the write there has happened, but its answer is an error
//	INTERLOCK_SOONER_RENEWALS  what is renewed is renewed so many times as often
//	INTERLOCK_SOONER_TRUST     a lease is trusted for so many times less long than it was granted for
//	INTERLOCK_SOONER_GRACE     what is under way at an interrupt is cut off so many times as soon
//	INTERLOCK_FAILPOINT_TRACE  a file to which every first pass is appended, one a line: what can be
//	                           done there (kill or fault) and its name

var (
	mu     sync.Mutex
	passed = map[string]bool{}
)

// Here is a place at which a process can be killed or stopped.
func Here(name string) {
	if !first("kill " + name) {
		return
	}
	self := os.Getpid()
	switch name {
	case os.Getenv("INTERLOCK_FAILPOINT"):
		_ = syscall.Kill(self, syscall.SIGKILL)
		select {}
	case os.Getenv("INTERLOCK_STOPPOINT"):
		// Sent to this thread: one that is sent to the process may be taken by another, and this one
		// goes on into the write before all are stopped.
		runtime.LockOSThread()
		_, _, _ = syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(self), uintptr(syscall.Gettid()), uintptr(syscall.SIGSTOP))
		runtime.UnlockOSThread()
	}
}

var errFault = errors.New("a failure after the write, made for a test")

// Fault is called after a write that has happened; its error says that it has not.
func Fault(name string) error {
	if first("fault "+name) && os.Getenv("INTERLOCK_FAULT") == name {
		return errFault
	}
	return nil
}

// IsFault reports whether an error is one that Fault has made.
func IsFault(err error) bool { return errors.Is(err, errFault) }

// Sooner returns the part of a time that a test has asked for, all of it otherwise.
func Sooner(what string, d time.Duration) time.Duration {
	if times, err := strconv.Atoi(os.Getenv("INTERLOCK_SOONER_" + what)); err == nil && times > 0 {
		return d / time.Duration(times)
	}
	return d
}

// first reports whether this is the first pass of a point, and traces it.
func first(point string) bool {
	mu.Lock()
	defer mu.Unlock()
	if passed[point] {
		return false
	}
	passed[point] = true
	if file := os.Getenv("INTERLOCK_FAILPOINT_TRACE"); file != "" {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			panic(err) // a test that cannot trace proves nothing
		}
		defer f.Close()
		fmt.Fprintln(f, point)
	}
	return true
}
