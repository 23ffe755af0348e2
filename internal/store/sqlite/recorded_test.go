package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net/url"
	"sync"
)

// Recorded has each statement of a store told to told, from now on. Nobody may use the store meanwhile.
func (s *Store) Recorded(told func(query string)) error {
	name := url.URL{Scheme: "file", Path: s.path, RawQuery: "mode=rw&_txlock=immediate&_pragma=foreign_keys(1)&_pragma=busy_timeout(10000)"}
	var mu sync.Mutex
	r := &recorder{dsn: name.String(), under: s.read.Driver(), told: func(query string) {
		mu.Lock()
		defer mu.Unlock()
		told(query)
	}}
	err := errors.Join(s.read.Close(), s.closeWriter())
	s.read, s.write = sql.OpenDB(r), sql.OpenDB(r)
	s.write.SetMaxOpenConns(1)
	return err
}

// recorder is a database driver that tells each statement, and passes it on.
type recorder struct {
	dsn   string
	under driver.Driver
	told  func(string)
}

func (r *recorder) Driver() driver.Driver { return r.under }

func (r *recorder) Connect(context.Context) (driver.Conn, error) {
	c, err := r.under.Open(r.dsn)
	if err != nil {
		return nil, err
	}
	return &recordedConn{Conn: c, told: r.told}, nil
}

type recordedConn struct {
	driver.Conn
	told func(string)
}

func (c *recordedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.told(query)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c *recordedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.told(query)
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c *recordedConn) Prepare(query string) (driver.Stmt, error) {
	c.told(query)
	return c.Conn.Prepare(query)
}

func (c *recordedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	c.told(query)
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
}

func (c *recordedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
}
