package rows

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"interlock/internal/bench"
	"interlock/internal/git"
	"interlock/internal/scope"
)

// subject is a side of this process.
type subject struct {
	round func(ctx context.Context) (bench.Sample, error)
	close func() error
}

// Round implements bench.Subject.
func (s subject) Round(ctx context.Context) (bench.Sample, error) { return s.round(ctx) }

// Close implements bench.Subject.
func (s subject) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}

// project is a repository of many files, with a commit on top that changes a few of them.
type project struct {
	dir, bare  string // the engine's repository, and a copy of it for git alone
	base, head string
	repo       *git.Repo
}

// plainGit runs git as anybody would, and returns what it printed.
func plainGit(ctx context.Context, stdin []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@localhost",
		"GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@localhost"}
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, bench.LastLine(string(out)))
	}
	return strings.TrimSpace(string(out)), err
}

// newProject makes an engine's repository with so many files, of a kilobyte each.
func newProject(ctx context.Context, e *bench.Env, files int) (*project, error) {
	dir, err := e.Place()
	if err != nil {
		return nil, err
	}
	p := &project{dir: dir, bare: filepath.Join(dir, "bare.git")}
	source := filepath.Join(dir, "source.git")
	if _, err := plainGit(ctx, nil, "init", "-q", "--bare", "-b", "main", source); err != nil {
		return nil, err
	}
	if _, err := plainGit(ctx, history(files), "--git-dir="+source, "fast-import", "--quiet"); err != nil {
		return nil, err
	}
	if _, err := plainGit(ctx, nil, "clone", "-q", "--bare", "--no-hardlinks", source, p.bare); err != nil {
		return nil, err
	}
	g, err := git.Find(ctx)
	if err != nil {
		return nil, err
	}
	if p.repo, err = g.Engine(ctx, filepath.Join(dir, "engine.git")); err != nil {
		return nil, err
	}
	head, err := p.repo.FetchBranch(ctx, source, "main", "refs/interlock/runs/1/base")
	if err == nil {
		p.head, p.base = head.Hash, head.Parents[0]
	}
	return p, err
}

// history is the input of git fast-import: a commit with all files, and one that changes ten.
func history(files int) []byte {
	var b bytes.Buffer
	commit := func(n, many int) {
		fmt.Fprintf(&b, "commit refs/heads/main\nmark :%d\ncommitter x <x@localhost> %d +0000\ndata 1\nx\n", n, 1_700_000_000+n)
		for i := range many {
			content := strings.Repeat(fmt.Sprintf("line %d of %d\n", i, n), 60)
			fmt.Fprintf(&b, "M 100644 inline d%d/e%d/f%d\ndata %d\n%s\n", i%23, i%101, i, len(content), content)
		}
	}
	commit(1, files)
	commit(2, min(files, 10))
	return b.Bytes()
}

// timed is a side that does one thing so many times in a round.
func timed(name string, times int, open func(ctx context.Context, e *bench.Env) (func(ctx context.Context) error, error)) bench.Side {
	return bench.Side{Name: name, Open: func(ctx context.Context, e *bench.Env) (bench.Subject, error) {
		do, err := open(ctx, e)
		if err != nil {
			return nil, err
		}
		return subject{round: func(ctx context.Context) (bench.Sample, error) {
			var took []float64
			for range times {
				begin := time.Now()
				if err := do(ctx); err != nil {
					return nil, err
				}
				took = append(took, time.Since(begin).Seconds())
			}
			return bench.Times(took), nil
		}}, nil
	}}
}

// workspaces are our side and git's of a workspace of so many files. Both are of the same objects, and
// what was made is removed before the next round, outside of the time that counts.
func workspaces(files int) []bench.Side {
	ours := func(ctx context.Context, p *project, dir string) error {
		return p.repo.Workspace(ctx, git.WorkspaceSpec{Dir: dir, Commit: p.head, Branch: "interlock/issue-1"})
	}
	theirs := func(ctx context.Context, p *project, dir string) error {
		_, err := plainGit(ctx, nil, "--git-dir="+p.bare, "worktree", "add", "-q", "--detach", dir, p.head)
		return err
	}
	return []bench.Side{oneWorkspace("ours", files, ours), oneWorkspace("git worktree add", files, theirs)}
}

