package rows

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"interlock/internal/bench"
	"interlock/internal/bench/floor"
	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/store/sqlite"
)

// ttl is longer than any measurement: no lease runs out in one.
const ttl = time.Hour

const repository = "local:bench"

// holder is one client, with all that the store keeps of a holder.
func holder(n int) run.Holder {
	return run.Holder{
		ID: fmt.Sprintf("client-%020d", n), Installation: "0123456789abcdef", Host: "localhost", PID: n + 1, Namespace: "pid:[4026531836]", Start: 1,
		Boot: "01234567-89ab-cdef-0123-456789abcdef",
	}
}

// leaseRecord is what has to be kept of a grant: the floors append the very same bytes.
func leaseRecord(n int) []byte {
	b, err := json.Marshal(run.Lease{Key: store.Key(repository, int64(n+1)), Holder: holder(n), Fence: 1, Granted: ttl, Expires: 2 * ttl})
	if err != nil {
		panic(err) // a struct of strings and numbers
	}
	return append(b, '\n')
}

func openStore(dir string) (*sqlite.Store, error) {
	return sqlite.Open(context.Background(), filepath.Join(dir, "state"), sqlite.Options{})
}

// serveLeases is our side of the durable rows: each client takes a lease of its own, renews it and
// gives it back, over and over.
func serveLeases(dir string, clients int) (rounds, error) {
	s, err := openStore(dir)
	if err != nil {
		return rounds{}, err
	}
	held, next := make([]run.Lease, clients), make([]int, clients)
	own := int64(os.Getpid()) * 1000 // several processes may have the same state open
	op := func(n int) (err error) {
		ctx := context.Background()
		switch next[n]++; next[n] % 3 {
		case 1:
			held[n], err = s.Acquire(ctx, holder(n), store.Key(repository, own+int64(n)), ttl, 0)
		case 2:
			held[n], err = s.Renew(ctx, held[n], ttl)
		default:
			err = s.Release(ctx, held[n])
		}
		return err
	}
	return rounds{load(clients, op), s.Close}, nil
}

// serveSteps is our side where runs go on: each client holds a run of its own and saves a step of it,
// with its event, over and over.
func serveSteps(dir string, clients int) (rounds, error) {
	s, err := openStore(dir)
	if err != nil {
		return rounds{}, err
	}
	held, runs, err := claimAll(s, clients)
	if err != nil {
		return rounds{}, errors.Join(err, s.Close())
	}
	op := func(n int) (err error) {
		runs[n], err = s.Save(context.Background(), held[n], runs[n], step)
		return err
	}
	return rounds{counted(dir, load(clients, op)), s.Close}, nil
}

// counted adds how many write transactions of the database one operation took.
func counted(dir string, do func(time.Duration) (bench.Sample, error)) func(time.Duration) (bench.Sample, error) {
	return func(long time.Duration) (bench.Sample, error) {
		before, err := writes(dir)
		if err != nil {
			return nil, err
		}
		s, err := do(long)
		if err != nil {
			return nil, err
		}
		after, err := writes(dir)
		s["transactions"] = float64(after-before) / s["operations"]
		return s, err
	}
}

// writes is how many write transactions the database has had.
func writes(dir string) (n int64, err error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "state", "state.db")+"?mode=ro")
	if err != nil {
		return 0, err
	}
	err = errors.Join(db.QueryRow("SELECT writes FROM ledger").Scan(&n), db.Close())
	return n, err
}

// step is the event of a checkpointed step: an agent has delivered a commit.
var step = run.Failed{Reason: "attempt 1: a check failed", Findings: "ok\n--- FAIL: TestSum (0.00s)\n    sum_test.go:9: Sum(-1, 1) is 2, want 0\nFAIL\n"}

func aRun(n int) run.Run {
	return run.Run{
		ID: fmt.Sprintf("%d-abcdef", n+1), Repo: repository, RepoPath: "/home/person/repository", Issue: int64(n + 1), State: run.Implementing, Reason: "an agent works",
		Task: run.Task{Title: "Sum is wrong for negative numbers", Body: "Sum(-1, 1) is 2.", Digest: "0123456789abcdef"}, Attempt: 1,
		Plan: run.Plan{Lane: run.LanePropose, Command: "./agent.sh", Checks: []string{"go test ./..."}, Attempts: 3},
	}
}

// stepRecord is what has to be kept of a step: the run and its event.
func stepRecord(n int) []byte {
	b, err := json.Marshal([]any{aRun(n), step})
	if err != nil {
		panic(err) // a struct of strings and numbers
	}
	return append(b, '\n')
}

// claimAll has as many runs live, each of an issue of its own.
func claimAll(s *sqlite.Store, n int) ([]run.Lease, []run.Run, error) {
	held, runs, done := make([]run.Lease, n), make([]run.Run, n), make(chan error, n)
	for i := range n {
		go func() (err error) {
			defer func() { done <- err }()
			held[i], runs[i], err = s.Claim(context.Background(), holder(i), aRun(i), ttl)
			return err
		}()
	}
	var all error
	for range n {
		all = errors.Join(all, <-done)
	}
	return held, runs, all
}

// serveLog is the floor of both: one client appends and syncs, more share what a group of them syncs.
func serveLog(record func(int) []byte) serve {
	return func(dir string, clients int) (rounds, error) {
		records := make([][]byte, clients)
		for n := range records {
			records[n] = record(n)
		}
		if clients == 1 {
			l, err := floor.Open(dir)
			if err != nil {
				return rounds{}, err
			}
			return rounds{load(1, func(int) error { return l.Append(records[0]) }), l.Close}, nil
		}
		g, err := floor.OpenGroup(dir)
		if err != nil {
			return rounds{}, err
		}
		return rounds{load(clients, func(n int) error { return g.Append(records[n]) }), g.Close}, nil
	}
}

func load(clients int, op func(int) error) func(time.Duration) (bench.Sample, error) {
	return func(long time.Duration) (bench.Sample, error) { return bench.Load(clients, long, op) }
}
