package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"interlock/internal/bench"
	"interlock/internal/covered"
)

// TestMain also is a side that has a process of its own.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "side" {
		n := 0.0
		if err := bench.Serve(os.Stdin, os.Stdout, func(long time.Duration) (bench.Sample, error) {
			if n++; n > 2 {
				return nil, errors.New("twice is enough")
			}
			return bench.Sample{"rate": n, "took": long.Seconds()}, nil
		}); err != nil {
			panic(err)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "refuses" {
		fmt.Fprintln(os.Stderr, "first\nthere is no place for it")
		os.Exit(1)
	}
	covered.Children()
	os.Exit(m.Run())
}

// fixed is a side that says what it is told to, round by round.
type fixed struct {
	name    string
	samples []bench.Sample
	log     *[]string
	err     error
}

func (f *fixed) Round(context.Context) (bench.Sample, error) {
	if f.log != nil {
		*f.log = append(*f.log, f.name)
	}
	if len(f.samples) == 0 {
		return nil, errors.New("it broke")
	}
	s := f.samples[0]
	f.samples = f.samples[1:]
	return s, nil
}

func (f *fixed) Close() error { return f.err }

// says makes a side that has one figure, a value for each round.
func says(name, figure string, values ...float64) bench.Side {
	f := &fixed{name: name}
	for _, v := range values {
		f.samples = append(f.samples, bench.Sample{figure: v})
	}
	return bench.Side{Name: name, Open: func(context.Context, *bench.Env) (bench.Subject, error) { return f, nil }}
}

func broken(name string) bench.Side {
	return bench.Side{Name: name, Open: func(context.Context, *bench.Env) (bench.Subject, error) { return nil, errors.New("cannot be had") }}
}

func one(t *testing.T, rounds int, b bench.Bound, sides ...bench.Side) bench.Result {
	t.Helper()
	all := bench.Measure(t.Context(), &bench.Env{Rounds: rounds}, bench.Row{ID: "G0", What: "a thing", Sides: sides, Bounds: []bench.Bound{b}})
	if len(all) != 1 {
		t.Fatalf("%d results of one bound", len(all))
	}
	return all[0]
}

// TestDirection: a ratio is ours divided by theirs, and a goal has a side on which it holds.
func TestDirection(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		ours, theirs float64
		goal         bench.Goal
		want         string
	}{
		"faster than it must be":    {10, 10, bench.AtMost(1.5), bench.Holds},
		"exactly at its most":       {15, 10, bench.AtMost(1.5), bench.Holds},
		"slower than it may be":     {16, 10, bench.AtMost(1.5), bench.Fails},
		"more than it must be":      {10, 10, bench.AtLeast(0.5), bench.Holds},
		"exactly at its least":      {5, 10, bench.AtLeast(0.5), bench.Holds},
		"less than it may be":       {4, 10, bench.AtLeast(0.5), bench.Fails},
		"nothing is demanded of it": {4, 10, bench.Goal{}, bench.Shown},
	} {
		r := one(t, 1, bench.Bound{Figure: "rate", Of: "floor", Goal: c.goal}, says("ours", "rate", c.ours), says("floor", "rate", c.theirs))
		if r.Outcome != c.want || r.Ratio != c.ours/c.theirs || r.Is != c.ours || r.Base != c.theirs {
			t.Errorf("%s: %+v, want %q", what, r, c.want)
		}
		if good := bench.Good([]bench.Result{r}); good != (c.want != bench.Fails) {
			t.Errorf("%s: good is %t", what, good)
		}
	}
}

// TestRounds: what counts is the median of the ratios inside each round, or the worst round where that
// is asked for; a bound can hold by the figure itself; and a figure can be bounded alone.
func TestRounds(t *testing.T) {
	t.Parallel()
	ours, theirs := []float64{1, 20, 3}, []float64{1, 10, 3}
	for what, c := range map[string]struct {
		bound   bench.Bound
		ratio   float64
		outcome string
	}{
		"median":                {bench.Bound{Figure: "p50", Of: "floor", Goal: bench.AtMost(1)}, 1, bench.Holds},
		"worst, at most":        {bench.Bound{Figure: "p50", Of: "floor", Goal: bench.AtMost(1), Worst: true}, 2, bench.Fails},
		"worst, at least":       {bench.Bound{Figure: "p50", Of: "floor", Goal: bench.AtLeast(1.5), Worst: true}, 1, bench.Fails},
		"or by itself":          {bench.Bound{Figure: "p50", Of: "floor", Goal: bench.AtMost(0.5), Or: bench.AtMost(3)}, 1, bench.Holds},
		"not by itself either":  {bench.Bound{Figure: "p50", Of: "floor", Goal: bench.AtMost(0.5), Or: bench.AtMost(2)}, 1, bench.Fails},
		"alone":                 {bench.Bound{Figure: "p50", Goal: bench.AtMost(3)}, 0, bench.Holds},
		"alone, and the worst":  {bench.Bound{Figure: "p50", Goal: bench.AtMost(3), Worst: true}, 0, bench.Fails},
		"of a figure of itself": {bench.Bound{Figure: "p50", Of: "ours", Base: "p50", Goal: bench.AtMost(1)}, 1, bench.Holds},
	} {
		r := one(t, 3, c.bound, says("ours", "p50", ours...), says("floor", "p50", theirs...))
		if r.Outcome != c.outcome || r.Ratio != c.ratio {
			t.Errorf("%s: %+v, want %q with %v", what, r, c.outcome, c.ratio)
		}
	}
}

