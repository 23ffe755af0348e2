// Package floor is what nothing durable can be faster than on a machine: a record appended to a file
// and synced, alone or for many at once. It keeps no order, checks nothing and can read nothing back.
package floor

import (
	"os"
	"path/filepath"
	"syscall"
)

// Log is a file of records, each synced before Append returns.
type Log struct{ file *os.File }

// Open makes a new log in a directory.
func Open(dir string) (*Log, error) {
	f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &Log{file: f}, nil
}

// Append writes a record and syncs it. Not for use by several goroutines.
func (l *Log) Append(record []byte) error {
	if _, err := l.file.Write(record); err != nil {
		return err
	}
	return syscall.Fdatasync(int(l.file.Fd()))
}

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }

// Group is a log that many write to at once: whatever is queued is one write and one sync.
type Group struct {
	log   *Log
	queue chan entry
	done  chan struct{}
}

type entry struct {
	record []byte
	kept   chan error
}

// groupMost is how many records one write has at most.
const groupMost = 1024

// OpenGroup makes a new log in a directory. The caller calls Close.
func OpenGroup(dir string) (*Group, error) {
	l, err := Open(dir)
	if err != nil {
		return nil, err
	}
	g := &Group{log: l, queue: make(chan entry, groupMost), done: make(chan struct{})}
	go g.serve()
	return g, nil
}

// Append returns when the record is on disk.
func (g *Group) Append(record []byte) error {
	e := entry{record, make(chan error, 1)}
	g.queue <- e
	return <-e.kept
}

func (g *Group) serve() {
	defer close(g.done)
	var buffer []byte
	var waiting []entry
	for e := range g.queue {
		buffer, waiting = append(buffer[:0], e.record...), append(waiting[:0], e)
		for more := true; more && len(waiting) < groupMost; {
			select {
			case e, open := <-g.queue:
				if more = open; open {
					buffer, waiting = append(buffer, e.record...), append(waiting, e)
				}
			default:
				more = false
			}
		}
		err := g.log.Append(buffer)
		for _, e := range waiting {
			e.kept <- err
		}
	}
}

// Close ends the log. Nobody may append any more.
func (g *Group) Close() error {
	close(g.queue)
	<-g.done
	return g.log.Close()
}
