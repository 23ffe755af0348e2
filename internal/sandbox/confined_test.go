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
	"interlock/internal/sandbox/process"
	"interlock/internal/toolchain"
)

// self is the test binary inside, which probes.
const self = sandbox.BinaryInside + " probe "

// lacks fails when the tree printed what it must never see. The marks are split in the scripts,
// so that they cannot come from an error message that repeats a path.
func lacks(t *testing.T, out string, secrets ...string) {
	t.Helper()
	for _, s := range secrets {
		if strings.Contains(out, s) {
			t.Errorf("the tree saw %q:\n%s", s, out)
		}
	}
	if !strings.Contains(out, "end of script") {
		t.Errorf("the script did not come to its end:\n%s", out)
	}
}

// readAll tries to read a path in every way, and shows first that reading works at all.
func readAll(paths ...string) string {
	script := "echo readable > /workspace/f; cat /workspace/f;"
	for _, p := range paths {
		script += fmt.Sprintf("cat '%s'; ls -A '%s'; ln -s '%s' /workspace/l; cat /workspace/l /workspace/l/*; rm /workspace/l;", p, p, p)
	}
	return script + "cat /proc/1/root/etc/shadow; echo end of script"
}

func TestConfinedReadsNoStateDirectory(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	db := write(t, filepath.Join(state, "interlock.db"), "secret-of-state")
	lacks(t, confined(t, readAll(db, state)), "secret-of-state", "interlock.db\n")
	for _, dir := range []string{"/var", "/run", "/root", "/srv", "/sys", "/boot"} {
		if out := confined(t, "test -e "+dir+" || echo absent"); !strings.Contains(out, "absent") {
			t.Errorf("%s exists inside", dir)
		}
		if testing.Short() {
			break
		}
	}
}

func TestConfinedReadsNoOperatorHome(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	secrets := []string{".ssh/id_ed25519", ".config/tool/token", ".cargo/credentials.toml", ".netrc", ".nvm/npmrc", "notes", ".local/share/keyrings/k"}
	var paths []string
	for i, name := range secrets {
		paths = append(paths, write(t, filepath.Join(home, name), fmt.Sprintf("secret-number-%d", i)))
	}
	for _, name := range []string{"bin/mine", ".nvm/versions/node/v22/bin/node", ".cargo/bin/cargo", "bin/../.ssh/tool"} {
		file := write(t, filepath.Join(home, name), "#!/bin/sh\necho tool works\n")
		must(t, os.Chmod(file, 0o700))
	}
	must(t, os.Symlink(filepath.Join(home, ".ssh"), filepath.Join(home, "sneaky")))
	env := []string{"HOME=" + home, "PATH=" + strings.Join([]string{
		home, home + "/bin", home + "/.nvm/versions/node/v22/bin", home + "/.cargo/bin",
		home + "/.ssh", home + "/sneaky", home + "/.config/tool", "relative", "", "/usr/bin"}, ":")}
	p := newPlace(t, needFull(t), sandbox.Full, "mine; node; cargo;"+readAll(append(paths, home, "/root/.bashrc")...))
	mounts, path := toolchain.Find(t.Context(), env)
	p.spec.Policy.Tools = mounts
	p.spec.Policy.Env = toolchain.Env(env, sandbox.Full, p.room, path)
	_, out := p.run()
	lacks(t, out, "secret-number")
	if n := strings.Count(out, "tool works"); n != 3 {
		t.Errorf("%d of 3 tools work:\n%s", n, out)
	}
	for _, dir := range []string{home, home + "/.ssh", home + "/sneaky", home + "/.config/tool"} {
		if slices.Contains(strings.Split(path, ":"), dir) {
			t.Errorf("PATH inside names %s", dir)
		}
	}
}

func TestConfinedReadsNoShadow(t *testing.T) {
	t.Parallel()
	out := confined(t, readAll("/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/ssl/private")+"; ls -A /etc")
	lacks(t, out, "root:")
	if !strings.Contains(out, "passwd\n") || strings.Contains(out, "\nshadow\n") || strings.Contains(out, "\nmachine-id\n") {
		t.Errorf("/etc inside:\n%s", out)
	}
}

func TestConfinedReadsNoOtherWorkspace(t *testing.T) {
	t.Parallel()
	other, err := sandbox.NewRoom(filepath.Join(t.TempDir(), "other"))
	must(t, err)
	file := write(t, filepath.Join(other.Tree(), "plan"), "secret-of-another")
	cache := write(t, filepath.Join(other.Home(), "cache"), "secret-of-another")
	lacks(t, confined(t, "cat ../other/tree/plan ../../*/tree/plan;"+readAll(file, cache, other.Root)), "secret-of-another")
}

