// Package boottime is the clock by which leases of one machine are timed. It never follows the wall
// clock, and is never set.
package boottime

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// bootIDPath names this boot; it changes with each start of the kernel.
const bootIDPath = "/proc/sys/kernel/random/boot_id"

// Clock is the clock of this machine: CLOCK_BOOTTIME, which goes on in suspend and does not
// follow the wall clock, and the kernel's boot id. It is a store.Clock.
type Clock struct{ boot string }

// New returns the clock. An error says what this machine lacks for it.
func New() (*Clock, error) { return of(bootIDPath) }

// of names the boot by what is in a file.
func of(bootID string) (*Clock, error) {
	b, err := os.ReadFile(bootID)
	if err != nil {
		return nil, fmt.Errorf("this boot cannot be named, so no lease can be timed; mount /proc: %w", err)
	}
	boot := strings.TrimSpace(string(b))
	if boot == "" {
		return nil, fmt.Errorf("%s is empty, so no lease can be timed", bootID)
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return nil, fmt.Errorf("the kernel has no CLOCK_BOOTTIME: %w", err)
	}
	return &Clock{boot}, nil
}

// Now is the time since boot, suspend included.
func (*Clock) Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("CLOCK_BOOTTIME was there and is gone: " + err.Error())
	}
	return time.Duration(ts.Nano())
}

// Boot is the kernel's id of this boot.
func (c *Clock) Boot() string { return c.boot }

// Wall is the time of day.
func (*Clock) Wall() time.Time { return time.Now() }
