package statement_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"interlock/internal/store/sqlite/statement"
)

// TestSet: statements run on whichever connection they are asked for, are kept for it, and what cannot
// be run or read is an error that leaves nothing behind.
func TestSet(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:"+t.TempDir()+"/db")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var set statement.Set
	var conns []*sql.Conn
	for range 2 {
		c, err := db.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	exec := func(c int, want int64, query string, args ...any) {
		t.Helper()
		if n, err := set.Exec(conns[c], query, args...); err != nil || n != want {
			t.Errorf("%s: %d, %v, want %d", query, n, err, want)
		}
	}
	exec(0, 0, "CREATE TABLE t (a INTEGER, b TEXT) STRICT")
	for n := range 3 {
		exec(0, 1, "INSERT INTO t VALUES (?, ?)", n, "x")
	}
	if n := set.Len(); n != 2 {
		t.Errorf("%d statements are kept, want 2", n)
	}
	exec(1, 3, "UPDATE t SET b = ?", "y") // its own, on another connection
	if n := set.Len(); n != 1 {
		t.Errorf("%d statements are kept for the second connection, want 1", n)
	}
	sum, text := 0, ""
	var a int
	var b string
	if err := set.Each(conns[1], []any{&a, &b}, func() { sum, text = sum+a, text+b }, "SELECT a, b FROM t WHERE a > ?", 0); err != nil || sum != 3 || text != "yy" {
		t.Errorf("%d, %q, %v", sum, text, err)
	}
	for _, query := range []string{"no SQL", "INSERT INTO t VALUES ('text', 1)"} {
		if _, err := set.Exec(conns[1], query); err == nil {
			t.Errorf("%s: no error", query)
		}
	}
	if err := set.Each(conns[1], []any{&b}, func() {}, "SELECT a FROM t"); err == nil {
		t.Error("a number was read as a text")
	}
	if err := set.Each(conns[1], []any{&b}, func() {}, "SELECT a FROM t WHERE a = ?", struct{}{}); err == nil {
		t.Error("an argument of no known type: no error")
	}
	if _, err := set.Exec(conns[1], "SELECT ?", struct{}{}); err == nil {
		t.Error("an argument of no known type: no error")
	}
	exec(1, 3, "DELETE FROM t")
	if err := set.Close(); err != nil || set.Len() != 0 {
		t.Errorf("%v, %d are left", err, set.Len())
	}
}

// TestAssign: a column of another type than is wanted is an error, never a zero.
func TestAssign(t *testing.T) {
	t.Parallel()
	var n int
	var n64 int64
	var d time.Duration
	var b bool
	var s string
	if err := statement.Assign([]any{&n, &n64, &d, &b, &s}, []driver.Value{int64(1), int64(2), int64(3), int64(1), "x"}); err != nil {
		t.Fatal(err)
	}
	if n != 1 || n64 != 2 || d != 3 || !b || s != "x" {
		t.Errorf("%d, %d, %d, %t, %q", n, n64, d, b, s)
	}
	for _, c := range []struct {
		to any
		is driver.Value
	}{{&n, "1"}, {&n64, nil}, {&d, 1.5}, {&b, "true"}, {&s, int64(1)}, {&s, nil}, {new(float64), int64(1)}} {
		if err := statement.Assign([]any{c.to}, []driver.Value{c.is}); err == nil {
			t.Errorf("%T took %T", c.to, c.is)
		}
	}
}
