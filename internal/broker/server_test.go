package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"interlock/internal/broker"
	"interlock/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// short are budgets that a test waits for, and that who is not slow keeps on a machine that is.
var short = broker.Budgets{Read: 3 * time.Second, Queue: 3 * time.Second, Send: 3 * time.Second}

// impatient is who waits for nothing but its request, and not for long.
var impatient = broker.Budgets{Read: time.Minute, Queue: 300 * time.Millisecond, Send: time.Minute}

// long are budgets that nothing here uses up.
var long = broker.Budgets{Read: time.Minute, Queue: time.Minute, Send: time.Minute}

func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "b") // the path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// faults collects what a server says of itself.
type faults struct {
	mu  sync.Mutex
	all []string
}

func (f *faults) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, err.Error())
}

func (f *faults) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.all, "\n")
}

// serve serves a socket until the test ends; no faults are expected but those that the test looks for.
func serve(t *testing.T, o broker.Options) (path string, f *faults) {
	t.Helper()
	f = &faults{}
	o.Path, o.Fault = socketPath(t), f.add
	if o.Slots == 0 {
		o.Slots = 64
	}
	s, err := broker.Serve(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(o.Path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is left: %v", err)
		}
	})
	return o.Path, f
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func call(t *testing.T, path, id string) (wire.Reply, error) {
	return wire.Call(within(t, time.Minute), path, wire.Request{Version: wire.Version, ID: id, Op: "echo", Body: json.RawMessage(`{"of":"` + id + `"}`)})
}

// echo answers with what it was asked.
func echo(_, _ context.Context, _ broker.Peer, r wire.Request) wire.Reply {
	return wire.Reply{OK: true, Body: r.Body}
}

