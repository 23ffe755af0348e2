package boottime_test

import (
	"testing"

	"interlock/internal/boottime"
	"interlock/internal/store"
)

// TestClock: it is the store's clock, it goes forward, and it names the boot.
func TestClock(t *testing.T) {
	t.Parallel()
	var c store.Clock
	c, err := boottime.New()
	if err != nil {
		t.Fatal(err)
	}
	a, b := c.Now(), c.Now()
	if a <= 0 || b < a || len(c.Boot()) != 36 || c.Wall().IsZero() {
		t.Errorf("%v, %v, %q, %v", a, b, c.Boot(), c.Wall())
	}
}
