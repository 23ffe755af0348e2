package sqlite_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"interlock/internal/run"
	"interlock/internal/store/sqlite"
)

const (
	fairVariable  = "SQLITE_TEST_WRITE"
	fairProcesses = 4
	fairClients   = 64 // of each process
	fairTime      = 10 * time.Second
)

// share is what one process says when it is done.
type share struct {
	Writes  int
	Longest time.Duration // that one client waited for one write
	Err     string
}

// writeAndTell is what a process that was started with fairVariable does: its clients renew a
// lease of their own as fast as they are answered, from the first line of in on.
func writeAndTell(dir string, in io.Reader, out io.Writer) int {
	s, err := sqlite.Open(context.Background(), dir, sqlite.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer s.Close()
	fmt.Fprintln(out, "ready")
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		return 1
	}
	var mu sync.Mutex
	var all share
	var wg sync.WaitGroup
	end := time.Now().Add(fairTime)
	for n := range fairClients {
		wg.Go(func() {
			one := client(s, fmt.Sprintf("%d-%d", os.Getpid(), n), end)
			mu.Lock()
			defer mu.Unlock()
			all.Writes += one.Writes
			all.Longest = max(all.Longest, one.Longest)
			if one.Err != "" {
				all.Err = one.Err
			}
		})
	}
	wg.Wait()
	if err := json.NewEncoder(out).Encode(all); err != nil {
		return 1
	}
	return 0
}

func client(s *sqlite.Store, name string, end time.Time) (done share) {
	l, err := s.Acquire(context.Background(), run.Holder{ID: name}, name, time.Hour, 0)
	for err == nil && time.Now().Before(end) {
		begin := time.Now()
		l, err = s.Renew(context.Background(), l, time.Hour)
		done.Longest = max(done.Longest, time.Since(begin))
		done.Writes++
	}
	if err != nil {
		done.Err = err.Error()
	}
	return done
}

// TestFairTurns: 4 processes with 64 clients each write as fast as they can. Their shares are
// within a factor of two, and nobody waits for seconds. It is not parallel: shares of what two
// cores can do mean nothing beside other tests.
func TestFairTurns(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds")
	}
	dir := filepath.Join(t.TempDir(), "state")
	open(t, dir, nil)
	self, err := os.Executable()
	must(t, err)
	var ins []io.Writer
	var outs []*bufio.Reader
	for range fairProcesses {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), fairVariable+"="+dir)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		must(t, err)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		defer func() { _ = cmd.Wait() }()
		ins, outs = append(ins, in), append(outs, bufio.NewReader(out))
	}
	for _, out := range outs {
		if line, err := out.ReadString('\n'); line != "ready\n" {
			t.Fatalf("a process said %q, %v", line, err)
		}
	}
	for _, in := range ins {
		_, err := io.WriteString(in, "go\n")
		must(t, err)
	}
	var shares []share
	least, most, sum, longest := 1<<60, 0, 0, time.Duration(0)
	for _, out := range outs {
		var s share
		must(t, json.NewDecoder(out).Decode(&s))
		if s.Err != "" {
			t.Errorf("a client was told %s", s.Err)
		}
		shares = append(shares, s)
		least, most, sum, longest = min(least, s.Writes), max(most, s.Writes), sum+s.Writes, max(longest, s.Longest)
	}
	for i, s := range shares {
		t.Logf("process %d: %d writes, %.1f%%, longest wait %v", i+1, s.Writes, 100*float64(s.Writes)/float64(sum), s.Longest)
	}
	t.Logf("all: %d writes in %v, %.0f a second", sum, fairTime, float64(sum)/fairTime.Seconds())
	if least == 0 || most > 2*least {
		t.Errorf("the largest share is %d writes, the smallest %d: more than a factor of two", most, least)
	}
	if longest > 10*time.Second { // a bound of one second, at ten times
		t.Errorf("a client waited for %v", longest)
	}
}
