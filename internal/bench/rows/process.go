package rows

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the bare open of the same database

	"interlock/internal/bench"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/store"
)

// started is a process that says something on its standard output, line by line.
type started struct {
	cmd *exec.Cmd
	in  io.WriteCloser // it ends when this is closed, if it reads it at all
	out *bufio.Reader
	err strings.Builder
}

func start(ctx context.Context, dir string, argv ...string) (*started, error) {
	s := &started{cmd: exec.CommandContext(ctx, argv[0], argv[1:]...)}
	s.cmd.Dir, s.cmd.Stderr = dir, &s.err
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewReader(out)
	return s, s.cmd.Start()
}

// until reads on to a line that holds a word.
func (s *started) until(word string) error {
	for {
		line, err := s.out.ReadString('\n')
		if strings.Contains(line, word) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s never said %q: %w: %s", s.cmd.Args, word, err, bench.LastLine(s.err.String()))
		}
	}
}

// kill ends it as a crash does.
func (s *started) kill() error {
	err := s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	return err
}

// liveRuns is how many runs are live where an engine is killed and opened again.
const liveRuns = 1000

// logLeft is the size of the write-ahead log that the killed process leaves.
const logLeft = 10 << 20

// serveVictim is the process that is killed: it has the state open, with many live runs, and leaves a
// log of which nothing is in the database yet.
func serveVictim(dir string, clients int) (rounds, error) {
	s, err := openStore(dir)
	if err != nil {
		return rounds{}, err
	}
	ctx, path := context.Background(), filepath.Join(dir, "state", "state.db")
	r, err := s.Load(ctx, aRun(0).ID)
	if errors.Is(err, store.ErrNotFound) {
		if _, _, err = claimAll(s, clients); err == nil {
			r, err = s.Load(ctx, aRun(0).ID)
		}
	}
	if err != nil {
		return rounds{}, err
	}
	old, ok, err := s.Lease(ctx, store.Key(repository, 1))
	if err != nil || !ok {
		return rounds{}, errors.Join(err, errors.New("the first run is not held"))
	}
	l, err := s.Acquire(ctx, holder(os.Getpid()), old.Key, ttl, old.Fence)
	if err != nil {
		return rounds{}, err
	}
	// Who reads keeps the log from being brought into the database.
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		return rounds{}, err
	}
	reader, err := db.Begin()
	if err == nil {
		err = reader.QueryRow("SELECT count(*) FROM runs").Scan(new(int))
	}
	for err == nil {
		if info, serr := os.Stat(path + "-wal"); serr != nil || info.Size() >= logLeft {
			err = serr
			break
		}
		r.Findings = strings.Repeat("x", 256<<10)
		r, err = s.Save(ctx, l, r, run.Failed{Findings: "long"})
	}
	return rounds{}, err
}

// serveHeir is who opens the state after the kill, and says when it has a lease that is durable.
func serveHeir(dir string, clients int) (rounds, error) {
	s, err := openStore(dir)
	if err != nil {
		return rounds{}, err
	}
	live, err := s.List(context.Background(), store.Filter{Live: true, Limit: clients})
	if err == nil && len(live) != clients {
		err = fmt.Errorf("%d runs are live, want %d", len(live), clients)
	}
	if err == nil {
		_, err = s.Acquire(context.Background(), holder(os.Getpid()), "heir", ttl, 0)
		var held *store.HeldError
		if errors.As(err, &held) {
			_, err = s.Acquire(context.Background(), holder(os.Getpid()), "heir", ttl, held.Lease.Fence)
		}
	}
	return rounds{close: s.Close}, err
}

