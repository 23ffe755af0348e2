//go:build failpoint

package cli_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// crashRoom is what the projects of the points need at once, with room to spare.
const crashRoom = 1 << 30

// inMemory puts what a test writes into memory, where the machine has room for it there. A process
// that is killed leaves what it wrote to the kernel, whatever the filesystem: what SIGKILL can lose
// is the same on both, and a point takes two thirds of the time. (What a power loss can take is
// TestPowerLoss's to try.)
func inMemory(t *testing.T) {
	t.Helper()
	const memory = "/dev/shm"
	var fs unix.Statfs_t
	if err := unix.Statfs(memory, &fs); err != nil || int64(fs.Type) != unix.TMPFS_MAGIC || fs.Bavail*uint64(fs.Bsize) < crashRoom {
		t.Logf("%s is no memory with room for %d MiB: on disk, which takes longer", memory, crashRoom>>20)
		return
	}
	dir, err := os.MkdirTemp(memory, "interlock-crash-")
	if err != nil {
		t.Logf("%v: on disk, which takes longer", err)
		return
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("TMPDIR", dir)
}
