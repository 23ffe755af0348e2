// Package lineartest finds out whether what many processes did together is what one after the other
// could have done: it starts and kills the processes, keeps what each of them asked and was told,
// and has porcupine judge it by a model. It knows no store and no forge; only tests import it.
package lineartest

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Clocks is how many injected clocks there are: one for each machine that a test plays.
const Clocks = 4

// words of the memory that all processes of a test share. Each is read and written atomically.
type words struct {
	done, most atomic.Int64 // operations that were answered, and how many there are to be
	boot, wall atomic.Int64 // number of this boot; what the wall clock is off by, in nanoseconds
	now, rate  [Clocks]atomic.Int64
}

// Board is memory that all processes of a test share, by a mapped file: the injected clocks, and how
// far the test has come. Time on it is made of operations: each one that is answered moves each
// clock on by its rate, so that a slow machine sees the same races as a fast one.
type Board struct {
	*words
	parent int // who has started this process
}

// NewBoard makes the file. Its clocks stand at an hour after the first boot.
func NewBoard(path string, most int64, rate time.Duration) (Board, error) {
	if err := os.WriteFile(path, make([]byte, os.Getpagesize()), 0o600); err != nil {
		return Board{}, err
	}
	b, err := OpenBoard(path)
	if err != nil {
		return Board{}, err
	}
	b.most.Store(most)
	b.boot.Store(1)
	for i := range b.now {
		b.now[i].Store(int64(time.Hour))
		b.rate[i].Store(int64(rate))
	}
	return b, nil
}

// OpenBoard maps a board that another process has made. It stays mapped until the process ends.
func OpenBoard(path string) (Board, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return Board{}, err
	}
	defer f.Close()
	mem, err := syscall.Mmap(int(f.Fd()), 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return Board{}, err
	}
	return Board{(*words)(unsafe.Pointer(&mem[0])), os.Getppid()}, nil
}

// Done is how many operations were answered.
func (b Board) Done() int64 { return b.done.Load() }

// Over reports whether there are enough, or whether who has started this process is gone, so that
// nobody would ever ask what it has done.
func (b Board) Over() bool { return b.done.Load() >= b.most.Load() || os.Getppid() != b.parent }

// tick counts an operation, and lets time pass for it.
func (b Board) tick() {
	for i := range b.now {
		b.now[i].Add(b.rate[i].Load())
	}
	b.done.Add(1)
}

// Now reads all clocks, each of them once.
func (b Board) Now() (all [Clocks]int64) {
	for i := range all {
		all[i] = b.now[i].Load()
	}
	return all
}

// Clock is one of the injected clocks. It satisfies store.Clock.
func (b Board) Clock(i int) Clock { return Clock{b, i} }

// Clock is described at Board.Clock.
type Clock struct {
	board Board
	n     int
}

// Now is the boot-time clock: it only goes forward, and goes on in suspend.
func (c Clock) Now() time.Duration { return time.Duration(c.board.now[c.n].Load()) }

// Boot names the boot.
func (c Clock) Boot() string { return fmt.Sprintf("boot-%d", c.board.boot.Load()) }

// Wall is a wall clock that somebody steps by hours while leases live.
func (c Clock) Wall() time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(c.board.wall.Load()))
}

// monotonic is the one clock that orders what the processes did: CLOCK_MONOTONIC of the machine,
// in nanoseconds. No test moves it.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // without it no history has a meaning
	}
	return ts.Nano()
}
