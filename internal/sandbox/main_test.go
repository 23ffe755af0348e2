package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"interlock/internal/covered"
	"interlock/internal/sandbox"
	"interlock/internal/toolchain"
)

// TestMain also plays the engine that a test kills: a real process that holds a session.
func TestMain(m *testing.M) {
	if code, handled := sandbox.Reenter(os.Args, redact); handled {
		os.Exit(code)
	}
	if len(os.Args) == 3 && os.Args[1] == "play-engine" {
		os.Exit(playEngine(os.Args[2]))
	}
	if len(os.Args) > 2 && os.Args[1] == "probe" {
		fmt.Println(os.Args[2], probe(os.Args[2], os.Args[3:]))
		unix.Exit(0) // at once: inside a sandbox there is no place to say what was covered
	}
	covered.Children()
	os.Exit(m.Run())
}

// probe tries one thing from inside a tree and says how it went: "done", or the error.
func probe(what string, args []string) string {
	var err error
	switch what {
	case "dial":
		var c net.Conn
		if c, err = net.DialTimeout(args[0], args[1], 5*time.Second); err == nil {
			err = c.Close()
		}
	case "listen":
		var l net.Listener
		if l, err = net.Listen(args[0], args[1]); err == nil {
			var c net.Conn
			if c, err = net.Dial(args[0], args[1]); err == nil {
				err = errors.Join(c.Close(), l.Close())
			}
		}
	case "chmod":
		err = os.Chmod(args[0], 0o700)
	case "utime":
		err = os.Chtimes(args[0], time.Unix(1, 0), time.Unix(1, 0))
	case "openw":
		var f *os.File
		if f, err = os.OpenFile(args[0], os.O_WRONLY, 0); err == nil {
			err = f.Close()
		}
	case "rechmod", "retime": // to what it is: a test that fails must not harm the machine
		var st os.FileInfo
		if st, err = os.Stat(args[0]); err == nil && what == "rechmod" {
			err = os.Chmod(args[0], st.Mode())
		} else if err == nil {
			err = os.Chtimes(args[0], st.ModTime(), st.ModTime())
		}
	case "mount":
		err = unix.Mount("none", args[0], "tmpfs", 0, "")
	case "bind":
		err = unix.Mount(args[0], args[1], "", unix.MS_BIND, "")
	case "remount":
		err = unix.Mount("", args[0], "", unix.MS_REMOUNT|unix.MS_BIND, "")
	case "umount":
		err = unix.Unmount(args[0], unix.MNT_DETACH)
	case "unshare":
		err = unix.Unshare(unix.CLONE_NEWUSER)
	case "unlink":
		err = os.Remove(args[0])
	case "truncate":
		err = os.Truncate(args[0], 0)
	case "append":
		err = os.WriteFile(args[0], []byte("planted"), 0o600)
	case "hog":
		b := make([]byte, 256<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	case "read":
		_, err = os.ReadFile(args[0])
	default:
		var known bool
		if err, known = reach(what, args); !known {
			err = errors.New("done: this probe is not known") // fails tests of both kinds
		}
	}
	if err != nil {
		return err.Error()
	}
	return "done"
}

// engineOrder is what the played engine starts.
type engineOrder struct {
	Spec     sandbox.Spec
	NoCgroup bool
	NoStart  bool
}

// playEngine starts the session of an order file, prints its identity, and then just lives.
func playEngine(path string) int {
	b, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	var o engineOrder
	if err := json.Unmarshal(b, &o); err != nil {
		panic(err)
	}
	f := sandbox.Inspect(context.Background())
	if o.NoCgroup {
		f.Cgroup = ""
	}
	s, err := sandbox.Prepare(context.Background(), f, o.Spec)
	if err != nil {
		panic(err)
	}
	if !o.NoStart {
		if err := s.Start(); err != nil {
			panic(err)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(s.Identity()); err != nil {
		panic(err)
	}
	time.Sleep(10 * time.Minute)
	return 3
}

var inspect = sync.OnceValue(func() sandbox.Facts { return sandbox.Inspect(context.Background()) })

// needFull skips where level full cannot be had, with the reason.
func needFull(t *testing.T) sandbox.Facts {
	t.Helper()
	f := inspect()
	if err := f.Check(sandbox.Full); err != nil {
		if os.Getenv("INTERLOCK_CI") != "" {
			t.Fatalf("this may not be skipped in CI: %v", err)
		}
		t.Skipf("level full cannot be tested here: %v", err)
	}
	return f
}

// place is one session to come: a room, and what it runs.
type place struct {
	t     *testing.T
	room  sandbox.Room
	facts sandbox.Facts
	spec  sandbox.Spec
}

// newPlace makes a room with a workspace, and a shell line to run in it.
func newPlace(t *testing.T, facts sandbox.Facts, level sandbox.Level, script string) *place {
	t.Helper()
	room, err := sandbox.NewRoom(filepath.Join(t.TempDir(), "room"))
	must(t, err)
	env := toolchain.Env([]string{"PATH=/usr/bin:/bin", "SECRET_TOKEN=planted"}, level, room, "/usr/local/bin:/usr/bin:/bin")
	return &place{t: t, room: room, facts: facts, spec: sandbox.Spec{
		Session: t.Name(),
		Log:     filepath.Join(t.TempDir(), "log"),
		Policy: sandbox.Policy{
			Level: level, Network: "host", Home: room.Home(), Temp: room.Temp(), Dir: room.Tree(),
			Mounts: []sandbox.Mount{{Source: room.Tree(), Target: sandbox.WorkspaceInside, Write: true}},
			Env:    env, Argv: []string{"/bin/sh", "-c", script},
		},
	}}
}

// prepare prepares the session and makes sure that it cannot outlive the test.
func (p *place) prepare() *sandbox.Session {
	p.t.Helper()
	s, err := sandbox.Prepare(p.t.Context(), p.facts, p.spec)
	must(p.t, err)
	p.endAfter(s.Identity())
	return s
}

// endAfter ends what a failed test would leave; of a tree that is gone it changes nothing.
func (p *place) endAfter(id sandbox.Identity) {
	p.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if _, err := sandbox.End(ctx, id); err != nil && id.Way != "subreaper" {
			p.t.Errorf("clean-up: %v", err)
		}
	})
}

// start prepares and starts.
func (p *place) start() *sandbox.Session {
	p.t.Helper()
	s := p.prepare()
	must(p.t, s.Start())
	return s
}

// run runs to the end and returns the result and the log.
func (p *place) run() (sandbox.Result, string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	r, err := p.start().Wait(ctx)
	must(p.t, err)
	if r.Tree == "" {
		p.t.Errorf("the result does not say how the end was confirmed: %+v", r)
	}
	return r, p.output()
}

func (p *place) output() string {
	p.t.Helper()
	b, err := os.ReadFile(p.spec.Log)
	must(p.t, err)
	return string(b)
}

// confined runs a shell line at level full and returns what it printed.
func confined(t *testing.T, script string, mounts ...sandbox.Mount) string {
	t.Helper()
	p := newPlace(t, needFull(t), sandbox.Full, script)
	p.spec.Policy.Mounts = append(p.spec.Policy.Mounts, mounts...)
	_, out := p.run()
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// eventually polls for at most ten seconds: ten times the bound that is promised.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within ten seconds: %s", what)
}

// marked lists the pids of processes whose command line holds the mark.
func marked(mark string) []string {
	var out []string
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(b), mark) {
			out = append(out, fmt.Sprintf("%s %q", filepath.Base(filepath.Dir(name)), b))
		}
	}
	return out
}
