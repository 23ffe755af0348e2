package sandbox_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"interlock/internal/sandbox"
	"interlock/internal/sandbox/process"
)

// way is one level with one way of ending a tree.
type way struct {
	level    sandbox.Level
	noCgroup bool
	name     string
}

var ways = []way{
	{sandbox.Full, false, "cgroup"}, {sandbox.Full, true, "pidns"},
	{sandbox.Landlock, false, "cgroup"}, {sandbox.Landlock, true, "subreaper"},
	{sandbox.None, false, "cgroup"}, {sandbox.None, true, "subreaper"},
}

// each runs a test in every way that this machine has.
func each(t *testing.T, test func(t *testing.T, w way, f sandbox.Facts)) {
	t.Helper()
	t.Parallel()
	for _, w := range ways {
		t.Run(string(w.level)+"/"+w.name, func(t *testing.T) {
			t.Parallel()
			f := need(t, w.level)
			if w.name == "cgroup" && f.Cgroup == "" {
				t.Skipf("no cgroup can be made here: %s", f.CgroupReason)
			}
			if w.noCgroup {
				f.Cgroup = ""
			}
			test(t, w, f)
		})
	}
}

// mark is a number of seconds to sleep that no other test uses.
func mark(t *testing.T) string {
	h := 0
	for _, c := range t.Name() {
		h = (h*31 + int(c)) % 1000003
	}
	return fmt.Sprintf("7%d.%d", h, os.Getpid())
}

// clinging starts processes that try to outlive their session in every usual way, five in all.
func clinging(m string) string {
	return fmt.Sprintf(`setsid sleep %[1]s & nohup sleep %[1]s >/dev/null 2>&1 &
(setsid sh -c 'sleep %[1]s & exit 0' </dev/null >/dev/null 2>&1 &) ; (trap '' HUP TERM INT; sleep %[1]s) &
`, m)
}

// sleepers counts living processes that sleep the marked time, shells not counted.
func sleepers(m string) int {
	n := 0
	for _, line := range marked(m) {
		if strings.Contains(line, `"sleep\x00`) {
			n++
		}
	}
	return n
}

func (p *place) startClinging(m string) *sandbox.Session {
	s := p.start()
	eventually(p.t, "four processes cling", func() bool { return sleepers(m) >= 4 })
	return s
}

func cgroupGone(t *testing.T, id sandbox.Identity) {
	t.Helper()
	if id.Cgroup == "" {
		return
	}
	eventually(t, "the cgroup is removed", func() bool {
		_, err := os.Stat(id.Cgroup)
		return errors.Is(err, os.ErrNotExist)
	})
}

// engine plays an engine in a process of its own.
func (p *place) engine(noCgroup, noStart bool) (*exec.Cmd, sandbox.Identity) {
	p.t.Helper()
	b, err := json.Marshal(engineOrder{p.spec, noCgroup, noStart})
	must(p.t, err)
	cmd := exec.Command("/proc/self/exe", "play-engine", write(p.t, filepath.Join(p.t.TempDir(), "order"), string(b)))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(p.t, err)
	must(p.t, cmd.Start())
	p.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	must(p.t, err)
	var id sandbox.Identity
	must(p.t, json.Unmarshal(line, &id))
	p.endAfter(id)
	return cmd, id
}

func TestEngineKilledEndsTree(t *testing.T) {
	each(t, func(t *testing.T, w way, f sandbox.Facts) {
		m := mark(t)
		p := newPlace(t, f, w.level, clinging(m)+"sleep "+m)
		cmd, id := p.engine(w.noCgroup, false)
		if id.Way != w.name {
			t.Fatalf("way %q", id.Way)
		}
		eventually(t, "five processes run", func() bool { return sleepers(m) >= 5 })
		must(t, cmd.Process.Signal(syscall.SIGKILL))
		killed := time.Now()
		eventually(t, "no process of the tree is left", func() bool { return len(marked(m)) == 0 })
		t.Logf("the tree of 5 was gone %v after the kill", time.Since(killed).Round(time.Millisecond))
		super := process.ID{PID: id.PID, Start: id.Start, Boot: id.Boot}
		eventually(t, "the supervisor is gone", func() bool { alive, err := super.Alive(); return err == nil && !alive })
		cgroupGone(t, id)
		if proof, err := sandbox.End(t.Context(), id); err != nil || proof == "" {
			t.Errorf("no proof afterwards: %q %v", proof, err)
		}
	})
}

