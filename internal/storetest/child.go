package storetest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"interlock/internal/covered"
	"interlock/internal/run"
	"interlock/internal/store"
)

// The environment of a child process of the suite.
const (
	placeVariable = "STORETEST_PLACE"
	clockVariable = "STORETEST_CLOCK"
)

// Main is what a driver's TestMain does: it runs the tests, or, in a process that the suite has
// started, opens the state at place and does what it is told on standard input.
func Main(m *testing.M, open func(ctx context.Context, place string, clock store.Clock) (store.Store, error)) {
	place := os.Getenv(placeVariable)
	if place == "" {
		covered.Children()
		os.Exit(m.Run())
	}
	s, err := open(context.Background(), place, &Clock{path: os.Getenv(clockVariable)})
	if err == nil {
		err = obey(context.Background(), s, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// order is one line to a child.
type order struct {
	Do      string
	Holder  run.Holder
	Lease   run.Lease
	Run     run.Run
	Session store.Session
	Dead    run.Fence
}

// answer is one line of a child.
type answer struct {
	Lease run.Lease
	Run   run.Run
	Error string // "", "fenced", "stale", "held" or the whole text
}

func obey(ctx context.Context, s store.Store, in io.Reader, out io.Writer) error {
	dec, enc := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o order
		if err := dec.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if o.Do == "write" {
			return write(ctx, s, o, enc)
		}
		if err := enc.Encode(do(ctx, s, o)); err != nil {
			return err
		}
	}
}

func do(ctx context.Context, s store.Store, o order) answer {
	var a answer
	var err error
	switch o.Do {
	case "claim":
		a.Lease, a.Run, err = s.Claim(ctx, o.Holder, o.Run, TTL)
	case "acquire":
		a.Lease, err = s.Acquire(ctx, o.Holder, o.Lease.Key, TTL, o.Dead)
	case "renew":
		a.Lease, err = s.Renew(ctx, o.Lease, TTL)
	case "release":
		err = s.Release(ctx, o.Lease)
	case "save":
		a.Run, err = s.Save(ctx, o.Lease, o.Run, run.Renewed{})
	case "put session":
		err = s.PutSession(ctx, o.Lease, o.Session)
	default:
		err = fmt.Errorf("unknown order %q", o.Do)
	}
	a.Error = word(err)
	return a
}

func word(err error) string {
	_, held := errors.AsType[*store.HeldError](err)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, store.ErrFenced):
		return "fenced"
	case errors.Is(err, store.ErrStale):
		return "stale"
	case held:
		return "held"
	}
	return err.Error()
}

// write saves the run again and again, and takes the key of o.Lease for a moment whenever it is
// free. Each acknowledged save is told before the next begins.
func write(ctx context.Context, s store.Store, o order, enc *json.Encoder) error {
	l, r, err := s.Claim(ctx, o.Holder, o.Run, TTL)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		effect := run.Effect{Kind: run.EffectNote, Key: fmt.Sprint("effect ", n)}
		r.Effects = []run.Effect{effect}
		if r, err = s.Save(ctx, l, r, run.Failed{Reason: fmt.Sprint(n)}); err != nil {
			return err
		}
		a := answer{Run: r}
		shared, err := s.Acquire(ctx, o.Holder, o.Lease.Key, TTL, 0)
		if err == nil {
			a.Lease = shared
			err = s.Release(ctx, shared)
		}
		if err != nil && word(err) != "held" {
			return err
		}
		if err := enc.Encode(a); err != nil {
			return err
		}
	}
}

// child is another process that has the state open.
type child struct {
	cmd *exec.Cmd
	in  *json.Encoder
	out *bufio.Reader
}

// start starts the test binary again. The process is killed when the test ends.
func (o Opened) start(t *testing.T) *child {
	t.Helper()
	self := must[string](t)(os.Executable())
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	cmd := exec.CommandContext(ctx, self, "-test.run=^$")
	cmd.Env = append(os.Environ(), placeVariable+"="+o.Place, clockVariable+"="+o.Clock.path)
	cmd.Stderr = os.Stderr
	in := must[io.WriteCloser](t)(cmd.StdinPipe())
	out := must[io.ReadCloser](t)(cmd.StdoutPipe())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	return &child{cmd: cmd, in: json.NewEncoder(in), out: bufio.NewReader(out)}
}

func (c *child) tell(t *testing.T, o order) {
	t.Helper()
	if err := c.in.Encode(o); err != nil {
		t.Fatal(err)
	}
}

// hear reads one answer; ok is false when the child has ended. Half a line is no answer.
func (c *child) hear(t *testing.T) (a answer, ok bool) {
	t.Helper()
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return answer{}, false
	}
	if err := json.Unmarshal(line, &a); err != nil {
		t.Fatal(err)
	}
	return a, true
}

func (c *child) ask(t *testing.T, o order) answer {
	t.Helper()
	c.tell(t, o)
	a, ok := c.hear(t)
	if !ok {
		t.Fatal("the child has ended")
	}
	return a
}