// TestNotMeasured: what could not be measured is said as such with its reason, and is never good.
func TestNotMeasured(t *testing.T) {
	t.Parallel()
	b := bench.Bound{Figure: "rate", Of: "floor", Goal: bench.AtLeast(0)}
	late := &fixed{name: "floor", samples: []bench.Sample{{"rate": 1}, {"rate": 1}}, err: errors.New("ended badly")}
	for reason, sides := range map[string][]bench.Side{
		"floor: cannot be had":          {says("ours", "rate", 1, 1), broken("floor")},
		"ours: cannot be had":           {broken("ours"), says("floor", "rate", 1, 1)},
		"floor: it broke":               {says("ours", "rate", 1, 1), says("floor", "rate", 1)},
		`floor does not say its "rate"`: {says("ours", "rate", 1, 1), says("floor", "p50", 1, 1)},
		`ours does not say its "rate"`:  {says("ours", "p50", 1, 1), says("floor", "rate", 1, 1)},
		"nothing can be compared with":  {says("ours", "rate", 1, 1), says("floor", "rate", 1, 0)},
		`there is no side "floor"`:      {says("ours", "rate", 1, 1)},
		"floor: ended badly":            {says("ours", "rate", 1, 1), {Name: "floor", Open: func(context.Context, *bench.Env) (bench.Subject, error) { return late, nil }}},
	} {
		r := one(t, 2, b, sides...)
		if r.Outcome != bench.NotMeasured || !strings.Contains(r.Reason, reason) || bench.Good([]bench.Result{r}) {
			t.Errorf("%+v, want it not to be measured: %s", r, reason)
		}
		var out strings.Builder
		if err := bench.Text(&out, []bench.Result{r}); err != nil || !strings.Contains(out.String(), "not measured: "+r.Reason) || !strings.Contains(out.String(), "0 hold, 0 do not hold, 1 not measured") {
			t.Errorf("%v\n%s", err, out.String())
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	row := bench.Row{Sides: []bench.Side{says("ours", "rate", 1), says("floor", "rate", 1)}, Bounds: []bench.Bound{b}}
	if r := bench.Measure(stopped, &bench.Env{Rounds: 1}, row)[0]; r.Outcome != bench.NotMeasured || !strings.Contains(r.Reason, "interrupted") || !strings.Contains(r.Short(), r.Reason) {
		t.Errorf("after an interrupt: %+v", r)
	}
	if r := one(t, 0, b, says("ours", "rate"), says("floor", "rate")); r.Outcome != bench.NotMeasured {
		t.Errorf("without a round: %+v", r)
	}
}

// TestInTurns: the sides are measured one after the other in each round, and another begins each time.
func TestInTurns(t *testing.T) {
	t.Parallel()
	var log []string
	side := func(name string) bench.Side {
		f := &fixed{name: name, log: &log}
		for range 3 {
			f.samples = append(f.samples, bench.Sample{"rate": 1})
		}
		return bench.Side{Name: name, Open: func(context.Context, *bench.Env) (bench.Subject, error) { return f, nil }}
	}
	one(t, 3, bench.Bound{Figure: "rate", Of: "b"}, side("a"), side("b"))
	if got := strings.Join(log, ""); got != "abbaab" {
		t.Errorf("the order was %s", got)
	}
}

// TestChild: a side of another process is asked and answers; its errors reach the row, also those with
// which it ended before it was ready.
func TestChild(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) bench.Side {
		return bench.Child("ours", func(context.Context, *bench.Env) ([]string, error) { return append([]string{self}, args...), nil })
	}
	s, err := command("side").Open(t.Context(), &bench.Env{Seconds: 250 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		got, err := s.Round(t.Context())
		if err != nil || got["rate"] != float64(n+1) || got["took"] != 0.25 || got["peak"] < 1<<20 || got["peak"] > 1<<30 {
			t.Errorf("round %d: %v, %v", n, got, err)
		}
	}
	if _, err := s.Round(t.Context()); err == nil || err.Error() != "twice is enough" {
		t.Errorf("an error of the other process: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := command("refuses").Open(t.Context(), &bench.Env{}); err == nil || !strings.Contains(err.Error(), "there is no place for it") {
		t.Errorf("a process that ended at once: %v", err)
	}
	none := bench.Child("ours", func(context.Context, *bench.Env) ([]string, error) { return []string{"/nonexistent"}, nil })
	if _, err := none.Open(t.Context(), &bench.Env{}); err == nil {
		t.Error("a process that cannot be started: no error")
	}
	if err := bench.Serve(strings.NewReader("no JSON"), io.Discard, nil); err == nil {
		t.Error("a question that is none: no error")
	}
}

// TestLoad: each client does one operation after the other; the first error ends all.
func TestLoad(t *testing.T) {
	t.Parallel()
	var did atomic.Int64
	s, err := bench.Load(3, 50*time.Millisecond, func(int) error {
		did.Add(1)
		time.Sleep(time.Millisecond)
		return nil
	})
	if err != nil || s["operations"] != float64(did.Load()) || s["rate"] <= 0 || s["p50"] < 0.001 || s["p99"] < s["p50"] || s["max"] < s["p99"] {
		t.Errorf("%v, %v, %d done", s, err, did.Load())
	}
	if _, err := bench.Load(2, time.Millisecond, func(n int) error { return fmt.Errorf("client %d", n) }); err == nil {
		t.Error("no error")
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	if got := bench.Median([]float64{3, 1, 2}); got != 2 {
		t.Errorf("median %v", got)
	}
	if got := bench.Median([]float64{4, 1, 2, 3}); got != 2.5 {
		t.Errorf("median of four %v", got)
	}
	var hundred []float64
	for n := range 100 {
		hundred = append(hundred, float64(99-n))
	}
	if p, m := bench.Percentile(hundred, 99), bench.Percentile(hundred, 100); p != 99 || m != 99 {
		t.Errorf("percentiles %v, %v", p, m)
	}
	if bench.Median(nil) != 0 || bench.Percentile(nil, 50) != 0 {
		t.Error("of nothing there is something")
	}
	if _, err := bench.Memory(os.Getpid(), "VmNothing"); err == nil {
		t.Error("a size that the kernel does not know")
	}
}

// TestReport: text for people and JSON say the same.
func TestReport(t *testing.T) {
	t.Parallel()
	r := one(t, 1, bench.Bound{Figure: "p50", Of: "floor", Goal: bench.AtMost(3), Or: bench.AtMost(0.15)}, says("ours", "p50", 0.0002), says("floor", "p50", 0.0001))
	more := []bench.Result{r,
		one(t, 1, bench.Bound{Figure: "rate", Goal: bench.AtLeast(5)}, says("ours", "rate", 4)),
		one(t, 1, bench.Bound{Figure: "peak"}, says("ours", "peak", 3<<20)),
		one(t, 1, bench.Bound{Figure: "took", Goal: bench.AtMost(1)}, says("ours", "took", 1.5)),
	}
	var text, data strings.Builder
	if err := errors.Join(bench.Text(&text, more), bench.JSON(&data, more)); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"200 us", "100 us", "2 x", "<= 3 x or <= 150 ms", "4 /s", ">= 5 /s", "3.0 MiB", "1.50 s", "| holds ", "| does not hold ", "1 hold, 2 do not hold, 0 not measured, 1 without a goal"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("%q is not in\n%s", part, text.String())
		}
	}
	for i, want := range []string{"200 us, 2 x of floor: holds", "4 /s: does not hold"} {
		if got := more[i].Short(); got != want {
			t.Errorf("in short: %q, want %q", got, want)
		}
	}
	var back struct{ Results []bench.Result }
	if err := json.Unmarshal([]byte(data.String()), &back); err != nil || len(back.Results) != 4 || back.Results[0] != r {
		t.Errorf("%v, %+v", err, back)
	}
}

// TestBuild: a program is built once, and one that cannot be built says why each time.
func TestBuild(t *testing.T) {
	t.Parallel()
	root, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"go.mod": "module x\n\ngo 1.26\n", "good/main.go": "package main\n\nfunc main() {}\n", "bad/main.go": "package main\n\nfunc main() { none() }\n"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700), os.WriteFile(filepath.Join(root, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	e := &bench.Env{Dir: dir, Root: root}
	first, err := e.Build(t.Context(), "good")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	if again, err := e.Build(t.Context(), "good"); err != nil || again != first {
		t.Errorf("%q, %v", again, err)
	}
	if _, err := os.Stat(first); err == nil {
		t.Error("it was built twice")
	}
	for range 2 {
		if _, err := e.Build(t.Context(), "bad"); err == nil || !strings.Contains(err.Error(), "undefined: none") {
			t.Errorf("what cannot be built: %v", err)
		}
	}
}