func TestEngineKilledBeforeStart(t *testing.T) {
	each(t, func(t *testing.T, w way, f sandbox.Facts) {
		p := newPlace(t, f, w.level, "echo started")
		cmd, id := p.engine(w.noCgroup, true)
		must(t, cmd.Process.Signal(syscall.SIGKILL))
		super := process.ID{PID: id.PID, Start: id.Start, Boot: id.Boot}
		eventually(t, "the supervisor is gone", func() bool { alive, err := super.Alive(); return err == nil && !alive })
		cgroupGone(t, id)
		if out := p.output(); out != "" {
			t.Errorf("something ran: %q", out)
		}
	})
}

func TestSupervisorKilled(t *testing.T) {
	each(t, func(t *testing.T, w way, f sandbox.Facts) {
		m := mark(t)
		p := newPlace(t, f, w.level, clinging(m)+"sleep "+m)
		s := p.startClinging(m)
		must(t, syscall.Kill(s.Identity().PID, syscall.SIGKILL))
		r, err := s.Wait(t.Context())
		if r.Why != "supervisor gone" || r.Exit != -1 {
			t.Errorf("result %+v", r)
		}
		if w.name == "subreaper" {
			if !errors.Is(err, sandbox.ErrNotProved) || !strings.Contains(err.Error(), "without a word") {
				t.Errorf("a tree that cannot be found was called gone: %v", err)
			}
			killMarked(t, m)
			return
		}
		must(t, err)
		if n := len(marked(m)); n != 0 {
			t.Errorf("%d processes are left after the proof %q", n, r.Tree)
		}
		cgroupGone(t, s.Identity())
	})
}

// killMarked cleans up what the test left by intent.
func killMarked(t *testing.T, m string) {
	t.Helper()
	eventually(t, "the left-overs are gone", func() bool {
		list := marked(m)
		for _, line := range list {
			var pid int
			fmt.Sscan(line, &pid)
			syscall.Kill(pid, syscall.SIGKILL)
		}
		return len(list) == 0
	})
}

func TestEndFromAnotherProcess(t *testing.T) {
	each(t, func(t *testing.T, w way, f sandbox.Facts) {
		m := mark(t)
		p := newPlace(t, f, w.level, clinging(m)+"sleep "+m)
		_, id := p.engine(w.noCgroup, false)
		eventually(t, "five processes run", func() bool { return sleepers(m) >= 5 })
		other := id
		other.Boot = "00000000-0000-0000-0000-000000000000"
		if _, err := sandbox.End(t.Context(), other); err != nil || sleepers(m) < 5 {
			t.Errorf("another boot: %v, %d left", err, sleepers(m))
		}
		proof, err := sandbox.End(t.Context(), id)
		must(t, err)
		if n := len(marked(m)); n != 0 || proof == "" {
			t.Errorf("%d processes are left after the proof %q", n, proof)
		}
		cgroupGone(t, id)
	})
}

func TestEndOfStoppedSupervisor(t *testing.T) {
	each(t, func(t *testing.T, w way, f sandbox.Facts) {
		if w.name != "cgroup" || w.level == sandbox.None {
			t.Skip("one way is enough")
		}
		m := mark(t)
		p := newPlace(t, f, w.level, clinging(m)+"sleep "+m)
		s := p.startClinging(m)
		must(t, syscall.Kill(s.Identity().PID, syscall.SIGSTOP))
		_, err := sandbox.End(t.Context(), s.Identity())
		must(t, err)
		if n := len(marked(m)); n != 0 {
			t.Errorf("%d processes are left", n)
		}
	})
}

