// Package statement runs statements on one connection of a database and keeps them prepared: to parse one
// takes longer than to run it. It knows no table and no transaction, and it never uses two connections
// at once.
package statement

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"
)

// Most is how many statements are kept. What comes above is prepared each time.
const Most = 200

// Set is the statements of one connection at a time. Not for use by several goroutines.
type Set struct {
	conn driver.Conn // that they are prepared on
	all  map[string]driver.Stmt
}

// Len is how many statements are kept.
func (p *Set) Len() int { return len(p.all) }

// Close gives the statements up. A database is closed only when it has none left.
func (p *Set) Close() error {
	var all []error
	for _, s := range p.all {
		all = append(all, s.Close())
	}
	p.conn, p.all = nil, nil
	return errors.Join(all...)
}

// use runs f with a statement of a connection.
func (p *Set) use(conn *sql.Conn, query string, f func(driver.Stmt) error) error {
	return conn.Raw(func(raw any) error {
		conn := raw.(driver.Conn)
		if p.conn != conn { // the statements of another went with it
			p.conn, p.all = conn, map[string]driver.Stmt{}
		}
		if s, ok := p.all[query]; ok {
			return f(s)
		}
		s, err := conn.Prepare(query)
		if err != nil {
			return err
		}
		if len(p.all) < Most {
			p.all[query] = s
			return f(s)
		}
		return errors.Join(f(s), s.Close())
	})
}

// Exec runs one statement and returns how many rows it changed. It is not cut off.
func (p *Set) Exec(conn *sql.Conn, query string, args ...any) (n int64, err error) {
	values, err := named(args)
	if err != nil {
		return 0, err
	}
	err = p.use(conn, query, func(s driver.Stmt) error {
		res, err := s.(driver.StmtExecContext).ExecContext(context.Background(), values)
		if err == nil {
			n, err = res.RowsAffected()
		}
		return err
	})
	return n, err
}

// Each reads rows, each into the same dest, and calls f for each. It is not cut off.
func (p *Set) Each(conn *sql.Conn, dest []any, f func(), query string, args ...any) error {
	values, err := named(args)
	if err != nil {
		return err
	}
	return p.use(conn, query, func(s driver.Stmt) error {
		rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), values)
		if err != nil {
			return err
		}
		row := make([]driver.Value, len(dest))
		for err == nil {
			if err = rows.Next(row); err == nil {
				err = Assign(dest, row)
			}
			if err == nil {
				f()
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return errors.Join(err, rows.Close())
	})
}

// named makes arguments what the driver takes.
func named(args []any) ([]driver.NamedValue, error) {
	values := make([]driver.NamedValue, len(args))
	for i, a := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(a)
		if err != nil {
			return nil, err
		}
		values[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return values, nil
}

// Assign puts a row where it is wanted. The tables are strict: an integer is an int64, a text a string.
// What does not fit is an error, never a zero.
func Assign(dest []any, row []driver.Value) error {
	for i, to := range dest {
		number, isNumber := row[i].(int64)
		text, isText := row[i].(string)
		fits := isNumber
		switch to := to.(type) {
		case *int64:
			*to = number
		case *int:
			*to = int(number)
		case *time.Duration:
			*to = time.Duration(number)
		case *bool:
			*to = number != 0
		case *string:
			*to, fits = text, isText
		default:
			fits = false
		}
		if !fits {
			return fmt.Errorf("column %d holds %T, which does not go into %T", i+1, row[i], to)
		}
	}
	return nil
}