// serveBare is the least that anybody does who opens that database: SQLite's own recovery, the runs
// that are live, one write that is synced.
func serveBare(dir string, clients int) (rounds, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "state", "state.db")+"?_pragma=synchronous(full)")
	if err != nil {
		return rounds{}, err
	}
	rows, err := db.Query("SELECT data FROM runs WHERE live = 1")
	if err != nil {
		return rounds{}, err
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var data []byte
		var r run.Run
		if err := errors.Join(rows.Scan(&data), json.Unmarshal(data, &r)); err != nil {
			return rounds{}, err
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || n != clients {
		return rounds{}, errors.Join(err, fmt.Errorf("%d runs are live, want %d", n, clients))
	}
	_, err = db.Exec("UPDATE facts SET value = value")
	return rounds{close: db.Close}, err
}

// afterKill is how long it takes from a kill until a process of the kind has the state and has written.
// Each time it is killed anew, with a log of the same size.
func afterKill(name, kind string, times int) bench.Side {
	return bench.Side{Name: name, Open: func(ctx context.Context, e *bench.Env) (bench.Subject, error) {
		victim, err := sideCommand(e, "victim", e.Count(liveRuns))
		if err != nil {
			return nil, err
		}
		heir := append([]string{}, victim...)
		heir[2] = kind
		return subject{round: func(ctx context.Context) (bench.Sample, error) {
			var took []float64
			for range e.Count(times) {
				t, err := killAndOpen(ctx, victim, heir)
				if err != nil {
					return nil, err
				}
				took = append(took, t)
			}
			return bench.Times(took), nil
		}}, nil
	}}
}

func killAndOpen(ctx context.Context, victim, heir []string) (float64, error) {
	v, err := start(ctx, "", victim...)
	if err != nil {
		return 0, err
	}
	err = v.until("Sample")
	begin := time.Now()
	if err = errors.Join(err, v.cmd.Process.Kill()); err != nil {
		return 0, errors.Join(err, v.cmd.Wait())
	}
	h, err := start(ctx, "", heir...)
	if err != nil {
		return 0, err
	}
	err = h.until("Sample")
	took := time.Since(begin).Seconds()
	_ = v.cmd.Wait() // it was killed
	return took, errors.Join(err, h.in.Close(), h.cmd.Wait())
}

// resumed is how long it takes from the kill of a run's holder, which has an agent at work, until the
// same command, typed at that moment, has taken the run over.
func resumed(times int) bench.Side {
	return bench.Side{Name: "ours", Open: func(ctx context.Context, e *bench.Env) (bench.Subject, error) {
		s, err := newSite(ctx, e)
		if err != nil {
			return nil, err
		}
		var holder *started
		return subject{round: func(ctx context.Context) (bench.Sample, error) {
			var took []float64
			for range e.Count(times) {
				begin := time.Now()
				if holder != nil {
					if err := holder.cmd.Process.Kill(); err != nil {
						return nil, err
					}
				}
				next, err := start(ctx, s.repo, s.run...)
				if err != nil {
					return nil, err
				}
				if holder != nil {
					err = next.until(`"resumed"`)
					took = append(took, time.Since(begin).Seconds())
					_ = holder.cmd.Wait()
				}
				if holder = next; err == nil {
					err = next.until(`"agent"`)
				}
				if err != nil {
					return nil, err
				}
			}
			return bench.Times(took), nil
		}, close: func() error {
			if holder == nil {
				return nil
			}
			return errors.Join(holder.kill(), s.end(ctx))
		}}, nil
	}}
}

// site is a repository with an issue, and an agent that does nothing for a long time.
type site struct {
	repo    string
	program string
	state   string
	run     []string // the command line that works the issue
}

func newSite(ctx context.Context, e *bench.Env) (*site, error) {
	dir, err := e.Place()
	if err != nil {
		return nil, err
	}
	s := &site{repo: filepath.Join(dir, "repo"), state: filepath.Join(dir, "state")}
	if s.program, err = program(ctx, e); err != nil {
		return nil, err
	}
	if _, err := plainGit(ctx, nil, "init", "-q", "-b", "main", s.repo); err != nil {
		return nil, err
	}
	if _, err := plainGit(ctx, nil, "-C", s.repo, "commit", "-q", "--allow-empty", "-m", "first"); err != nil {
		return nil, err
	}
	if err := s.do(ctx, "issue", "new", "--title", "wait"); err != nil {
		return nil, err
	}
	s.run = []string{s.program, "run", "--state-dir", s.state, "--repo", s.repo, "--issue", "1", "--command", "sleep 600", "--checks", "true",
		"--allow-no-tests", "--attempts", "1000", "--json"}
	if level(ctx) != sandbox.Full {
		s.run = append(s.run, "--sandbox", string(level(ctx)))
	}
	return s, nil
}

// level is the strongest that this machine has.
func level(ctx context.Context) sandbox.Level {
	facts := sandbox.Inspect(ctx)
	for _, l := range []sandbox.Level{sandbox.Full, sandbox.Landlock} {
		if facts.Check(l) == nil {
			return l
		}
	}
	return sandbox.None
}

func (s *site) do(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, s.program, append(args, "--state-dir", s.state)...)
	cmd.Dir = s.repo
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("interlock %s: %w: %s", strings.Join(args, " "), err, bench.LastLine(string(out)))
	}
	return nil
}

// end has the last, dead holder's session ended, which cancels the run.
func (s *site) end(ctx context.Context) error {
	return s.do(ctx, "cancel", "1", "--reason", "measured")
}