func TestEndRefusesWhatItCannotProve(t *testing.T) {
	t.Parallel()
	boot, err := process.Boot()
	must(t, err)
	for _, id := range []sandbox.Identity{
		{}, {PID: 1 << 22, Boot: boot}, {Way: "cgroup", PID: 1 << 22, Start: 1, Boot: boot},
		{Way: "cgroup", Cgroup: "/sys/fs/cgroup", PID: 1 << 22, Start: 1, Boot: boot},
		{Way: "cgroup", Cgroup: filepath.Join(t.TempDir(), "interlock-x"), PID: 1 << 22, Start: 1, Boot: boot},
		{Way: "pidns", PID: 1 << 22, Start: 1, Boot: boot},
		{Way: "subreaper", Record: "/nonexistent", PID: 1 << 22, Start: 1, Boot: boot},
	} {
		if proof, err := sandbox.End(t.Context(), id); !errors.Is(err, sandbox.ErrNotProved) || proof != "" {
			t.Errorf("%+v: %q %v", id, proof, err)
		}
	}
}

func TestNormalExitEndsLeftOvers(t *testing.T) {
	each(t, func(t *testing.T, w way, f sandbox.Facts) {
		m := mark(t)
		p := newPlace(t, f, w.level, clinging(m)+"sleep 0.3; exit 5")
		r, _ := p.run()
		if r.Exit != 5 || r.Why != "exit" {
			t.Errorf("result %+v", r)
		}
		if n := len(marked(m)); n != 0 {
			t.Errorf("%d processes are left", n)
		}
	})
}

func TestStop(t *testing.T) {
	each(t, func(t *testing.T, w way, f sandbox.Facts) {
		m := mark(t)
		s := newPlace(t, f, w.level, clinging(m)+"sleep "+m).startClinging(m)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r, err := s.Wait(ctx)
		must(t, err)
		if r.Why != "stopped" || r.Exit != -1 || len(marked(m)) != 0 {
			t.Errorf("result %+v, %d left", r, len(marked(m)))
		}
	})
}

func TestForkStorm(t *testing.T) {
	each(t, func(t *testing.T, w way, f sandbox.Facts) {
		m := mark(t)
		storm := fmt.Sprintf(`storm() { sleep %s & (trap '' TERM HUP; while :; do sh -c : ; (sleep %s &) ; sleep 0.2; done) & }; for i in 1 2 3 4 5 6; do storm; done; sleep %s`, m, m, m)
		s := newPlace(t, f, w.level, storm).start()
		eventually(t, "the storm blows", func() bool { return sleepers(m) >= 15 })
		s.Stop()
		_, err := s.Wait(t.Context())
		must(t, err)
		if n := len(marked(m)); n != 0 {
			t.Errorf("%d processes are left", n)
		}
	})
}

func TestNeverStartedLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, w way, f sandbox.Facts) {
		p := newPlace(t, f, w.level, "echo started > started")
		s := p.prepare()
		if s.Identity().Way != w.name {
			t.Errorf("way %q", s.Identity().Way)
		}
		time.Sleep(200 * time.Millisecond)
		s.Stop()
		r, err := s.Wait(t.Context())
		must(t, err)
		cgroupGone(t, s.Identity())
		if _, err := os.Stat(filepath.Join(p.room.Tree(), "started")); err == nil || r.Why != "stopped" {
			t.Errorf("result %+v; started: %v", r, err)
		}
	})
}

func TestTimeLimits(t *testing.T) {
	t.Parallel()
	const touching = "for i in $(seq 20); do echo x > f; rm f; sleep 0.1; done"
	for name, c := range map[string]struct {
		script, why string
		limits      sandbox.Limits
	}{
		"total beats output":       {"while :; do echo x; sleep 0.05; done", "total", sandbox.Limits{Total: time.Second, Idle: time.Minute}},
		"silence is idle":          {"echo x; sleep 60", "idle", sandbox.Limits{Total: time.Minute, Idle: time.Second}},
		"output is activity":       {"for i in $(seq 20); do echo x; sleep 0.1; done", "exit", sandbox.Limits{Idle: time.Second}},
		"a change is activity":     {touching, "exit", sandbox.Limits{Idle: time.Second}},
		"a change elsewhere isn't": {"cd $HOME; " + touching, "idle", sandbox.Limits{Idle: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, inspect(), sandbox.None, c.script)
			p.spec.Limits, p.spec.Watch = c.limits, []string{p.room.Tree()}
			r, out := p.run()
			if r.Why != c.why || r.Took <= 0 {
				t.Errorf("result %+v\n%s", r, out)
			}
		})
	}
}

