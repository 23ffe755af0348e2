package rows

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"interlock/internal/bench"
	"interlock/internal/run"
	"interlock/internal/store"
)

// fleet is several processes that write to one state at once, as one side.
func fleet(processes, clients int) bench.Side {
	return bench.Side{Name: "ours", Open: func(ctx context.Context, e *bench.Env) (bench.Subject, error) {
		dir, err := e.Place()
		if err != nil {
			return nil, err
		}
		longer := *e
		longer.Seconds = 4 * e.Seconds
		all := make([]bench.Subject, processes)
		closeAll := func() (err error) {
			for _, s := range all {
				if s != nil {
					err = errors.Join(err, s.Close())
				}
			}
			return err
		}
		for i := range all {
			one := bench.Child("ours", func(ctx context.Context, e *bench.Env) ([]string, error) {
				argv, err := sideCommand(e, "leases", clients)
				argv[3] = dir
				return argv, err
			})
			if all[i], err = one.Open(ctx, &longer); err != nil {
				return nil, errors.Join(err, closeAll())
			}
		}
		return subject{func(ctx context.Context) (bench.Sample, error) { return together(ctx, all) }, closeAll}, nil
	}}
}

// together has all sides do their round at the same time: of all of them the longest waits count, and
// how many times the smallest share the largest is.
func together(ctx context.Context, all []bench.Subject) (bench.Sample, error) {
	samples, errs := make([]bench.Sample, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() { samples[i], errs[i] = s.Round(ctx) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	sum := bench.Sample{}
	var p50, rates []float64
	for _, s := range samples {
		p50, rates = append(p50, s["p50"]), append(rates, s["rate"])
		sum["p99"], sum["max"], sum["rate"] = max(sum["p99"], s["p99"]), max(sum["max"], s["max"]), sum["rate"]+s["rate"]
	}
	sum["p50"], sum["share"] = bench.Median(p50), bench.Percentile(rates, 100)/bench.Percentile(rates, 0)
	return sum, nil
}

// serveAcks is the process that is killed while it writes: it says first which revision of its run it
// found, and then each that it was told is kept, for ever or so many times.
func serveAcks(dir string, most int) (rounds, error) {
	ctx := context.Background()
	s, err := openStore(dir)
	if err != nil {
		return rounds{}, err
	}
	r, err := s.Load(ctx, aRun(0).ID)
	if errors.Is(err, store.ErrNotFound) {
		_, r, err = s.Claim(ctx, holder(0), aRun(0), ttl)
	}
	if err != nil {
		return rounds{}, err
	}
	old, _, err := s.Lease(ctx, store.Key(repository, 1))
	if err != nil {
		return rounds{}, err
	}
	l, err := s.Acquire(ctx, holder(os.Getpid()), old.Key, ttl, old.Fence)
	for n := 0; err == nil && (most == 0 || n < most); n++ {
		if _, err = fmt.Fprintf(os.Stdout, "%s%d\n", ackWord, r.Revision); err == nil {
			r, err = s.Save(ctx, l, r, run.Failed{Findings: "x"})
		}
	}
	return rounds{close: s.Close}, err
}

// ackWord stands in front of each revision that is acknowledged.
const ackWord = "kept "

// revisions reads what was acknowledged until there is no more.
func revisions(out io.Reader) (all []int64) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if n, err := strconv.ParseInt(strings.TrimPrefix(lines.Text(), ackWord), 10, 64); err == nil && strings.HasPrefix(lines.Text(), ackWord) {
			all = append(all, n)
		}
	}
	return all
}

// kills counts what is lost of that which was acknowledged when the process is killed in the midst of
// it, again and again, and what was acknowledged before it was synced.
func kills(times int) bench.Side {
	return bench.Side{Name: "ours", Open: func(ctx context.Context, e *bench.Env) (bench.Subject, error) {
		argv, err := sideCommand(e, "acks", 0)
		last := int64(0)
		return subject{round: func(ctx context.Context) (bench.Sample, error) {
			lost := 0
			for range e.Count(times) {
				said, err := killWriter(ctx, argv)
				if err != nil {
					return nil, err
				}
				if said[0] < last {
					lost++
				}
				last = said[len(said)-1]
			}
			unsynced, err := traced(ctx, argv)
			return bench.Sample{"kills": float64(e.Count(times)), "lost": float64(lost), "unsynced": unsynced}, err
		}}, err
	}}
}

// killWriter lets the process write for up to a twentieth of a second, and returns what it said.
func killWriter(ctx context.Context, argv []string) ([]int64, error) {
	s, err := start(ctx, "", argv...)
	if err != nil {
		return nil, err
	}
	if _, err := s.out.Peek(1); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", err, bench.LastLine(s.err.String())), s.kill())
	}
	time.Sleep(rand.N(50 * time.Millisecond))
	err = s.cmd.Process.Kill()
	said := revisions(s.out)
	_ = s.cmd.Wait() // it was killed
	if err == nil && len(said) == 0 {
		err = errors.New("the process that was killed had acknowledged nothing")
	}
	return said, err
}

// traced runs the process under strace and counts what it acknowledged while something that it had
// written to the log was not synced.
func traced(ctx context.Context, argv []string) (unsynced float64, err error) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		return 0, err
	}
	trace := filepath.Join(argv[3], "trace")
	s, err := start(ctx, "", append([]string{strace, "-f", "-y", "-qq", "-o", trace, "-e", "signal=none", "-e", "trace=write,pwrite64,fsync,fdatasync"}, append(argv[:4:4], "50")...)...)
	if err != nil {
		return 0, err
	}
	if err := s.in.Close(); err != nil {
		return 0, err
	}
	said := revisions(s.out)
	if err := s.cmd.Wait(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, bench.LastLine(s.err.String()))
	}
	b, err := os.ReadFile(trace)
	if err != nil {
		return 0, err
	}
	acks, bad := judgeTrace(string(b))
	if acks < 3 || acks < len(said) {
		return 0, fmt.Errorf("the trace has %d acknowledgements, the process said %d: nothing can be judged by it", acks, len(said))
	}
	return float64(bad), nil
}

// judgeTrace reads what strace wrote. An acknowledgement is bad when the log was written since it was
// synced last, or not synced since the acknowledgement before.
func judgeTrace(text string) (acks, bad int) {
	dirty, synced := false, true // the first was kept before the trace, or by what is in it
	for line := range strings.Lines(text) {
		_, call, _ := strings.Cut(strings.TrimSpace(line), " ")
		call = strings.TrimSpace(call)
		toLog := strings.Contains(call, "/state.db-wal>")
		switch {
		case strings.HasPrefix(call, "pwrite64(") && toLog:
			dirty = true
		case (strings.HasPrefix(call, "fsync(") || strings.HasPrefix(call, "fdatasync(")) && toLog && !strings.Contains(call, "unfinished"),
			strings.HasPrefix(call, "<... fsync resumed") || strings.HasPrefix(call, "<... fdatasync resumed"):
			dirty, synced = false, true
		case strings.HasPrefix(call, "write(1<") && strings.Contains(call, `"`+ackWord):
			acks++
			if dirty || !synced {
				bad++
			}
			synced = false
		}
	}
	return acks, bad
}
