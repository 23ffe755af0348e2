package sqlite

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"interlock/internal/store"
)

// bootIDPath names this boot; it changes with each start of the kernel.
const bootIDPath = "/proc/sys/kernel/random/boot_id"

type systemClock struct{ boot string }

// SystemClock is the clock of this machine: CLOCK_BOOTTIME, which goes on in suspend and does not
// follow the wall clock, and the kernel's boot id. It returns store.ErrUnfit where there is none.
func SystemClock() (store.Clock, error) {
	b, err := os.ReadFile(bootIDPath)
	if err != nil {
		return nil, fmt.Errorf("%w: this boot cannot be named, so no lease can be timed; mount /proc: %w", store.ErrUnfit, err)
	}
	boot := strings.TrimSpace(string(b))
	if boot == "" {
		return nil, fmt.Errorf("%w: %s is empty, so no lease can be timed", store.ErrUnfit, bootIDPath)
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return nil, fmt.Errorf("%w: the kernel has no CLOCK_BOOTTIME: %w", store.ErrUnfit, err)
	}
	return systemClock{boot: boot}, nil
}

// Now implements store.Clock.
func (systemClock) Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("CLOCK_BOOTTIME was there and is gone: " + err.Error())
	}
	return time.Duration(ts.Nano())
}

// Boot implements store.Clock.
func (c systemClock) Boot() string { return c.boot }

// Wall implements store.Clock.
func (systemClock) Wall() time.Time { return time.Now() }
