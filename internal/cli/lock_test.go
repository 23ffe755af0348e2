package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// engineRepo is the engine's own repository of this project.
func (p *project) engineRepo() string {
	p.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(p.state, "repos", "*.git"))
	if err != nil || len(dirs) != 1 {
		p.t.Fatalf("the engine's repository: %q, %v", dirs, err)
	}
	return dirs[0]
}

// TestStaleLocks: a lock file of git that a killed git left, in the operator's repository or in the
// engine's, is never removed. Either it is in nobody's way, or the command says which file it is;
// when that is gone the same command goes on.
func TestStaleLocks(t *testing.T) {
	t.Parallel()
	for where, sets := range map[string][][]string{
		"repository": {
			{"config.lock", "shallow.lock", "packed-refs.lock"}, {"index.lock"}, {"HEAD.lock"}, {"refs/heads/main.lock"},
			{"refs/heads/interlock/issue-1.lock"}, {"refs/interlock/claims/1.lock"}, {"refs/interlock/issues/1.lock"},
			{"refs/interlock/changes/1.lock"}, {"refs/interlock/heads/interlock%2Fissue-1.lock"},
		},
		"engine": {
			{"config.lock", "shallow.lock", "packed-refs.lock", "index.lock", "HEAD.lock"},
			{"refs/interlock/seen/newest/1.lock", "refs/interlock/kept/issues/1.lock"},
		},
	} {
		for _, names := range sets {
			t.Run(where+" "+names[0], func(t *testing.T) {
				t.Parallel()
				p := newProject(t, quick, "x")
				p.must(0, "claim", "show", "--all", "--repo", p.repo) // makes the engine's repository
				dir := filepath.Join(p.repo, ".git")
				if where == "engine" {
					dir = p.engineRepo()
				}
				for _, name := range names {
					lock := filepath.Join(dir, name)
					if err := os.MkdirAll(filepath.Dir(lock), 0o700); err != nil {
						t.Fatal(err)
					}
					p.write(lock, "", 0o600)
				}
				code, out := p.interlock(p.work()...)
				acode, aout := 1, ""
				if code == 0 {
					acode, aout = p.interlock("change", "accept", "1", "--repo", p.repo)
				}
				named := false
				for _, name := range names {
					named = named || strings.Contains(out+aout, name)
					if err := os.Remove(filepath.Join(dir, name)); err != nil {
						t.Errorf("the lock file: %v", err)
					}
				}
				if acode != 0 && !named {
					t.Errorf("exit %d and %d, and the file is not named:\n%s\n%s", code, acode, out, aout)
				}
				if code != 0 {
					p.must(0, p.work()...)
				}
				if acode != 0 {
					p.must(0, "change", "accept", "1", "--repo", p.repo)
				}
				if got := p.git("-C", p.repo, "show", "main:answer"); got != "fixed" {
					t.Errorf("main holds %q", got)
				}
			})
		}
	}
}

