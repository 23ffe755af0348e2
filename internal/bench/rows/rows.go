// Package rows is what `make bench` measures: each goal with our side, and the floor or the rival that
// it is compared with. It has no code of the program, and no part of the program uses it.
package rows

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"interlock/internal/bench"
)

// rounds is what a side in a process of its own does, and how it ends.
type rounds struct {
	do    func(time.Duration) (bench.Sample, error)
	close func() error
}

// serve makes the side of a process: it keeps its files in a directory, and has so many clients.
type serve func(dir string, clients int) (rounds, error)

// sides are those that this program is, when it is started again for one.
var sides = map[string]serve{
	"leases":    serveLeases,
	"lease-log": serveLog(leaseRecord),
	"steps":     serveSteps,
	"step-log":  serveLog(stepRecord),
	"runs":      serveRuns,
	"kept":      serveKept,
	"acks":      serveAcks,
	"victim":    serveVictim,
	"heir":      serveHeir,
	"bare":      serveBare,
}

// self is a side that this very program is, in a process of its own.
func self(name, what string, clients int) bench.Side {
	return bench.Child(name, func(_ context.Context, e *bench.Env) ([]string, error) {
		return sideCommand(e, what, clients)
	})
}

func sideCommand(e *bench.Env, what string, clients int) ([]string, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := e.Place()
	return []string{program, sideWord, what, dir, strconv.Itoa(clients)}, err
}

// sideWord is the first argument of a process that is a side.
const sideWord = "side"

// rival is a side of another module, built when it is needed.
func rival(name, what string, clients int) bench.Side {
	return bench.Child(name, func(ctx context.Context, e *bench.Env) ([]string, error) {
		path, err := e.Build(ctx, e.Rivals)
		if err != nil {
			return nil, err
		}
		dir, err := e.Place()
		return []string{path, what, dir, strconv.Itoa(clients)}, err
	})
}

// program is the binary that people use, built from the source tree.
func program(ctx context.Context, e *bench.Env) (string, error) {
	return e.Build(ctx, filepath.Join("cmd", "interlock"))
}
