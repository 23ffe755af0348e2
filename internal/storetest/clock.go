package storetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Clock is a store.Clock that a test moves. It lives in a file, so that the processes of a test
// share it.
type Clock struct {
	path string
	mu   sync.Mutex
	boot int
}

// NewClock makes a clock that stands at one hour after the first boot.
func NewClock(t *testing.T) *Clock {
	t.Helper()
	c := &Clock{path: filepath.Join(t.TempDir(), "clock"), boot: 1}
	c.set(time.Hour)
	return c
}

// set replaces the file as a whole, so that nobody reads half of it.
func (c *Clock) set(now time.Duration) {
	next := c.path + ".next"
	if err := os.WriteFile(next, fmt.Appendf(nil, "%d boot-%d", int64(now), c.boot), 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(next, c.path); err != nil {
		panic(err)
	}
}

// read panics when the clock cannot be read: without it a test has no meaning.
func (c *Clock) read() (now time.Duration, boot string) {
	b, err := os.ReadFile(c.path)
	if err != nil {
		panic(err)
	}
	if _, err := fmt.Fscan(strings.NewReader(string(b)), (*int64)(&now), &boot); err != nil {
		panic(err)
	}
	return now, boot
}

// Now implements store.Clock.
func (c *Clock) Now() time.Duration { now, _ := c.read(); return now }

// Boot implements store.Clock.
func (c *Clock) Boot() string { _, boot := c.read(); return boot }

// Wall implements store.Clock. It follows Now.
func (c *Clock) Wall() time.Time { return time.Unix(1_000_000_000, 0).Add(c.Now()) }

// Advance lets time pass: the machine worked, or slept.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(c.Now() + d)
}

// Reboot starts another boot, whose time begins at a second again.
func (c *Clock) Reboot() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.boot++
	c.set(time.Second)
}