// TestPruneBesideAWorkspace: somebody collects the engine's repository, base forced meanwhile, while
// an agent works in a workspace that borrows from it: nothing that it needs is gone.
func TestPruneBesideAWorkspace(t *testing.T) {
	t.Parallel()
	agent := strings.Replace(slowAgent, "echo fixed", "git fsck --full --no-dangling || exit 9\ngit log -p --all >/dev/null || exit 9\necho fixed", 1)
	p := newProject(t, agent, "HURRY")
	first := p.start(p.work()...)
	p.git("-C", p.repo, "checkout", "-q", "--orphan", "anew")
	p.commit("other", "x\n")
	p.git("-C", p.repo, "branch", "-f", "main", "anew")
	p.git("-C", p.repo, "reflog", "expire", "--expire=now", "--all")
	p.git("-C", p.repo, "gc", "-q", "--prune=now")
	p.must(0, "issue", "list", "--repo", p.repo)
	for range 3 {
		dir := "--git-dir=" + p.engineRepo()
		p.git(dir, "reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
		p.git(dir, "repack", "-q", "-a", "-d", "-f")
		p.git(dir, "prune", "--expire=now")
		p.git(dir, "pack-refs", "--all")
	}
	if code := first.wait(); code != 1 || !strings.Contains(first.out.String(), "main was rewritten") {
		t.Errorf("exit %d, want 1: the base was rewritten\n%s", code, first.out)
	}
	rows := p.runs()
	if len(rows) != 1 || rows[0].Head.Hash == "" || rows[0].Attempt != 1 {
		t.Fatalf("runs %+v\n%s", rows, first.out)
	}
	p.git("--git-dir="+p.engineRepo(), "log", "-p", rows[0].Head.Hash)
}

// TestLateRenewal: the store cannot be written for longer than the lease lives. The holder steps down
// while its renewal still waits: the agent's tree is gone before the answer comes.
func TestLateRenewal(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for a lease to run out")
	}
	p := newProject(t, slowAgent, "slowly")
	first := p.start(p.work()...)
	if len(p.sleepers()) == 0 {
		t.Fatal("the test does not see the processes of a session that runs")
	}
	unlock := p.blockAll()
	gone := make(chan time.Duration, 1)
	begin := time.Now()
	for deadline := begin.Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if len(p.sleepers()) == 0 {
			gone <- time.Since(begin)
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the agent of a lease that has run out works on\n%s", first.out)
		}
	}
	t.Logf("the tree was gone %v after the last renewal that could succeed, before its answer", <-gone)
	unlock()
	if code := first.wait(); code != 9 {
		t.Errorf("exit %d, want 9\n%s", code, first.out)
	}
	if got := p.refs("refs/heads/interlock/"); len(got) != 0 {
		t.Errorf("pushed %q", got)
	}
	p.must(0, p.work()...)
	p.once()
}

// blockAll keeps everybody from writing the store, as a process does that is stopped in its turn.
func (p *project) blockAll() (unlock func()) {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.state, "*.lock"))
	if err != nil || len(files) == 0 {
		p.t.Fatalf("lock files: %q, %v", files, err)
	}
	var held []*os.File
	for _, file := range files {
		f, err := os.OpenFile(file, os.O_RDWR, 0)
		if err == nil {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		}
		if err != nil {
			p.t.Fatal(err)
		}
		held = append(held, f)
	}
	return func() {
		for _, f := range held {
			f.Close()
		}
	}
}

// sleepers are the processes of slowAgent, found without the store.
func (p *project) sleepers() []string {
	p.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		p.t.Fatal(err)
	}
	var found []string
	for _, file := range all {
		env, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(env), "INTERLOCK_RUN=") {
			if link, err := os.ReadFile(filepath.Join(filepath.Dir(file), "mountinfo")); err == nil && strings.Contains(string(link), p.state) {
				found = append(found, file)
			}
		}
	}
	return found
}

// TestDaemonOfAHook: a hook of the operator's repository leaves a daemon behind that holds what it was
// given, and the engine is killed in that very push. The next command does not wait for the daemon.
func TestDaemonOfAHook(t *testing.T) {
	t.Parallel()
	p := newProject(t, quick, "x")
	pid := filepath.Join(t.TempDir(), "pid")
	hook := filepath.Join(p.repo, ".git/hooks/post-receive")
	if err := os.MkdirAll(filepath.Dir(hook), 0o700); err != nil {
		t.Fatal(err)
	}
	p.write(hook, "#!/bin/sh\ngrep -q refs/heads/ || exit 0\ntest -e "+pid+" && exit 0\nsetsid sleep 900 &\necho $! > "+pid+"\nsleep 20\n", 0o755)
	cmd, out := p.command(nil, p.work()...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	p.eventually("the hook runs", func() bool { _, err := os.Stat(pid); return err == nil })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	t.Logf("killed:\n%s", out)
	p.must(0, p.work()...) // the daemon outlives the time that this test has
	p.once()
	data, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("kill", strings.TrimSpace(string(data))).Run(); err != nil {
		t.Errorf("the daemon of the operator's hook was ended: %v", err)
	}
}
