package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"
)

// statements are those of the connection that writes, prepared at their first use: to parse one takes
// longer than to run it. Only the writer goroutine uses them, in a transaction.
type statements struct {
	conn driver.Conn // that they are prepared on
	all  map[string]driver.Stmt
}

// statementsMost bounds them. The writes of this package are far fewer; what comes above is prepared
// each time.
const statementsMost = 200

// use runs f with a statement of a connection.
func (p *statements) use(conn driver.Conn, query string, f func(driver.Stmt) error) error {
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
	if len(p.all) < statementsMost {
		p.all[query] = s
		return f(s)
	}
	return errors.Join(f(s), s.Close())
}

// close gives the statements up. A database is closed only when it has none left.
func (p *statements) close() error {
	var all []error
	for _, s := range p.all {
		all = append(all, s.Close())
	}
	p.conn, p.all = nil, nil
	return errors.Join(all...)
}

// closeWriter closes the connection that writes. Closing twice is the same as once.
func (s *Store) closeWriter() error { return errors.Join(s.prepared.close(), s.write.Close()) }

// with runs f with a statement of the transaction.
func (t *txn) with(query string, f func(driver.Stmt) error) error {
	return t.conn.Raw(func(conn any) error { return t.s.prepared.use(conn.(driver.Conn), query, f) })
}

// exec runs one statement and returns how many rows it changed.
func (t *txn) exec(query string, args ...any) (n int64, err error) {
	values, err := named(args)
	if err != nil {
		return 0, err
	}
	err = t.with(query, func(s driver.Stmt) error {
		res, err := s.(driver.StmtExecContext).ExecContext(context.Background(), values)
		if err == nil {
			n, err = res.RowsAffected()
		}
		return err
	})
	return n, err
}

// scan reads one row; ok is false when there is none.
func (t *txn) scan(dest []any, query string, args ...any) (ok bool, err error) {
	err = t.each(dest, func() { ok = true }, query, args...)
	return ok, err
}

// one reads a row that is there.
func (t *txn) one(dest []any, query string, args ...any) error {
	ok, err := t.scan(dest, query, args...)
	if err == nil && !ok {
		err = sql.ErrNoRows
	}
	return err
}

// each reads rows, each into the same dest, and calls f for each.
func (t *txn) each(dest []any, f func(), query string, args ...any) error {
	values, err := named(args)
	if err != nil {
		return err
	}
	return t.with(query, func(s driver.Stmt) error {
		rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), values)
		if err != nil {
			return err
		}
		row := make([]driver.Value, len(dest))
		for err == nil {
			if err = rows.Next(row); err == nil {
				err = assign(dest, row)
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

// assign puts a row where it is wanted. The tables are strict: an integer is an int64, a text a string.
func assign(dest []any, row []driver.Value) error {
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
