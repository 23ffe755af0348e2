package rows

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"interlock/internal/bench"
	"interlock/internal/lease"
	"interlock/internal/run"
	"interlock/internal/sandbox"
)

// ran times a command from its start to its end.
func ran(ctx context.Context, argv ...string) (float64, error) {
	begin := time.Now()
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", argv[0], err, bench.LastLine(string(out)))
	}
	return time.Since(begin).Seconds(), err
}

// adds is how much longer one way to start a command takes than another: the two in turns.
func adds(name string, times int, open func(ctx context.Context, e *bench.Env) (with, without func(ctx context.Context) (float64, error), err error)) bench.Side {
	return bench.Side{Name: name, Open: func(ctx context.Context, e *bench.Env) (bench.Subject, error) {
		with, without, err := open(ctx, e)
		if err != nil {
			return nil, err
		}
		return subject{round: func(ctx context.Context) (bench.Sample, error) {
			var more, less []float64
			for range e.Count(times) {
				a, err := with(ctx)
				if err != nil {
					return nil, err
				}
				b, err := without(ctx)
				if err != nil {
					return nil, err
				}
				more, less = append(more, a), append(less, b)
			}
			return bench.Sample{"adds": bench.Median(more) - bench.Median(less)}, nil
		}}, nil
	}}
}

// confined is what a level adds to the same session at level none, which has a supervisor too.
func confined(level sandbox.Level, times int) bench.Side {
	return adds("ours", times, func(ctx context.Context, e *bench.Env) (with, without func(context.Context) (float64, error), err error) {
		facts := sandbox.Inspect(ctx)
		if err := facts.Check(level); err != nil {
			return nil, nil, err
		}
		dir, err := e.Place()
		if err != nil {
			return nil, nil, err
		}
		room, err := sandbox.NewRoom(filepath.Join(dir, "room"))
		session := func(level sandbox.Level) func(context.Context) (float64, error) {
			return func(ctx context.Context) (float64, error) { return oneSession(ctx, facts, room, level) }
		}
		return session(level), session(sandbox.None), err
	})
}

// oneSession times a session of a command that does nothing, from its start to the proof of its end.
func oneSession(ctx context.Context, facts sandbox.Facts, room sandbox.Room, level sandbox.Level) (float64, error) {
	begin := time.Now()
	s, err := sandbox.Prepare(ctx, facts, sandbox.Spec{
		Session: "bench", Log: filepath.Join(room.Root, "log"),
		Policy: sandbox.Policy{Level: level, Home: room.Home(), Temp: room.Temp(), Network: "host", Env: []string{"PATH=/usr/bin:/bin"},
			Mounts: []sandbox.Mount{{Source: room.Tree(), Target: sandbox.WorkspaceInside, Write: true}}, Dir: room.Tree(), Argv: []string{"/bin/true"}},
	})
	if err != nil {
		return 0, err
	}
	if err := s.Start(); err != nil {
		return 0, err
	}
	r, err := s.Wait(ctx)
	took := time.Since(begin).Seconds()
	if err == nil && r.Exit != 0 {
		err = fmt.Errorf("the command ended with %d", r.Exit)
	}
	return took, err
}

// bubblewrap is what bubblewrap adds, with the namespaces that a session has.
func bubblewrap(times int) bench.Side {
	return adds("bubblewrap", times, func(context.Context, *bench.Env) (with, without func(context.Context) (float64, error), err error) {
		path, err := exec.LookPath("bwrap")
		plain := func(ctx context.Context) (float64, error) { return ran(ctx, "/bin/true") }
		inside := func(ctx context.Context) (float64, error) {
			return ran(ctx, path, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--cap-drop", "ALL",
				"--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "/bin/true")
		}
		return inside, plain, err
	})
}

// version times our program and an empty one.
func version(times int) []bench.Side {
	ours := func(ctx context.Context, e *bench.Env) (func(context.Context) error, error) {
		path, err := program(ctx, e)
		return func(ctx context.Context) error { _, err := ran(ctx, path, "version"); return err }, err
	}
	empty := func(ctx context.Context, e *bench.Env) (func(context.Context) error, error) {
		path, err := e.Build(ctx, filepath.Join("internal", "bench", "empty"))
		return func(ctx context.Context) error { _, err := ran(ctx, path); return err }, err
	}
	return []bench.Side{timed("ours", times, ours), timed("empty Go program", times, empty)}
}

// footprint is the size of the program, and the memory of one that waits for an agent.
func footprint() bench.Side {
	return bench.Side{Name: "ours", Open: func(ctx context.Context, e *bench.Env) (bench.Subject, error) {
		s, err := newSite(ctx, e)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(s.program)
		if err != nil {
			return nil, err
		}
		holder, err := start(ctx, s.repo, s.run...)
		if err != nil {
			return nil, err
		}
		end := func() error { return errors.Join(holder.kill(), s.end(ctx)) }
		if err := holder.until(`"agent"`); err != nil {
			return nil, errors.Join(err, end())
		}
		return subject{round: func(context.Context) (bench.Sample, error) {
			time.Sleep(e.Seconds)
			resident, err := bench.Memory(holder.cmd.Process.Pid, "VmRSS")
			return bench.Sample{"size": float64(info.Size()), "resident": resident}, err
		}, close: end}, nil
	}}
}

// serveKept is a process that keeps the leases of so many live runs, each as an engine does.
func serveKept(dir string, clients int) (rounds, error) {
	s, err := openStore(dir)
	if err != nil {
		return rounds{}, err
	}
	begin := s.Clock().Now()
	held, runs, err := claimAll(s, clients)
	if err != nil {
		return rounds{}, errors.Join(err, s.Close())
	}
	holds := make([]*lease.Hold, clients)
	for n := range holds {
		holds[n] = lease.Keep(context.Background(), s, s.Clock(), runs[n].ID, held[n], begin)
	}
	do := func(long time.Duration) (bench.Sample, error) {
		time.Sleep(long)
		for _, h := range holds {
			if err := h.Check(); err != nil {
				return nil, err
			}
		}
		resident, err := bench.Memory(os.Getpid(), "VmRSS")
		return bench.Sample{"resident": resident}, err
	}
	return rounds{do, func() error {
		var all error
		for _, h := range holds {
			all = errors.Join(all, h.Close(context.Background()))
		}
		return errors.Join(all, s.Close())
	}}, nil
}

// serveRuns is our side of a queue: so many at once claim a run of an issue of their own and complete
// it, without a step between.
func serveRuns(dir string, clients int) (rounds, error) {
	s, err := openStore(dir)
	if err != nil {
		return rounds{}, err
	}
	count := make([]int, clients)
	op := func(n int) error {
		ctx := context.Background()
		r := aRun(n + clients*count[n])
		count[n]++
		l, r, err := s.Claim(ctx, holder(n), r, ttl)
		if err != nil {
			return err
		}
		r.State, r.Reason = run.Done, "nothing was to be done"
		if _, err := s.Save(ctx, l, r, run.Accepted{}); err != nil {
			return err
		}
		return s.Release(ctx, l)
	}
	return rounds{load(clients, op), s.Close}, nil
}
