package sandbox

import (
	"hash/maphash"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A scan of watched directories looks at no more than this many entries, the upper levels
// first: changes deep in a huge tree may be missed, output and the rest still count.
const scanEntries = 20000

// watch records changes in the watched directories until stop. It runs beside the limits, so a
// file system that hangs cannot keep them from being enforced.
func (s *supervisor) watch(stop <-chan struct{}) {
	every := min(max(s.spec.Limits.Idle/10, 50*time.Millisecond), 10*time.Second)
	seed := maphash.MakeSeed()
	before := fingerprint(seed, s.spec.Watch, scanEntries)
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
		}
		now := fingerprint(seed, s.spec.Watch, scanEntries)
		if now != before {
			before = now
			s.changed.Store(int64(bootTime()))
		}
	}
}

// fingerprint sums up names, sizes and change times below the directories. Symbolic links are
// not followed and nothing but directories is opened. A change time cannot be set by programs.
func fingerprint(seed maphash.Seed, dirs []string, limit int) uint64 {
	var sum uint64
	todo := append([]string(nil), dirs...)
	for seen := 0; len(todo) > 0 && seen < limit; seen++ {
		path := todo[0]
		todo = todo[1:]
		var st unix.Stat_t
		if unix.Lstat(path, &st) != nil {
			continue
		}
		sum += maphash.Comparable(seed, [6]any{path, st.Ino, st.Size, st.Ctim, st.Mtim, st.Mode})
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			continue
		}
		for _, name := range listDir(path, max(0, limit-seen-len(todo))) {
			todo = append(todo, filepath.Join(path, name))
		}
	}
	return sum
}

// listDir names up to limit entries; none when it is not a directory any more.
func listDir(dir string, limit int) []string {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	if limit <= 0 {
		return nil // Readdirnames would take that for "all"
	}
	names, err := f.Readdirnames(limit)
	if err != nil {
		return nil
	}
	return names
}