func TestConfinedReadsNoProcOfOthers(t *testing.T) {
	t.Parallel()
	needFull(t)
	cmd := exec.Command("/usr/bin/sleep", "600")
	cmd.Env = []string{"TOKEN=secret-in-environment"}
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	out := confined(t, fmt.Sprintf("cat /proc/%d/environ /proc/*/environ | tr '\\0' '\\n'; ls -d /proc/[0-9]* | wc -l; echo end of script", cmd.Process.Pid))
	lacks(t, out, "secret-in-environment")
	fields := strings.Fields(out)
	if n := len(fields); n < 4 || len(fields[n-4]) > 1 {
		t.Errorf("more than nine processes are seen inside:\n%s", out)
	}
}

func TestConfinedConnectsToNoSocket(t *testing.T) {
	t.Parallel()
	needFull(t)
	dir, err := os.MkdirTemp("", "s")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	paths := []string{filepath.Join(dir, "s"), "@interlock-test-" + filepath.Base(dir)}
	if unix.Access("/run", unix.W_OK) == nil {
		paths = append(paths, "/run/interlock-test-"+filepath.Base(dir)+".sock")
	}
	script := self + "listen unix /workspace/own; " + self + "listen unix @own;"
	for _, path := range paths {
		l, err := net.Listen("unix", path)
		must(t, err)
		t.Cleanup(func() { l.Close() })
		if got := probe("dial", []string{"unix", path}); got != "done" {
			t.Fatalf("the socket does not work outside: %s", got)
		}
		script += self + "dial unix " + path + ";" + self + "dial unix /proc/1/root" + path + ";"
	}
	out := confined(t, script)
	if strings.Count(out, "listen done") != 2 {
		t.Errorf("its own sockets do not work:\n%s", out)
	}
	if strings.Contains(out, "dial done") || strings.Count(out, "dial ") < 4 {
		t.Errorf("a socket outside was reached:\n%s", out)
	}
	if !strings.Contains(out, "operation not permitted") {
		t.Errorf("the abstract socket was not refused by Landlock:\n%s", out)
	}
}

func TestConfinedWritesNothingOutside(t *testing.T) {
	t.Parallel()
	needFull(t)
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "file"), "kept")
	must(t, os.Chmod(file, 0o640))
	old := time.Unix(1700000000, 0)
	must(t, os.Chtimes(file, old, old))
	var script strings.Builder
	for _, target := range []string{"/interlock/ro/file", "/interlock/single"} {
		for _, what := range []string{"chmod", "utime", "truncate", "append", "unlink"} {
			script.WriteString(self + what + " " + target + ";")
		}
	}
	for _, target := range []string{"/usr/bin/env", "/etc/passwd", "/interlock/bin/interlock", "/dev/null", "/dev/zero", "/dev/tty"} {
		script.WriteString(self + "rechmod " + target + ";" + self + "retime " + target + ";")
		if !strings.HasPrefix(target, "/dev/") {
			script.WriteString(self + "openw " + target + ";")
		}
	}
	for _, target := range []string{"/new", "/usr/interlock-new", "/etc/new", "/interlock/new", "/interlock/ro/new", "/dev/new", "/proc/sys/kernel/hostname", "/proc/1/oom_score_adj", "/home/new"} {
		script.WriteString(self + "append " + target + ";")
	}
	script.WriteString(self + "append /workspace/a;" + self + "append /home/agent/b;" + self + "append /tmp/c;" + self + "append /interlock/rw/d; echo x > /dev/null && echo null works")
	rw := t.TempDir()
	out := confined(t, script.String(), sandbox.Mount{Source: dir, Target: "/interlock/ro"},
		sandbox.Mount{Source: file, Target: "/interlock/single"}, sandbox.Mount{Source: rw, Target: "/interlock/rw", Write: true})
	if n := strings.Count(out, " done"); n != 4 || !strings.Contains(out, "null works") {
		t.Errorf("%d things were done, 4 were allowed:\n%s", n, out)
	}
	st, err := os.Stat(file)
	must(t, err)
	b, err := os.ReadFile(file)
	must(t, err)
	if st.Mode().Perm() != 0o640 || !st.ModTime().Equal(old) || string(b) != "kept" {
		t.Errorf("the file outside was changed: %v %v %q", st.Mode(), st.ModTime(), b)
	}
}

