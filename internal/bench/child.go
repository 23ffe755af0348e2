package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A side that has a process of its own is asked for a round by one line of JSON, and answers with one.
// It says first that it is ready, or why it cannot be.
type (
	ask    struct{ Seconds float64 }
	answer struct {
		Sample Sample
		Error  string
	}
)

// Serve is the process of a side: it does a round for each line of in, until there is none. The most
// memory that the process ever had is added to each sample.
func Serve(in io.Reader, out io.Writer, round func(time.Duration) (Sample, error)) error {
	say := json.NewEncoder(out)
	if err := say.Encode(answer{}); err != nil {
		return err
	}
	asked := json.NewDecoder(in)
	for {
		var a ask
		if err := asked.Decode(&a); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var said answer
		s, err := round(time.Duration(a.Seconds * float64(time.Second)))
		if err == nil {
			said.Sample = s
			s["peak"], err = Memory(os.Getpid(), "VmHWM")
		}
		if err != nil {
			said.Error = err.Error()
		}
		if err := say.Encode(said); err != nil {
			return err
		}
	}
}

// Memory reads a size in bytes from what the kernel says of a process: VmHWM is the most that it ever
// had, VmRSS what it has.
func Memory(pid int, name string) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return kib * 1024, err
		}
	}
	return 0, fmt.Errorf("the kernel does not say %s of process %d", name, pid)
}

// child is a side with a process of its own.
type child struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	say     *json.Encoder
	said    *json.Decoder
	err     bytes.Buffer
	seconds time.Duration
}

// Child is a side that has a process of its own, which calls Serve. argv is made when it is opened.
func Child(name string, argv func(ctx context.Context, e *Env) ([]string, error)) Side {
	return Side{Name: name, Open: func(ctx context.Context, e *Env) (Subject, error) {
		args, err := argv(ctx, e)
		if err != nil {
			return nil, err
		}
		c := &child{cmd: exec.CommandContext(ctx, args[0], args[1:]...), seconds: e.Seconds}
		c.cmd.Stderr, c.cmd.WaitDelay = &c.err, time.Second
		if c.in, err = c.cmd.StdinPipe(); err != nil {
			return nil, err
		}
		out, err := c.cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := c.cmd.Start(); err != nil {
			return nil, err
		}
		c.say, c.said = json.NewEncoder(c.in), json.NewDecoder(bufio.NewReader(out))
		if _, err := c.hear(); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		return c, nil
	}}
}

// Round implements Subject.
func (c *child) Round(context.Context) (Sample, error) {
	if err := c.say.Encode(ask{c.seconds.Seconds()}); err != nil {
		return nil, c.trouble(err)
	}
	return c.hear()
}

func (c *child) hear() (Sample, error) {
	var a answer
	if err := c.said.Decode(&a); err != nil {
		return nil, c.trouble(err)
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return a.Sample, nil
}

// trouble is an error with the last line that the process said about it.
func (c *child) trouble(err error) error {
	if errors.Is(err, io.EOF) {
		_ = c.cmd.Wait() // so that all that it said is here
		err = errors.New("its process ended")
	}
	if said := LastLine(c.err.String()); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return err
}

// LastLine is the last line of a text that is not blank.
func LastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// Close ends the process: it has nothing more to answer.
func (c *child) Close() error {
	_ = c.in.Close()
	err := c.cmd.Wait()
	if err != nil && strings.Contains(err.Error(), "Wait was already called") {
		return nil
	}
	return err
}

// Load has clients do operations, each its next as soon as it is answered, for so long: the rate of
// all, and how long one operation took.
func Load(clients int, long time.Duration, op func(client int) error) (Sample, error) {
	var mu sync.Mutex
	var all []float64
	var first error
	var wg sync.WaitGroup
	begin := time.Now()
	for n := range clients {
		wg.Go(func() {
			took, err := repeat(long, begin, func() error { return op(n) })
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
			if first == nil {
				first = err
			}
		})
	}
	wg.Wait()
	if first != nil {
		return nil, first
	}
	s := Times(all)
	s["operations"] = float64(len(all))
	s["rate"] = float64(len(all)) / time.Since(begin).Seconds()
	return s, nil
}

// repeat does an operation until the time is over, at least once.
func repeat(long time.Duration, begin time.Time, op func() error) (took []float64, err error) {
	for last := time.Now(); ; {
		if err := op(); err != nil {
			return took, err
		}
		now := time.Now()
		took = append(took, now.Sub(last).Seconds())
		if last = now; now.Sub(begin) >= long {
			return took, nil
		}
	}
}

// Times are the figures of how long something took.
func Times(all []float64) Sample {
	return Sample{"p50": Median(all), "p99": Percentile(all, 99), "max": Percentile(all, 100)}
}
