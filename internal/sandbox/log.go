package sandbox

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// sessionLog keeps the first bytes of a session's output and counts the rest. Writing never
// fails and never blocks on anything but the disk: an agent must not stop because a log is full.
type sessionLog struct {
	path    string
	limit   int64 // 0: none
	mu      sync.Mutex
	f       *os.File
	kept    int64
	lost    int64
	touched atomic.Int64 // boot time of the last output
	// redact takes secrets out before anything is cut or kept; nil: there are none.
	redact io.WriteCloser
}

// keptLog is where what was redacted goes.
type keptLog struct{ *sessionLog }

func (k keptLog) Write(p []byte) (int, error) {
	k.keep(p)
	return len(p), nil
}

func newSessionLog(path string, limit int64) (*sessionLog, error) {
	f, err := openLog(path)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return &sessionLog{path: path, limit: limit, f: f}, nil
}

// Write keeps what fits. A write that the disk refuses counts as dropped.
func (l *sessionLog) Write(p []byte) (int, error) {
	l.touched.Store(int64(bootTime()))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.redact != nil {
		return l.redact.Write(p)
	}
	l.keep(p)
	return len(p), nil
}

// keep writes what fits. mu is held.
func (l *sessionLog) keep(p []byte) {
	fits := p
	if l.limit > 0 {
		fits = p[:min(int64(len(p)), max(0, l.limit-l.kept))]
	}
	n := 0
	if len(fits) > 0 {
		n, _ = l.f.Write(fits)
	}
	l.kept += int64(n)
	l.lost += int64(len(p) - n)
}

// note adds a line of our own, beyond the limit.
func (l *sessionLog) note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.f, "\ninterlock: %s\n", text) // nothing can be done about a full disk here
}

// close ends the log with a line that says what is missing.
func (l *sessionLog) close() {
	l.mu.Lock()
	if l.redact != nil {
		_ = l.redact.Close() // what was held back is kept or counted, as all else
	}
	l.mu.Unlock()
	if n := l.dropped(); n > 0 {
		l.note(fmt.Sprintf("%d bytes of output were dropped here; the limit of this log is %d bytes", n, l.limit))
	}
	l.f.Close()
}

func (l *sessionLog) dropped() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

func (l *sessionLog) last() time.Duration { return time.Duration(l.touched.Load()) }

// offset is the size of the file now.
func (l *sessionLog) offset() int64 {
	st, err := l.f.Stat()
	if err != nil {
		return 0
	}
	return st.Size()
}
