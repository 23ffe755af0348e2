package wire_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"interlock/internal/wire"
)

// listen has serve answer each connection to a socket of the test's own, and returns its path.
func listen(t *testing.T, serve func(*net.UnixConn)) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "w") // the path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			serve(c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return path
}

// request reads one request to its end, as a broker does.
func request(t *testing.T, c io.Reader) wire.Request {
	frame, err := io.ReadAll(c)
	if err != nil {
		t.Error(err)
	}
	r, err := wire.DecodeRequest(frame)
	if err != nil {
		t.Error(err)
	}
	return r
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

var question = wire.Request{Version: wire.Version, ID: "a", Op: "decide", Body: []byte(`{"tool":"Write"}`)}

// TestCall: a request comes whole, and its reply is read to the end, however it is cut into packets.
func TestCall(t *testing.T) {
	t.Parallel()
	for name, packets := range map[string][]string{
		"one":          {good},
		"bytes":        strings.Split(good, ""),
		"newline late": {strings.TrimSuffix(good, "\n"), "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := listen(t, func(c *net.UnixConn) {
				if r := request(t, c); r.Op != "decide" || string(r.Body) != `{"tool":"Write"}` {
					t.Errorf("asked for %+v", r)
				}
				for _, p := range packets {
					_, _ = io.WriteString(c, p)
					time.Sleep(time.Millisecond)
				}
			})
			r, err := wire.Call(within(t, time.Minute), path, question)
			if err != nil || !r.OK {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// TestCallLarge: a request and a reply of nearly all that is allowed.
func TestCallLarge(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", wire.MaxRequest-1000)
	path := listen(t, func(c *net.UnixConn) {
		if r := request(t, c); len(r.Body) < len(big) {
			t.Errorf("%d bytes came", len(r.Body))
		}
		_, _ = io.WriteString(c, `{"v":1,"id":"a","ok":true,"next":"`+strings.Repeat("y", wire.MaxReply-1000)+"\"}\n")
	})
	q := question
	q.Body = []byte(`"` + big + `"`)
	if r, err := wire.Call(t.Context(), path, q); err != nil || len(r.Next) != wire.MaxReply-1000 {
		t.Errorf("%d bytes, %v", len(r.Next), err)
	}
	q.Body = []byte(`"` + big + big + `"`)
	if _, err := wire.Call(t.Context(), path, q); err == nil || errors.As(err, new(*wire.FrameError)) {
		t.Errorf("a request that is too long: %v", err) // the caller's fault, not the broker's
	}
}

// TestCallFaults: whatever else a socket does is an error of its kind, after one attempt.
func TestCallFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		serve func(*net.UnixConn)
		kind  wire.Kind
		shows string
	}{
		"closes at once": {func(c *net.UnixConn) { _, _ = io.Copy(io.Discard, c) }, wire.Empty, "0 bytes"},
		"half a reply":   {func(c *net.UnixConn) { _, _ = io.Copy(io.Discard, c); _, _ = io.WriteString(c, good[:30]) }, wire.Truncated, "30 bytes"},
		"a token in half a reply": {func(c *net.UnixConn) {
			_, _ = io.Copy(io.Discard, c)
			_, _ = io.WriteString(c, `{"v":1,"id":"a","ok":true,"body":{"token":"`+token)
		}, wire.Truncated, "[redacted]"},
		"garbage in a later packet": {func(c *net.UnixConn) {
			_, _ = io.Copy(io.Discard, c)
			_, _ = io.WriteString(c, good)
			time.Sleep(50 * time.Millisecond)
			_, _ = io.WriteString(c, "x")
		}, wire.Trailing, "sha256"},
		"endless": {func(c *net.UnixConn) {
			for err := error(nil); err == nil; _, err = io.WriteString(c, strings.Repeat("x", 1<<16)) {
			}
		}, wire.Oversized, "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			path := listen(t, func(conn *net.UnixConn) { calls.Add(1); c.serve(conn) })
			r, err := wire.Call(within(t, time.Minute), path, question)
			var e *wire.FrameError
			if !errors.As(err, &e) || e.Kind != c.kind || e.Attempts != 1 || r.OK {
				t.Fatalf("%+v, %v, want %s", r, err, c.kind)
			}
			if n := calls.Load(); n != 1 || !strings.Contains(err.Error(), c.shows) || strings.Contains(err.Error(), "S3cr3t") {
				t.Errorf("%d calls: %v", n, err)
			}
		})
	}
}

// TestCallDeadline: a broker that hangs, and one that says a byte now and then, are left at the deadline.
func TestCallDeadline(t *testing.T) {
	t.Parallel()
	for name, every := range map[string]time.Duration{"hangs": time.Hour, "drips": 20 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			over := make(chan struct{})
			path := listen(t, func(c *net.UnixConn) {
				for {
					select {
					case <-over:
						return
					case <-time.After(every):
						_, _ = io.WriteString(c, " ")
					}
				}
			})
			defer close(over)
			begun := time.Now()
			_, err := wire.Call(within(t, 300*time.Millisecond), path, question)
			var e *wire.FrameError
			if !errors.As(err, &e) || e.Kind != wire.TimedOut {
				t.Fatalf("%v", err)
			}
			if took := time.Since(begun); took < 300*time.Millisecond || took > time.Minute {
				t.Errorf("after %v", took)
			}
		})
	}
	t.Run("is over", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var e *wire.FrameError
		if _, err := wire.Call(ctx, listen(t, func(*net.UnixConn) {}), question); !errors.As(err, &e) || e.Kind != wire.TimedOut || !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

// TestCallBacklog: a broker that takes no connection any more is left at the deadline.
func TestCallBacklog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	var e *wire.FrameError
	for range 3 { // the first fill the line
		_, err = wire.Call(within(t, 200*time.Millisecond), path, question)
		if !errors.As(err, &e) || e.Kind != wire.TimedOut {
			t.Fatalf("%v", err)
		}
	}
	if !strings.Contains(err.Error(), "cannot be reached in time") {
		t.Errorf("the last one: %v", err)
	}
}

// TestCallNobody: no socket, a file that is none, one that nobody listens at, and a path that is too long.
func TestCallNobody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(dir, "dead")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	for path, want := range map[string]error{
		filepath.Join(dir, "absent"): syscall.ENOENT, file: syscall.ECONNREFUSED, dead: syscall.ECONNREFUSED, strings.Repeat("x", 200): syscall.ENAMETOOLONG,
	} {
		var e *wire.FrameError
		if _, err := wire.Call(within(t, time.Minute), path, question); !errors.As(err, &e) || e.Kind != wire.Socket || !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestCallAnsweredEarly: a broker that answers before it has read the whole request, because it is
// busy or has read enough, is heard, if it lets the rest come in.
func TestCallAnsweredEarly(t *testing.T) {
	t.Parallel()
	path := listen(t, func(c *net.UnixConn) {
		_, _ = bufio.NewReader(c).ReadByte()
		b, _ := wire.Encode(wire.Refuse("a", wire.Busy, "no time"), wire.MaxReply)
		_, _ = c.Write(b)
		_ = c.CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	})
	q := question
	q.Body = []byte(`"` + strings.Repeat("x", 3<<20) + `"`)
	if r, err := wire.Call(within(t, time.Minute), path, q); err != nil || r.OK || r.Code != wire.Busy {
		t.Errorf("%+v, %v", r, err)
	}
}
