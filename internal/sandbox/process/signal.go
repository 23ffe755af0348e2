package process

import (
	"errors"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Signal sends to exactly this process, never to a later one with its pid. A process that is
// gone is not an error.
func (p ID) Signal(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	st, err := readStat(p.PID)
	if err != nil || st.start != p.Start {
		return nil
	}
	err = unix.PidfdSendSignal(fd, sig, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// KillDescendants stops all descendants first, until a pass finds no new one, so that a storm of
// forks cannot outrun it; then it kills them.
func KillDescendants(of int) error {
	seen := map[ID]bool{}
	for fresh := true; fresh; {
		fresh = false
		list, err := descendants(of)
		if err != nil {
			return err
		}
		for _, p := range list {
			if !seen[p] {
				seen[p], fresh = true, true
				p.Signal(unix.SIGSTOP)
			}
		}
	}
	for p := range seen {
		p.Signal(unix.SIGKILL)
	}
	return nil
}

// descendants lists the living processes below one, zombies left out.
func descendants(of int) ([]ID, error) {
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	children := map[int][]stat{}
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			continue
		}
		if st, err := readStat(pid); err == nil {
			children[st.parent] = append(children[st.parent], st)
		}
	}
	var out []ID
	for todo := []int{of}; len(todo) > 0; todo = todo[1:] {
		for _, st := range children[todo[0]] {
			todo = append(todo, st.pid)
			if st.state != 'Z' && st.state != 'X' {
				out = append(out, ID{PID: st.pid, Start: st.start})
			}
		}
		delete(children, todo[0])
	}
	return out, nil
}
