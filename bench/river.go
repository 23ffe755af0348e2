package main

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"

	"interlock/internal/bench"
)

// noStep is the task that does nothing.
type noStep struct{}

// Kind implements river.JobArgs.
func (noStep) Kind() string { return "step" }

// nothing does it.
type nothing struct {
	river.WorkerDefaults[noStep]
	did *atomic.Int64
}

// Work implements river.Worker.
func (n *nothing) Work(context.Context, *river.Job[noStep]) error {
	n.did.Add(1)
	return nil
}

// riverQueue: so many at once are claimed and completed, of a queue that is filled before the clock
// begins. Only the claiming and completing is measured.
func riverQueue(dir string, clients int) (func(time.Duration) (bench.Sample, error), func() error, error) {
	db, err := open(dir)
	if err != nil {
		return nil, nil, err
	}
	ctx := context.Background()
	driver := riversqlite.New(db)
	migrator, err := rivermigrate.New(driver, nil)
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	var did atomic.Int64
	known := river.NewWorkers()
	river.AddWorker(known, &nothing{did: &did})
	do := func(long time.Duration) (bench.Sample, error) {
		did.Store(0)
		c, err := river.NewClient(driver, &river.Config{
			Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Workers: known,
			Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: clients}}, FetchCooldown: time.Millisecond, FetchPollInterval: 10 * time.Millisecond,
		})
		if err != nil {
			return nil, err
		}
		if err := fill(ctx, c, int(long.Seconds()*20_000)); err != nil {
			return nil, err
		}
		begin := time.Now()
		if err := c.Start(ctx); err != nil {
			return nil, err
		}
		time.Sleep(long)
		s := bench.Sample{"rate": float64(did.Load()) / time.Since(begin).Seconds()}
		return s, c.Stop(ctx)
	}
	return do, db.Close, nil
}

// fill leaves at least so many tasks to do.
func fill(ctx context.Context, c *river.Client[*sql.Tx], want int) error {
	for want > 0 {
		n := min(want, 1000)
		many := make([]river.InsertManyParams, n)
		for i := range many {
			many[i].Args = noStep{}
		}
		if _, err := c.InsertManyFast(ctx, many); err != nil {
			return err
		}
		want -= n
	}
	return nil
}
