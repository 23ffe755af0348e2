package sandbox_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"interlock/internal/sandbox"
)

// outside is what a tree at level Landlock is tried against: things of the same account that no
// rule shows to it. All of it belongs to the test.
type outside struct {
	t        *testing.T
	dir      string
	file     string
	socket   string
	abstract string
	sleeper  *exec.Cmd
	udp      net.PacketConn
	shm      int
}

func newOutside(t *testing.T) *outside {
	dir, err := os.MkdirTemp("", "o")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	o := &outside{t: t, dir: dir, file: write(t, filepath.Join(dir, "file"), "secret-outside"), socket: filepath.Join(dir, "s")}
	o.abstract = "@interlock-gap-" + filepath.Base(dir)
	for _, path := range []string{o.socket, o.abstract} {
		l, err := net.Listen("unix", path)
		must(t, err)
		t.Cleanup(func() { l.Close() })
	}
	o.sleeper = exec.Command("/usr/bin/sleep", "600")
	o.sleeper.Env = []string{"TOKEN=secret-in-environment"}
	in, err := os.Open(o.file)
	must(t, err)
	defer in.Close()
	o.sleeper.Stdin = in
	must(t, o.sleeper.Start())
	t.Cleanup(func() { o.sleeper.Process.Kill(); o.sleeper.Wait() })
	o.udp, err = net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { o.udp.Close() })
	o.shm, err = unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	must(t, err)
	t.Cleanup(func() { unix.SysvShmCtl(o.shm, unix.IPC_RMID, nil) })
	return o
}

// gapProbes try each row of sandbox.Gaps, by the beginning of its text.
func (o *outside) gapProbes() map[string][]string {
	pid := fmt.Sprint(o.sleeper.Process.Pid)
	return map[string][]string{
		"connect to sockets":            {"dial", "unix", o.socket},
		"reach abstract sockets":        {"dial", "unix", o.abstract},
		"signal processes":              {"signal", pid},
		"change mode, owner":            {"chmod", o.file},
		"see that a file is there":      {"stat", o.file},
		"watch files":                   {"watch", o.dir},
		"see other processes":           {"read", "/proc/" + pid + "/cmdline"},
		"change limits":                 {"prlimit", pid},
		"share System V":                {"shm", fmt.Sprint(o.shm)},
		"send and receive UDP, and eve": {"udp", o.udp.LocalAddr().String()},
	}
}

// stoppedProbes must all be refused at level Landlock.
func (o *outside) stoppedProbes() [][]string {
	pid := fmt.Sprint(o.sleeper.Process.Pid)
	new := filepath.Join(o.dir, "new")
	home, err := os.UserHomeDir()
	must(o.t, err)
	return [][]string{
		{"read", o.file}, {"list", o.dir}, {"openw", o.file}, {"append", o.file}, {"append", new}, {"truncate", o.file},
		{"unlink", o.file}, {"mkdir", new}, {"symlink", new}, {"rename", o.file, new}, {"link", o.file, new}, {"fifo", new}, {"dev", new},
		{"list", home}, {"read", "/etc/shadow"}, {"list", "/tmp"}, {"append", "/dev/shm/interlock-test"}, {"list", "/dev/pts"},
		{"append", "/usr/interlock-test"}, {"list", "/sys/fs/cgroup"}, {"append", "/sys/fs/cgroup/interlock-test"},
		{"read", "/proc/" + pid + "/environ"}, {"read", "/proc/" + pid + "/fd/0"}, {"readlink", "/proc/" + pid + "/fd/0"}, {"read", "/proc/" + pid + "/maps"},
		{"list", "/proc/" + pid + "/root"}, {"list", "/proc/1/root"}, {"ptrace", pid}, {"vmread", pid},
		{"openw", "/proc/self/oom_score_adj"}, {"unshare"}, {"mount", o.dir}, {"keyctl"}, {"iouring"}, {"packet"}, {"clock"}, {"chroot", "/usr"},
	}
}

// confinedAlone runs probes at level Landlock and returns what each printed.
func confinedAlone(t *testing.T, probes [][]string) []string {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	var script strings.Builder
	for _, p := range probes {
		fmt.Fprintf(&script, "%s probe %s\n", exe, strings.Join(p, " "))
	}
	_, out := newPlace(t, need(t, sandbox.Landlock), sandbox.Landlock, script.String()).run()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != len(probes) {
		t.Fatalf("%d probes, %d lines:\n%s", len(probes), len(lines), out)
	}
	return lines
}