func TestBrokerAnswers(t *testing.T) {
	t.Parallel()
	var peer broker.Peer
	path, f := serve(t, broker.Options{Budgets: long, Handle: func(a, b context.Context, p broker.Peer, r wire.Request) wire.Reply {
		peer = p
		return echo(a, b, p, r)
	}})
	r, err := call(t, path, "one")
	if err != nil || !r.OK || string(r.Body) != `{"of":"one"}` || f.String() != "" {
		t.Errorf("%+v, %v, %s", r, err, f)
	}
	if peer.PID != os.Getpid() || peer.UID != os.Getuid() {
		t.Errorf("asked by %+v", peer)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestBrokerBusy: a request that has waited for its whole queue budget is withdrawn, and its handler
// was never called.
func TestBrokerBusy(t *testing.T) {
	t.Parallel()
	held, free := make(chan struct{}), make(chan struct{})
	var handled atomic.Int32
	path, _ := serve(t, broker.Options{Budgets: impatient, Slots: 1, Handle: func(a, b context.Context, p broker.Peer, r wire.Request) wire.Reply {
		handled.Add(1)
		if r.ID == "holder" {
			close(held)
			<-free
		}
		return echo(a, b, p, r)
	}})
	done := make(chan error, 1)
	go func() {
		r, err := call(t, path, "holder")
		if err == nil && !r.OK {
			err = fmt.Errorf("%+v", r)
		}
		done <- err
	}()
	<-held
	for range 3 {
		r, err := call(t, path, "late")
		if err != nil || r.OK || r.Code != wire.Busy || !strings.Contains(r.Why, "withdrawn") {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if n := handled.Load(); n != 1 {
		t.Errorf("%d were handled", n)
	}
	close(free)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestBrokerQueueEnds: what a handler waits with ends with the queue budget, and the handler does not.
func TestBrokerQueueEnds(t *testing.T) {
	t.Parallel()
	path, _ := serve(t, broker.Options{Budgets: impatient, Handle: func(ctx, queued context.Context, _ broker.Peer, r wire.Request) wire.Reply {
		<-queued.Done()
		return wire.Refuse(r.ID, wire.Busy, fmt.Sprint(ctx.Err()))
	}})
	if r, err := call(t, path, "a"); err != nil || r.Code != wire.Busy || r.Why != "<nil>" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestBrokerSlowHandler: a handler slower than all budgets together gives its whole, large reply.
func TestBrokerSlowHandler(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 900_000)
	path, f := serve(t, broker.Options{Budgets: short, Handle: func(_, _ context.Context, _ broker.Peer, _ wire.Request) wire.Reply {
		time.Sleep(short.Read + short.Queue + short.Send + 300*time.Millisecond)
		return wire.Reply{OK: true, Next: big}
	}})
	if r, err := call(t, path, "a"); err != nil || r.Next != big {
		t.Errorf("%d bytes, %v, %s", len(r.Next), err, f)
	}
}

// dial connects without sending anything.
func dial(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestBrokerSlowClients: clients that send a byte now and then, or nothing, or do not take their
// reply, cost nobody else anything, and are left when their budget is over.
func TestBrokerSlowClients(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 900_000)
	path, f := serve(t, broker.Options{Budgets: short, Slots: 1, Handle: func(a, b context.Context, p broker.Peer, r wire.Request) wire.Reply {
		if r.ID == "deaf" {
			return wire.Reply{OK: true, Next: big}
		}
		return echo(a, b, p, r)
	}})
	var all sync.WaitGroup
	for i := range 30 {
		c := dial(t, path)
		all.Add(1)
		go func() {
			defer all.Done()
			switch i % 3 {
			case 0: // silent
			case 1:
				for _, err := io.WriteString(c, "{"); err == nil; _, err = io.WriteString(c, " ") {
					time.Sleep(50 * time.Millisecond)
				}
			case 2:
				_, _ = io.WriteString(c, `{"v":1,"id":"deaf","op":"echo"}`+"\n")
				_ = c.CloseWrite()
				time.Sleep(2 * short.Send)
			}
			if _, err := io.ReadAll(c); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
				t.Error(err)
			}
		}()
	}
	for i := range 20 {
		if r, err := call(t, path, fmt.Sprint(i)); err != nil || !r.OK {
			t.Errorf("%+v, %v", r, err)
		}
	}
	all.Wait() // each was left
	if !strings.Contains(f.String(), "was not taken") {
		t.Errorf("that replies were not taken is not said: %s", f)
	}
}

// TestBrokerRequests: what is no request is refused as that, also when it is only the last packet
// that makes it none.
func TestBrokerRequests(t *testing.T) {
	t.Parallel()
	var handled atomic.Int32
	path, _ := serve(t, broker.Options{Budgets: long, Handle: func(a, b context.Context, p broker.Peer, r wire.Request) wire.Reply {
		handled.Add(1)
		return echo(a, b, p, r)
	}})
	good := `{"v":1,"id":"a","op":"echo"}` + "\n"
	for name, packets := range map[string][]string{
		"nothing":      {},
		"no newline":   {strings.TrimSuffix(good, "\n")},
		"two":          {good, good},
		"a late byte":  {good, "x"},
		"no JSON":      {"hello\n"},
		"another one":  {strings.Replace(good, `"v":1`, `"v":7`, 1)},
		"5 MiB":        {strings.Repeat("x", 5<<20)},
		"a token":      {`{"v":1,"token":"S3cr3t` + "\n"},
		"unknown name": {strings.Replace(good, `"op"`, `"admin":true,"op"`, 1)},
	} {
		c := dial(t, path)
		for _, p := range packets {
			if _, err := io.WriteString(c, p); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		_ = c.CloseWrite()
		b, err := io.ReadAll(c)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var r wire.Reply
		if err := json.Unmarshal(b, &r); err != nil || r.OK || r.Code != wire.BadRequest || r.Why == "" || strings.Contains(string(b), "S3cr3t") {
			t.Errorf("%s: %s", name, b)
		}
	}
	if n := handled.Load(); n != 0 {
		t.Errorf("%d were handled", n)
	}
}

// TestBrokerAdmits: who may not ask is told so, and nothing is handled for it.
func TestBrokerAdmits(t *testing.T) {
	t.Parallel()
	path, _ := serve(t, broker.Options{
		Budgets: long, Handle: func(_, _ context.Context, _ broker.Peer, r wire.Request) wire.Reply {
			t.Error("handled")
			return wire.Reply{OK: true}
		},
		Admit: func(p broker.Peer) error { return fmt.Errorf("process %d is outside", p.PID) },
	})
	if r, err := call(t, path, "a"); err != nil || r.Code != wire.WrongCaller || r.Why != fmt.Sprintf("process %d is outside", os.Getpid()) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestBrokerFaults: a handler that panics, or says what cannot be told, answers nothing, which no
// client takes for an answer; the next request is served.
func TestBrokerFaults(t *testing.T) {
	t.Parallel()
	path, f := serve(t, broker.Options{Budgets: long, Slots: 1, Handle: func(a, b context.Context, p broker.Peer, r wire.Request) wire.Reply {
		switch r.ID {
		case "panic":
			panic("a fault")
		case "endless":
			return wire.Reply{OK: true, Next: strings.Repeat("x", 2<<20)}
		}
		return echo(a, b, p, r)
	}})
	for _, id := range []string{"panic", "endless"} {
		_, err := call(t, path, id)
		var e *wire.FrameError
		if !errors.As(err, &e) || e.Kind != wire.Empty || !strings.Contains(f.String(), `"`+id+`"`) {
			t.Errorf("%s: %v; said: %s", id, err, f)
		}
	}
	if r, err := call(t, path, "next"); err != nil || !r.OK {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestBrokerMany: 500 clients at once, ten times each, and no error.
func TestBrokerMany(t *testing.T) {
	t.Parallel()
	var handled atomic.Int32
	path, f := serve(t, broker.Options{Budgets: long, Handle: func(a, b context.Context, p broker.Peer, r wire.Request) wire.Reply {
		handled.Add(1)
		return echo(a, b, p, r)
	}})
	const clients, rounds = 500, 10
	var all sync.WaitGroup
	for i := range clients {
		all.Add(1)
		go func() {
			defer all.Done()
			for j := range rounds {
				id := fmt.Sprintf("%d-%d", i, j)
				if r, err := call(t, path, id); err != nil || string(r.Body) != `{"of":"`+id+`"}` {
					t.Errorf("%+v, %v", r, err)
				}
			}
		}()
	}
	all.Wait()
	if n := handled.Load(); n != clients*rounds || f.String() != "" {
		t.Errorf("%d were handled; said: %s", n, f)
	}
}

// TestBrokerClose: what is being handled is finished and told; who only connects is not waited for.
func TestBrokerClose(t *testing.T) {
	t.Parallel()
	begun, free := make(chan struct{}), make(chan struct{})
	path := socketPath(t)
	s, err := broker.Serve(broker.Options{Path: path, Budgets: long, Slots: 1, Handle: func(a, b context.Context, p broker.Peer, r wire.Request) wire.Reply {
		close(begun)
		<-free
		return echo(a, b, p, r)
	}})
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		r, err := call(t, path, "a")
		if err == nil && !r.OK {
			err = fmt.Errorf("%+v", r)
		}
		answered <- err
	}()
	<-begun
	dial(t, path)
	if err := s.Close(within(t, 100*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("closed while a request is handled: %v", err)
	}
	close(free)
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if err := s.Close(within(t, 10*time.Second)); err != nil {
		t.Error(err)
	}
	if _, err := call(t, path, "b"); err == nil {
		t.Error("answered after its end")
	}
}