func oneWorkspace(name string, files int, make func(ctx context.Context, p *project, dir string) error) bench.Side {
	return bench.Side{Name: name, Open: func(ctx context.Context, e *bench.Env) (bench.Subject, error) {
		p, err := newProject(ctx, e, e.Count(files))
		if err != nil {
			return nil, err
		}
		n := 0
		return subject{round: func(ctx context.Context) (bench.Sample, error) {
			n++
			dir := filepath.Join(p.dir, fmt.Sprint("tree", n))
			begin := time.Now()
			if err := make(ctx, p, dir); err != nil {
				return nil, err
			}
			took := time.Since(begin).Seconds()
			return bench.Sample{"p50": took}, os.RemoveAll(dir)
		}, close: func() error { return os.RemoveAll(p.dir) }}, nil
	}}
}

// atOnce makes so many workspaces of a small repository, sixteen at any time, from one engine's
// repository or from one for each of the sixteen: then none waits for the lock of another.
func atOnce(name string, all int, shared bool) bench.Side {
	const together, files = 16, 5
	return bench.Side{Name: name, Open: func(ctx context.Context, e *bench.Env) (bench.Subject, error) {
		projects := make([]*project, together)
		for i := range projects {
			var err error
			if i > 0 && shared {
				projects[i] = projects[0]
			} else if projects[i], err = newProject(ctx, e, e.Count(files)); err != nil {
				return nil, err
			}
		}
		return subject{round: func(ctx context.Context) (bench.Sample, error) { return makeAll(ctx, e, projects, e.Count(all)) }}, nil
	}}
}

func makeAll(ctx context.Context, e *bench.Env, projects []*project, all int) (bench.Sample, error) {
	dir, err := e.Place()
	if err != nil {
		return nil, err
	}
	next, done := make(chan int), make(chan error, all)
	for _, p := range projects {
		go func() {
			for n := range next {
				done <- p.repo.Workspace(ctx, git.WorkspaceSpec{Dir: filepath.Join(dir, fmt.Sprint(n)), Commit: p.head, Branch: "interlock/issue-1"})
			}
		}()
	}
	begin := time.Now()
	for n := range all {
		next <- n
	}
	close(next)
	failed := 0
	for range all {
		if err := <-done; err != nil {
			failed++
		}
	}
	return bench.Sample{"took": time.Since(begin).Seconds(), "failures": float64(failed)}, os.RemoveAll(dir)
}

// scopeCheck is our side and git's of the look at what a change touches.
func scopeCheck(times int) []bench.Side {
	ours := func(ctx context.Context, e *bench.Env) (func(ctx context.Context) error, error) {
		p, err := newProject(ctx, e, e.Count(10_000))
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			changes, err := p.repo.Touched(ctx, p.base, p.head)
			if err != nil {
				return err
			}
			var paths []scope.Path
			for _, c := range changes {
				paths = append(paths, scope.Path{Old: c.OldPath, New: c.Path, OldMode: c.OldMode, NewMode: c.NewMode})
			}
			if found := scope.Check(paths, nil); len(paths) == 0 || len(found) > 0 {
				return errors.New("the change was not looked at as it is")
			}
			return nil
		}, nil
	}
	theirs := func(ctx context.Context, e *bench.Env) (func(ctx context.Context) error, error) {
		p, err := newProject(ctx, e, e.Count(10_000))
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			at := "--git-dir=" + p.bare
			if _, err := plainGit(ctx, nil, at, "rev-parse", p.base+"^{commit}", p.head+"^{commit}"); err != nil {
				return err
			}
			_, err := plainGit(ctx, nil, at, "diff-tree", "-r", "-z", "--raw", p.base, p.head)
			return err
		}, nil
	}
	return []bench.Side{timed("ours", times, ours), timed("git rev-parse, diff-tree", times, theirs)}
}

// source are the rows of git.
func source() []bench.Row {
	var all []bench.Row
	for _, files := range []int{10_000, 50_000} {
		all = append(all, bench.Row{
			ID: "G14", Long: files > 10_000, What: fmt.Sprintf("workspace of %d files", files), Sides: workspaces(files),
			Bounds: []bench.Bound{{Figure: "p50", Of: "git worktree add", Goal: bench.AtMost(1.15)}},
		})
	}
	return append(all,
		bench.Row{
			ID: "G15", What: "workspaces, 16 at once, 80 in a round", Sides: []bench.Side{atOnce("ours", 80, true), atOnce("without our lock", 80, false)},
			Bounds: []bench.Bound{
				{Figure: "took", Of: "without our lock", Goal: bench.AtMost(1.1)},
				{Figure: "failures", Goal: bench.AtMost(0), Worst: true},
			},
		},
		bench.Row{
			ID: "G16", What: "scope check of a change of 10 files in 10000", Sides: scopeCheck(20),
			Bounds: []bench.Bound{{Figure: "p50", Of: "git rev-parse, diff-tree", Goal: bench.AtMost(1.5)}},
		},
	)
}