// TestGapsAreTrue: each row of the table is tried for real and is not stopped; one that a newer
// kernel stops is stopped there.
func TestGapsAreTrue(t *testing.T) {
	t.Parallel()
	abi := need(t, sandbox.Landlock).Landlock
	o := newOutside(t)
	by := o.gapProbes()
	if len(by) != len(sandbox.Gaps) {
		t.Errorf("%d probes for %d gaps", len(by), len(sandbox.Gaps))
	}
	var probes [][]string
	for _, g := range sandbox.Gaps {
		found := false
		for begin, p := range by {
			if strings.HasPrefix(g.What, begin) {
				found, probes = true, append(probes, p)
			}
		}
		if !found {
			t.Fatalf("no probe tries the gap %q", g.What)
		}
	}
	holds := sandbox.GapsAt(abi)
	for i, line := range confinedAlone(t, probes) {
		gap := sandbox.Gaps[i]
		if open := strings.HasSuffix(line, " done"); open != slices.Contains(holds, gap) {
			t.Errorf("ABI %d: the table says open=%t of %q, but: %s", abi, !open, gap.What, line)
		}
		t.Logf("%-8s %s", map[bool]string{true: "open", false: "stopped"}[slices.Contains(holds, gap)], gap.What)
	}
}

// TestLandlockStops: what is not in the table is stopped, also for the account that owns it all.
// Each of them works outside, so that it is the level that stops it.
func TestLandlockStops(t *testing.T) {
	t.Parallel()
	need(t, sandbox.Landlock)
	o := newOutside(t)
	probes := o.stoppedProbes()
	for i, line := range confinedAlone(t, probes) {
		if strings.HasSuffix(line, " done") || strings.Contains(line, "secret") {
			t.Errorf("%q was not stopped: %s", probes[i], line)
		}
		t.Logf("%s", line)
	}
	b, err := os.ReadFile(o.file)
	if err != nil || string(b) != "secret-outside" {
		t.Errorf("the file outside: %q %v", b, err)
	}
	if os.Geteuid() != 0 {
		return
	}
	for _, p := range probes[:5] { // those that leave the file as it is
		if p[0] == "append" {
			continue
		}
		if got := probe(p[0], p[1:]); got != "done" {
			t.Errorf("%q fails outside as well: %s", p, got)
		}
	}
}

// TestCallsAreFiltered: the filter is on what runs in a session, not only on a child of its test.
func TestCallsAreFiltered(t *testing.T) {
	t.Parallel()
	for _, level := range []sandbox.Level{sandbox.Full, sandbox.Landlock} {
		exe, err := os.Executable()
		must(t, err)
		if level == sandbox.Full {
			exe = sandbox.BinaryInside
		}
		var script strings.Builder
		calls := []string{"keyctl", "iouring", "packet", "clock", "chroot /usr"}
		for _, c := range calls {
			fmt.Fprintf(&script, "%s probe %s\n", exe, c)
		}
		_, out := newPlace(t, need(t, level), level, script.String()+"grep -E '^(Seccomp|NoNewPrivs|CapEff|CapPrm):' /proc/self/status").run()
		if strings.Contains(out, "done") || strings.Count(out, "\n") != len(calls)+4 {
			t.Errorf("level %s:\n%s", level, out)
		}
		for _, line := range []string{"Seccomp:\t2\n", "NoNewPrivs:\t1\n", "CapEff:\t0000000000000000\n", "CapPrm:\t0000000000000000\n"} {
			if !strings.Contains(out, line) {
				t.Errorf("level %s lacks %q:\n%s", level, line, out)
			}
		}
	}
}

// TestLandlockLetsWork: the workspace, the home and the temporary directory can be used as at the
// other levels, by their own paths.
func TestLandlockLetsWork(t *testing.T) {
	t.Parallel()
	p := newPlace(t, need(t, sandbox.Landlock), sandbox.Landlock, `set -e
pwd; echo x > f; mv f g; ln -s g l; mkdir d; mv g d/; rm -r d l; echo h > $HOME/h; echo t > $TMPDIR/t; mkfifo p; echo null > /dev/null
sh -c 'kill -0 $PPID'; cat /etc/passwd > /dev/null; ls -l /proc/self/exe > /dev/null; git init -q . && git status > /dev/null; echo end of script`)
	r, out := p.run()
	if r.Exit != 0 || !strings.HasPrefix(out, p.room.Tree()+"\n") || !strings.Contains(out, "end of script") {
		t.Errorf("%+v:\n%s", r, out)
	}
	if got := p.spec.Policy.Inside(p.room.Tree()); got != p.room.Tree() {
		t.Errorf("inside is %s", got)
	}
}

// watchOne reports a watch that could be set.
func watchOne(path string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.InotifyAddWatch(fd, path, unix.IN_OPEN)
	return err
}

func sendUDP(addr string) error {
	c, err := net.DialTimeout("udp", addr, 5*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte("x"))
	return err
}