func TestLogIsCapped(t *testing.T) {
	t.Parallel()
	p := newPlace(t, inspect(), sandbox.None, "head -c 100000 /dev/zero | tr '\\0' x; exit 3")
	p.spec.Limits.Log = 1000
	write(t, p.spec.Log, "of an earlier attempt\n")
	r, out := p.run()
	if r.Dropped != 99000 || r.Exit != 3 || strings.Count(out, "x") != 1000 {
		t.Errorf("result %+v, %d bytes kept", r, strings.Count(out, "x"))
	}
	if !strings.HasPrefix(out, "of an earlier attempt\n") || !strings.Contains(out, "99000 bytes of output were dropped") {
		t.Errorf("log: %.80q ... %q", out, out[len(out)-120:])
	}
	if st, err := os.Stat(p.spec.Log); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode: %v %v", st.Mode(), err)
	}
}

func TestStdinAndDirectory(t *testing.T) {
	each(t, func(t *testing.T, w way, f sandbox.Facts) {
		p := newPlace(t, f, w.level, "cat; pwd; cat")
		p.spec.Stdin = write(t, filepath.Join(t.TempDir(), "prompt"), "the prompt\n")
		p.spec.Policy.Dir = filepath.Join(p.room.Tree(), "sub")
		must(t, os.Mkdir(p.spec.Policy.Dir, 0o700))
		if _, out := p.run(); out != "the prompt\n"+p.spec.Policy.Inside(p.spec.Policy.Dir)+"\n" {
			t.Errorf("got %q", out)
		}
	})
}

func TestCommandThatCannotStart(t *testing.T) {
	each(t, func(t *testing.T, w way, f sandbox.Facts) {
		for argv, want := range map[string]int{"no-such-program": 127, "/nonexistent/x": 127, "/usr": 126} {
			p := newPlace(t, f, w.level, "")
			p.spec.Policy.Argv = []string{argv}
			r, out := p.run()
			if r.Exit != want || r.Why != "exit" || !strings.Contains(out, "cannot be started") {
				t.Errorf("%s: %+v\n%s", argv, r, out)
			}
			cgroupGone(t, sandbox.Identity{})
		}
	})
}

func TestSetupFailureIsNotAnExit(t *testing.T) {
	t.Parallel()
	f := needFull(t)
	for name, change := range map[string]func(*place){
		"target in system": func(p *place) {
			p.spec.Policy.Mounts = append(p.spec.Policy.Mounts, sandbox.Mount{Source: p.room.Task(), Target: "/usr/new"})
		},
		"source missing": func(p *place) {
			p.spec.Policy.Mounts = append(p.spec.Policy.Mounts, sandbox.Mount{Source: "/nonexistent", Target: "/x"})
		},
		"no working directory": func(p *place) { p.spec.Policy.Dir = p.room.Tree() + "/none" },
		"mount below a file": func(p *place) {
			p.spec.Policy.Mounts = append(p.spec.Policy.Mounts, sandbox.Mount{Source: p.room.Task(), Target: "/etc/passwd/x"})
		},
	} {
		for _, noCgroup := range []bool{false, true} {
			p := newPlace(t, f, sandbox.Full, "echo ran")
			if noCgroup {
				p.facts.Cgroup = ""
			}
			change(p)
			s, err := sandbox.Prepare(t.Context(), p.facts, p.spec)
			if err == nil {
				must(t, s.Start())
				_, err = s.Wait(t.Context())
			}
			if !errors.Is(err, sandbox.ErrSetup) || strings.TrimSpace(strings.TrimPrefix(err.Error(), sandbox.ErrSetup.Error()+":")) == "" {
				t.Errorf("%s (without cgroup: %v): %v", name, noCgroup, err)
			}
		}
	}
}
