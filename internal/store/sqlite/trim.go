package sqlite

import (
	"context"
	"os"
)

const (
	// logMost is the size in bytes up to which the write-ahead log may grow before it is cut back.
	logMost = 16 << 20
	// trimWait, in milliseconds, is how long cutting it back may wait for those who still read an
	// old state of the database. Readers that come meanwhile do not prolong it.
	trimWait = 250
)

// trim cuts the write-ahead log back when it is over its limit: SQLite's own checkpoints begin it
// anew only when nobody reads, and that moment may never come. It is called in turn. When a reader
// does not end in time it is tried again after the log has grown by a quarter of the limit.
func (s *Store) trim() {
	info, err := os.Stat(s.path + "-wal")
	if err != nil || info.Size() <= max(s.logMost, s.logNext) {
		return
	}
	if s.truncate() {
		s.logNext = 0
		return
	}
	s.logNext = info.Size() + s.logMost/4
}

// truncate reports whether the log is empty now. A failure is not an error of whoever wrote last:
// what was written is safe in the log.
func (s *Store) truncate() bool {
	ctx := context.Background()
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return false
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, pragmaTimeout(trimWait)); err != nil {
		return false
	}
	var busy, pages, moved int
	err = conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved)
	if _, e := conn.ExecContext(ctx, pragmaTimeout(busyTimeout)); e != nil {
		return false
	}
	return err == nil && busy == 0
}
