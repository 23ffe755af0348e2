package sandbox

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime is CLOCK_BOOTTIME. Every deadline of this package is compared on it, because Go's
// timers and CLOCK_MONOTONIC stand still while the machine is suspended.
func bootTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("sandbox: CLOCK_BOOTTIME: " + err.Error()) // every supported kernel has it
	}
	return time.Duration(ts.Nano())
}
