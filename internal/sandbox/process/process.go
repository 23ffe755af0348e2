// Package process names a process of this machine so that it can never be mistaken for a later one,
// proves that it is gone, and sends signals to exactly it and to what it started. It starts nothing
// and waits for nothing.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ID names one process of this machine so that it cannot be mistaken for a later one with
// the same pid.
type ID struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // field 22 of /proc/PID/stat, clock ticks since boot
	Boot  string `json:"boot"`  // of Boot
}

// Boot is the kernel's random name for the running boot.
func Boot() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// Self is the calling process.
func Self() (ID, error) { return Of(os.Getpid()) }

// Of is the process that has a pid now.
func Of(pid int) (ID, error) {
	boot, err := Boot()
	if err != nil {
		return ID{}, err
	}
	st, err := readStat(pid)
	if err != nil {
		return ID{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return ID{PID: pid, Start: st.start, Boot: boot}, nil
}

// Alive says whether the process still runs. False is proof that it does not: there is no such
// pid, the pid belongs to a later process, it is a zombie, or the machine was restarted. When
// /proc cannot be read the answer is an error, never false.
func (p ID) Alive() (bool, error) {
	if p.PID <= 0 || p.Boot == "" {
		return false, fmt.Errorf("process %d: the record is incomplete", p.PID)
	}
	boot, err := Boot()
	if err != nil {
		return false, err
	}
	if boot != p.Boot {
		return false, nil
	}
	st, err := readStat(p.PID)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return false, procMounted()
	}
	if err != nil {
		return false, fmt.Errorf("process %d: %w", p.PID, err)
	}
	return st.start == p.Start && st.state != 'Z' && st.state != 'X', nil
}

// procMounted guards the conclusion "no such pid": without /proc nothing is proved.
func procMounted() error {
	if _, err := readStat(os.Getpid()); err != nil {
		return fmt.Errorf("/proc is not readable: %w", err)
	}
	return nil
}

type stat struct {
	pid, parent int
	state       byte
	start       uint64
}

func readStat(pid int) (stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(b)
}

// parseStat reads the fields after the command name, which may itself hold blanks and brackets.
func parseStat(b []byte) (stat, error) {
	end := bytes.LastIndexByte(b, ')')
	open := bytes.IndexByte(b, '(')
	if open < 1 || end < open {
		return stat{}, fmt.Errorf("stat line %q is malformed", b)
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(b[:open])))
	if err != nil {
		return stat{}, fmt.Errorf("stat line: pid: %w", err)
	}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 20 || len(f[0]) != 1 {
		return stat{}, fmt.Errorf("stat line has %d fields after the name", len(f))
	}
	parent, err := strconv.Atoi(f[1])
	if err != nil {
		return stat{}, fmt.Errorf("stat line: parent: %w", err)
	}
	start, err := strconv.ParseUint(f[19], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("stat line: start time: %w", err)
	}
	return stat{pid: pid, parent: parent, state: f[0][0], start: start}, nil
}
