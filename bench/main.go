// Command bench is the rivals that `make bench` compares with, each in a process of its own. They have
// a module of their own, so that the program needs none of what they need, and no part of it is used
// but the line protocol and the load, so that both sides are measured by the same code.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"time"

	"interlock/internal/bench"
)

// rival makes a rival: it keeps its files in a directory and has so many clients.
type rival func(dir string, clients int) (do func(time.Duration) (bench.Sample, error), stop func() error, err error)

var rivals = map[string]rival{
	"etcd-txn":   etcdTxn,
	"etcd-lease": etcdLease,
	"sqlite":     oneEach,
	"river":      riverQueue,
}

func main() {
	log.SetOutput(io.Discard) // what rivals log is not measured
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(args []string) error {
	if len(args) != 3 || rivals[args[0]] == nil {
		return fmt.Errorf("there is no rival %q", args)
	}
	clients, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	do, stop, err := rivals[args[0]](args[1], clients)
	if err != nil {
		return err
	}
	return errors.Join(bench.Serve(os.Stdin, os.Stdout, do), stop())
}

// load has each client do one operation after the other.
func load(clients int, op func(ctx context.Context, n int) error) func(time.Duration) (bench.Sample, error) {
	return func(long time.Duration) (bench.Sample, error) {
		return bench.Load(clients, long, func(n int) error { return op(context.Background(), n) })
	}
}
