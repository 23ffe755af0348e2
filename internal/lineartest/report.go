package lineartest

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// seedVariable says with which seed a test begins.
const seedVariable = "INTERLOCK_SEED"

// Rounds splits the operations that were asked for into rounds of at most size, each with a seed of
// its own, and does them. most is how many a test does when the environment does not say.
func Rounds(t *testing.T, variable string, most, size int64, round func(t *testing.T, seed uint64, most int64)) {
	t.Helper()
	if testing.Short() {
		most /= 20
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(variable); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= 0 {
			t.Fatalf("%s=%q is no number of operations", variable, text)
		}
		most = n
	}
	if text := os.Getenv(seedVariable); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s=%q is no seed", seedVariable, text)
		}
		seed = n
	}
	for ; most > 0 && !t.Failed(); most, seed = most-size, seed+1 {
		round(t, seed, min(size, most))
	}
}

// Report is the line of one model.
func (f *Fleet) Report(model string, operations, unknown, keys, anomalies int) {
	c := f.Counts
	f.t.Logf("%s: %d operations (%d of unknown outcome) on %d keys, %d processes, %d kills, %d pauses, %d clock steps, %d anomalies; seed %d",
		model, operations, unknown, keys, c.Processes, c.Kills, c.Pauses, c.Suspends+c.Steps+c.Drifts+c.Reboots, anomalies, f.seed)
}

// Tried fails the test when a full round has left something of its plan out.
func (f *Fleet) Tried() {
	c := f.Counts
	if c.Kills == 0 || c.Pauses == 0 || c.Suspends == 0 || c.Steps == 0 || c.Drifts == 0 || c.Reboots == 0 {
		f.t.Errorf("seed %d: not everything was tried: %+v", f.seed, c)
	}
}

// Clocks says what was done to the clocks.
func (f *Fleet) Clocks() string {
	c := f.Counts
	return fmt.Sprintf("%d suspends, %d steps of the wall clock, %d changes of rate, %d reboots", c.Suspends, c.Steps, c.Drifts, c.Reboots)
}