func TestConfinedPlantsNoCache(t *testing.T) {
	t.Parallel()
	for _, level := range []sandbox.Level{sandbox.Full, sandbox.None} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			f := inspect()
			if level == sandbox.Full {
				f = needFull(t)
			}
			const cache = `d=$(PATH=$PATH:/usr/local/go/bin go env GOCACHE 2>/dev/null || echo $HOME/.cache/go-build); mkdir -p "$d";`
			agent := newPlace(t, f, level, cache+`echo planted > "$d/planted-entry"; cp "$d/planted-entry" $TMPDIR/; ls "$d"`)
			_, out := agent.run()
			if !strings.Contains(out, "planted-entry") {
				t.Fatalf("the agent's own cache does not work:\n%s", out)
			}
			check := newPlace(t, f, level, cache+`find "$d" $HOME $TMPDIR -name planted-entry; echo end of script`)
			_, out = check.run()
			lacks(t, out, "planted-entry")
		})
	}
}

func TestConfinedHasNoCapabilities(t *testing.T) {
	t.Parallel()
	f := needFull(t)
	out := confined(t, "grep -E '^(Cap|NoNewPrivs)' /proc/self/status;"+self+"unshare")
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if !strings.Contains(out, set+":\t0000000000000000\n") {
			t.Errorf("%s is not empty:\n%s", set, out)
		}
	}
	if !strings.Contains(out, "NoNewPrivs:\t1") {
		t.Errorf("no_new_privs is not set:\n%s", out)
	}
	if f.NoNesting && strings.Contains(out, "unshare done") {
		t.Errorf("a user namespace inside was allowed:\n%s", out)
	}
}

func TestConfinedKillsNothingOutside(t *testing.T) {
	t.Parallel()
	needFull(t)
	cmd := exec.Command("/usr/bin/sleep", "600")
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	pid := cmd.Process.Pid
	confined(t, fmt.Sprintf("kill -9 %d; prlimit --pid %d --cpu=1; renice 5 -p %d; kill -9 %d; kill -9 -1", pid, pid, pid, os.Getpid()))
	p, err := process.Self()
	must(t, err)
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(t, err)
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	must(t, err)
	if strings.Contains(string(b), ") Z") || strings.Contains(string(limits), "Max cpu time              1 ") {
		t.Errorf("a process outside was touched by the tree (test is %d): %s", p.PID, b)
	}
}

func TestConfinedMountsNothing(t *testing.T) {
	t.Parallel()
	out := confined(t, self+"mount /workspace;"+self+"bind /usr /workspace;"+self+"remount /usr;"+self+"umount /proc;"+self+"umount /dev/null;"+self+"read /usr/bin/env")
	if strings.Count(out, " done") != 1 || !strings.Contains(out, "read done") {
		t.Errorf("a mount was made:\n%s", out)
	}
}

func TestConfinedSeesNoOtherVariable(t *testing.T) {
	t.Setenv("PLANTED_TOKEN", "secret-of-the-engine")
	for level, script := range map[sandbox.Level]string{
		sandbox.Full: "/usr/bin/env; cat /proc/*/environ | tr '\\0' '\\n'; echo end of script",
		sandbox.None: "/usr/bin/env; echo end of script",
	} {
		f := inspect()
		if level == sandbox.Full {
			f = needFull(t)
		}
		_, out := newPlace(t, f, level, script).run()
		lacks(t, out, "planted", "secret-of-the-engine", "PLANTED_TOKEN", "LD_PRELOAD")
		if !strings.Contains(out, "GIT_AUTHOR_NAME=Interlock agent\n") || !strings.Contains(out, "TERM=dumb\n") {
			t.Errorf("level %s:\n%s", level, out)
		}
	}
}

func TestConfinedHasNoNetworkWhenNone(t *testing.T) {
	t.Parallel()
	f := needFull(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	for network, want := range map[string]bool{"host": true, "none": false} {
		p := newPlace(t, f, sandbox.Full, self+"dial tcp "+l.Addr().String()+";"+self+"listen tcp 127.0.0.1:7")
		p.spec.Policy.Network = network
		if _, out := p.run(); strings.Contains(out, "dial done") != want {
			t.Errorf("network %s:\n%s", network, out)
		}
	}
}

func TestTreeInheritsNoDescriptor(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { r.Close(); w.Close() })
	stray, err := unix.Dup(int(r.Fd())) // without close-on-exec, as an operator's shell leaves them
	must(t, err)
	t.Cleanup(func() { unix.Close(stray) })
	for _, level := range []sandbox.Level{sandbox.Full, sandbox.None} {
		f := inspect()
		if level == sandbox.Full {
			f = needFull(t)
		}
		_, out := newPlace(t, f, level, "ls /proc/self/fd").run()
		if got := strings.Fields(out); !slices.Equal(got, []string{"0", "1", "2", "3"}) {
			t.Errorf("level %s: descriptors %v, want 0 to 2 and that of ls", level, got)
		}
	}
}
