package rows

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"interlock/internal/bench"
	"interlock/internal/sandbox"
)

// Reenter reports whether this process was started to be a side of a row, or a part of the sandbox, and
// does that.
func Reenter(args []string) (code int, handled bool) {
	if code, handled := sandbox.Reenter(args); handled {
		return code, true
	}
	if len(args) < 2 || args[1] != sideWord {
		return 0, false
	}
	if err := side(args[2:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// side is the process of one side: what it is, where it keeps its files, how many clients it has.
func side(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 3 || sides[args[0]] == nil {
		return fmt.Errorf("there is no side %q", args)
	}
	clients, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	r, err := sides[args[0]](args[1], clients)
	if err != nil {
		return err
	}
	err = bench.Serve(in, out, r.do)
	if r.close != nil {
		err = errors.Join(err, r.close())
	}
	return err
}

// Main measures the rows that are asked for and returns the exit code: 0 when all that has a goal was
// measured and holds, 1 when not, 2 for a command line that is not understood.
func Main(args []string, out, errs io.Writer) int {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(errs)
	want := f.String("rows", "", "goals to measure, as in G6,G7; all when empty")
	count := f.Int("rounds", 5, "rounds of each side; their median counts")
	seconds := f.Float64("seconds", 1, "how long a side is under load in one round")
	long := f.Bool("long", false, "measure also the rows that take minutes")
	asJSON := f.Bool("json", false, "print JSON instead of a table")
	place := f.String("dir", "", "where files are made; the filesystem there is what is measured")
	root := f.String("root", ".", "the source tree")
	if err := f.Parse(args); err != nil {
		return 2
	}
	chosen, err := choose(All(), *want, *long)
	if err == nil {
		err = onDisk(*place)
	}
	if err != nil || *count < 1 || *seconds <= 0 || f.NArg() > 0 {
		fmt.Fprintln(errs, errors.Join(err, errors.New("see --help")))
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	results, err := measure(ctx, chosen, bench.Env{Dir: *place, Root: *root, Rivals: "bench", Rounds: *count, Seconds: time.Duration(*seconds * float64(time.Second))}, errs)
	if err == nil && *asJSON {
		err = bench.JSON(out, results)
	} else if err == nil {
		err = bench.Text(out, results)
	}
	if err != nil {
		fmt.Fprintln(errs, err)
	}
	if err != nil || !bench.Good(results) {
		return 1
	}
	return 0
}

// onDisk refuses a directory in memory: there a sync costs nothing, and no row would say anything.
func onDisk(dir string) error {
	if dir == "" {
		dir = os.TempDir()
	}
	var at syscall.Statfs_t
	if err := syscall.Statfs(dir, &at); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if at.Type == memoryMagic {
		return fmt.Errorf("%s is in memory, where a sync costs nothing; name a directory on a disk (--dir)", dir)
	}
	return nil
}

// memoryMagic is TMPFS_MAGIC of statfs(2).
const memoryMagic = 0x01021994

// choose returns the rows of the goals that are named, those that take minutes only when asked for.
func choose(all []bench.Row, want string, long bool) ([]bench.Row, error) {
	all = slices.DeleteFunc(slices.Clone(all), func(r bench.Row) bool { return r.Long && !long })
	if want == "" {
		return all, nil
	}
	var chosen []bench.Row
	for id := range strings.SplitSeq(want, ",") {
		found := slices.DeleteFunc(slices.Clone(all), func(r bench.Row) bool { return !strings.EqualFold(r.ID, strings.TrimSpace(id)) })
		if len(found) == 0 {
			return nil, fmt.Errorf("there is no row %q", id)
		}
		chosen = append(chosen, found...)
	}
	return chosen, nil
}

// measure does the rows one after the other, in a directory that is removed afterwards.
func measure(ctx context.Context, chosen []bench.Row, e bench.Env, progress io.Writer) (results []bench.Result, err error) {
	dir, err := os.MkdirTemp(e.Dir, "interlock-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if e.Dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	for _, row := range chosen {
		begin := time.Now()
		found := bench.Measure(ctx, &e, row) // after an interrupt it says of the rest that it was not measured
		for _, r := range found {
			fmt.Fprintf(progress, "%s %s, %s: %s\n", r.ID, r.What, r.Figure, r.Short())
		}
		fmt.Fprintf(progress, "   took %v\n", time.Since(begin).Round(time.Millisecond))
		results = append(results, found...)
	}
	return results, nil
}
