package statedir

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// StoppedError: the turn is kept by a process that is stopped (SIGSTOP, Ctrl-Z, a debugger) in the
// midst of a write. It cannot be taken from it: what it has half written would go on when it does. PID is
// 0 where the process cannot be seen, as from another pid namespace.
type StoppedError struct{ PID int }

func (e *StoppedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("for %s nobody else had a turn to write: a process that cannot be seen from here keeps it, or stands still in the midst of a write; look for it with fuser or lsof", longWait)
	}
	return fmt.Sprintf("process %d is stopped in the midst of a write and keeps everybody else from theirs: continue it (kill -CONT %d), or end it (kill -KILL %d; what it had begun is undone)",
		e.PID, e.PID, e.PID)
}

// stoppedWait is how long a holder has to be seen stopped until those who wait are told. A process
// that is continued sooner only makes them wait.
const (
	stoppedWait = 10 * time.Second
	stoppedLook = time.Second
	longWait    = time.Minute // a turn is a fraction of a second, so of no line that anybody has seen
)

// watch looks at who has the turn while somebody waits for it.
type watch struct {
	begin time.Time
	pid   int
	since time.Time // it was seen stopped at every look since then
}

// look returns a *StoppedError once the same holder was seen stopped for long enough.
func (w *watch) look(f *os.File, now time.Time) error {
	if w.begin.IsZero() {
		w.begin = now
	}
	pid := holder(f)
	if now.Sub(w.begin) >= longWait && !isStopped(pid) {
		return &StoppedError{}
	}
	if pid == 0 && w.pid != 0 && isStopped(w.pid) {
		return nil // the table is read in pieces, and what moves meanwhile can be missed
	}
	if pid == 0 || !isStopped(pid) {
		w.pid = 0
		return nil
	}
	if pid != w.pid {
		w.pid, w.since = pid, now
	}
	if now.Sub(w.since) < stoppedWait {
		return nil
	}
	return &StoppedError{pid}
}

// holder is the process that has the flock of a file, as far as the kernel's table shows it to us; 0
// when nobody has.
func holder(f *os.File) int {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	table, err := os.ReadFile("/proc/locks")
	if !ok || err != nil {
		return 0
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for lines := bufio.NewScanner(bytes.NewReader(table)); lines.Scan(); {
		// number, FLOCK, ADVISORY, WRITE, pid, device and inode, 0, EOF; "->" before FLOCK: it waits
		field := strings.Fields(lines.Text())
		if len(field) >= 6 && field[1] == "FLOCK" && field[5] == file {
			pid, _ := strconv.Atoi(field[4])
			return pid
		}
	}
	return 0
}

// isStopped reports whether a process is stopped, by a signal or a tracer.
func isStopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
	return strings.HasPrefix(rest, "T") || strings.HasPrefix(rest, "t")
}
