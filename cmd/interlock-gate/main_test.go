package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"interlock/internal/covered"
	"interlock/internal/wire"
)

// gateVariable has the test binary be the gate.
const gateVariable = "INTERLOCK_TEST_GATE"

func TestMain(m *testing.M) {
	if os.Getenv(gateVariable) != "" {
		main()
	}
	covered.Children()
	os.Exit(m.Run())
}

// hooks has what each runtime gives its hook for one harmless call.
var hooks = map[string]string{
	"claude": `{"session_id":"s","transcript_path":"/h/t","cwd":"/w","permission_mode":"dontAsk","effort":{"level":"medium"},"hook_event_name":"PreToolUse",` +
		`"tool_name":"Write","tool_input":{"file_path":"/w/w.txt","content":"W\n"},"tool_use_id":"call-1","agent_id":"a5"}`,
	"codex": `{"session_id":"s","turn_id":"t","cwd":"/w","hook_event_name":"PreToolUse","model":"m","permission_mode":"bypassPermissions",` +
		`"tool_name":"Bash","tool_input":{"command":"touch b.txt"},"tool_use_id":"call-1"}`,
	"pi":      `{"type":"tool_call","toolName":"write","toolCallId":"call-1","input":{"path":"/w/w.txt","content":"W\n"},"cwd":"/w"}` + "\n",
	"generic": `{"tool":"write","call":"call-1","dir":"/w","input":{"path":"/w/w.txt"}}`,
}

// said is what the gate has said.
type said struct {
	code        int
	out, errors string
}

// start prepares the gate as a process of its own.
func start(t *testing.T, input io.Reader, args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Args[0] = "interlock-gate"
	cmd.Env = append(os.Environ(), gateVariable+"=1")
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, &out, &errs
	return cmd, &out, &errs
}

func ask1(t *testing.T, input string, args ...string) said {
	t.Helper()
	cmd, out, errs := start(t, strings.NewReader(input), args...)
	_ = cmd.Run() // its code says it
	return said{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// broker serves a socket; answer gets each request and the connection.
func broker(t *testing.T, answer func(c *net.UnixConn, r wire.Request)) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "g")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			frame, _ := io.ReadAll(c)
			if r, err := wire.DecodeRequest(frame); err == nil {
				answer(c, r)
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done; _ = os.RemoveAll(dir) })
	return path
}

func reply(t *testing.T, c io.Writer, r wire.Reply) {
	b, err := wire.Encode(r, wire.MaxReply)
	if err != nil {
		t.Error(err)
	}
	_, _ = c.Write(b)
}

func allows(id, callID string) wire.Reply {
	return wire.Reply{Version: wire.Version, ID: id, OK: true, Body: json.RawMessage(`{"allow":true,"call":"` + callID + `"}`)}
}

// refused demands a refusal in all the ways that the runtime could look at.
func refused(t *testing.T, name string, s said, code wire.Code) {
	t.Helper()
	if s.code != 2 || !strings.HasPrefix(s.errors, string(code)+": ") || strings.Count(s.errors, "\n") != 1 {
		t.Errorf("%s: exit %d, %q, want %s", name, s.code, s.errors, code)
	}
	var v map[string]any
	if err := json.Unmarshal([]byte(s.out), &v); err != nil || strings.Count(s.out, "\n") != 1 {
		t.Errorf("%s: %q is not one object: %v", name, s.out, err)
	}
	if strings.Contains(s.out, `"allow"`) || !strings.Contains(s.out, `"deny"`) || !strings.Contains(s.out, string(code)) {
		t.Errorf("%s: says %s", name, s.out)
	}
}

// TestAllow: what the broker allows is allowed in the runtime's own form, and the broker was asked
// about exactly this call.
func TestAllow(t *testing.T) {
	t.Parallel()
	for runtime, want := range map[string]string{
		"claude":  `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"within the task's scope"}}`,
		"codex":   `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"within the task's scope"}}`,
		"pi":      `{"decision":"allow","call":"call-1"}`,
		"generic": `{"decision":"allow","call":"call-1"}`,
	} {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			var asked call
			socket := broker(t, func(c *net.UnixConn, r wire.Request) {
				if err := json.Unmarshal(r.Body, &asked); err != nil || r.Op != "decide" || len(r.ID) < 20 {
					t.Errorf("%+v, %v", r, err)
				}
				reply(t, c, allows(r.ID, asked.Call))
			})
			s := ask1(t, hooks[runtime], "--runtime", runtime, "--socket="+socket)
			if s.code != 0 || s.out != want+"\n" || s.errors != "" {
				t.Errorf("exit %d, %s, %s", s.code, s.out, s.errors)
			}
			if asked.Runtime != runtime || asked.Tool == "" || asked.Dir != "/w" || len(asked.Input) < 10 || runtime == "claude" && asked.Agent != "a5" {
				t.Errorf("asked about %+v", asked)
			}
		})
	}
}

// TestRefusals: the broker's code, why and next step reach the agent, made harmless.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for runtime := range adapters {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			socket := broker(t, func(c *net.UnixConn, r wire.Request) {
				reply(t, c, wire.Refuse(r.ID, wire.OutOfScope, "not \x1b[31m\n/etc/\u202epasswd"+strings.Repeat("x", 5000)))
			})
			s := ask1(t, hooks[runtime], "--runtime", runtime, "--socket", socket)
			refused(t, runtime, s, wire.OutOfScope)
			if strings.ContainsAny(s.errors, "\x1b\u202e") || len(s.errors) > 700 || len(s.out) > 1500 {
				t.Errorf("says %q", s.errors)
			}
		})
	}
}

// TestUnavailable: whatever a broker does but decide, each runtime is refused.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	write := func(text string) func(*net.UnixConn, wire.Request) {
		return func(c *net.UnixConn, r wire.Request) { _, _ = io.WriteString(c, strings.ReplaceAll(text, "ID", r.ID)) }
	}
	const yes = `{"v":1,"id":"ID","ok":true,"body":{"allow":true,"call":"call-1"}}`
	for name, serve := range map[string]func(*net.UnixConn, wire.Request){
		"says nothing":       func(*net.UnixConn, wire.Request) {},
		"half an approval":   write(yes[:40]),
		"no newline":         write(yes),
		"two lines":          write(yes + "\n" + yes + "\n"),
		"a log line first":   write("note\n" + yes + "\n"),
		"another call":       write(strings.Replace(yes, "call-1", "call-2", 1) + "\n"),
		"another request":    write(strings.Replace(yes, "ID", "other", 1) + "\n"),
		"no decision":        write(strings.Replace(yes, "true,\"call", "false,\"call", 1) + "\n"),
		"an empty body":      write(strings.Replace(yes, `,"body":{"allow":true,"call":"call-1"}`, "", 1) + "\n"),
		"a body that is not": write(strings.Replace(yes, `{"allow":true,"call":"call-1"}`, "true", 1) + "\n"),
		"allowed twice":      write(strings.Replace(yes, `"allow":true`, `"allow":false,"Allow":true`, 1) + "\n"),
		"a code nobody has":  write(`{"v":1,"id":"ID","ok":false,"code":"FINE"}` + "\n"),
		"garbage later": func(c *net.UnixConn, r wire.Request) {
			write(yes+"\n")(c, r)
			time.Sleep(50 * time.Millisecond)
			_, _ = io.WriteString(c, "x")
		},
		"a megabyte": write(strings.Repeat("x", 2<<20)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socket := broker(t, serve)
			for runtime := range adapters {
				refused(t, runtime, ask1(t, hooks[runtime], "--runtime", runtime, "--socket", socket), wire.GateUnavailable)
			}
		})
	}
	t.Run("nobody", func(t *testing.T) {
		t.Parallel()
		for runtime := range adapters {
			refused(t, runtime, ask1(t, hooks[runtime], "--runtime", runtime, "--socket", filepath.Join(t.TempDir(), "absent")), wire.GateUnavailable)
		}
	})
	t.Run("a token in half a reply", func(t *testing.T) {
		t.Parallel()
		s := ask1(t, hooks["claude"], "--runtime=claude", "--socket", broker(t, write(`{"v":1,"token":"interlock-token-S3cr3t`)))
		refused(t, "claude", s, wire.GateUnavailable)
		if strings.Contains(s.out+s.errors, "S3cr3t") {
			t.Error(s)
		}
	})
}

// TestInput: what a hook is not given by its runtime is refused before anybody is asked.
func TestInput(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	socket := broker(t, func(c *net.UnixConn, r wire.Request) { asked.Add(1); reply(t, c, allows(r.ID, "call-1")) })
	for runtime, good := range hooks {
		tool := map[string]string{"claude": `"tool_name":"Write"`, "codex": `"tool_name":"Bash"`, "pi": `"toolName":"write"`, "generic": `"tool":"write"`}[runtime]
		for name, input := range map[string]string{
			"no UTF-8":        strings.Replace(good, "/w", "/\xff", 1),
			"a NUL":           strings.Replace(good, "/w", "/\x00", 1),
			"an escaped NUL":  strings.Replace(good, "/w", `/\u0000`, 1),
			"the tool twice":  strings.Replace(good, tool, tool+","+tool, 1),
			"the tool, cased": strings.Replace(good, tool, tool+","+strings.ToUpper(tool), 1),
			"no tool":         strings.Replace(good, tool, `"x":1`, 1),
			"a tool of 3":     strings.Replace(good, tool, strings.Split(tool, ":")[0]+":3", 1),
			"no id":           strings.Replace(good, `"call-1"`, `""`, 1),
			"two objects":     good + good,
			"half":            good[:len(good)/2],
			"a list":          "[" + good + "]",
			"no JSON":         "hello",
			"endlessly deep":  strings.Replace(good, `"/w"`, strings.Repeat("[", 1<<20), 1),
			"another's":       map[bool]string{true: hooks["claude"], false: hooks["pi"]}[runtime == "pi" || runtime == "generic"],
			"10 MB":           strings.Replace(good, "/w", strings.Repeat("x", 10<<20), 1),
		} {
			refused(t, runtime+" "+name, ask1(t, input, "--runtime", runtime, "--socket", socket), wire.BadRequest)
		}
		refused(t, runtime+" nothing", ask1(t, "", "--runtime", runtime, "--socket", socket), wire.GateUnavailable)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the broker was asked %d times", n)
	}
	event := strings.Replace(hooks["claude"], "PreToolUse", "PostToolUse", 1)
	refused(t, "another event", ask1(t, event, "--runtime", "claude", "--socket", socket), wire.BadRequest)
	large := strings.Replace(hooks["claude"], `W\n`, strings.Repeat("x", 2<<20), 1)
	if s := ask1(t, large, "--runtime", "claude", "--socket", socket); s.code != 0 {
		t.Errorf("a file of 2 MiB: %+v", s)
	}
}

// TestFlags: flags that are none, and a call outside of every session.
func TestFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--runtime"}, {"--runtime", "gpt"}, {"--allow", "yes"}, {"claude"}, {"--socket", "/nowhere"}, {"--runtime="}, {"--help"}} {
		refused(t, strings.Join(args, " "), ask1(t, hooks["claude"], args...), wire.GateUnavailable)
	}
}

// TestDeadline: a broker that hangs, and a runtime that never closes standard input, are refused by
// the gate's own deadline.
func TestDeadline(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	socket := broker(t, func(*net.UnixConn, wire.Request) { <-over })
	t.Cleanup(func() { close(over) }) // before the broker's own
	pipe, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = w.Close(), pipe.Close() })
	for name, input := range map[string]io.Reader{"broker": strings.NewReader(hooks["codex"]), "stdin": pipe} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, out, errs := start(t, input, "--runtime", "codex", "--socket", socket)
			begun := time.Now()
			_ = cmd.Run()
			refused(t, name, said{cmd.ProcessState.ExitCode(), out.String(), errs.String()}, wire.GateUnavailable)
			if took := time.Since(begun); took < total-time.Second || took > 5*total {
				t.Errorf("after %v", took)
			}
		})
	}
}

// TestSignals: a gate that is told to end refuses first.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			came, over := make(chan struct{}), make(chan struct{})
			socket := broker(t, func(*net.UnixConn, wire.Request) { close(came); <-over })
			cmd, out, errs := start(t, strings.NewReader(hooks["claude"]), "--runtime", "claude", "--socket", socket)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-came
			if err := cmd.Process.Signal(sig); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait()
			close(over)
			refused(t, sig.String(), said{cmd.ProcessState.ExitCode(), out.String(), errs.String()}, wire.GateUnavailable)
		})
	}
}

// TestUnwritable: an approval that cannot be told is none.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	socket := broker(t, func(c *net.UnixConn, r wire.Request) { reply(t, c, allows(r.ID, "call-1")) })
	for name, open := range map[string]func() (*os.File, error){
		"full":   func() (*os.File, error) { return os.OpenFile("/dev/full", os.O_WRONLY, 0) },
		"closed": func() (*os.File, error) { r, w, err := os.Pipe(); _ = r.Close(); return w, err },
	} {
		f, err := open()
		if err != nil {
			t.Fatal(err)
		}
		cmd, _, errs := start(t, strings.NewReader(hooks["claude"]), "--runtime", "claude", "--socket", socket)
		cmd.Stdout = f
		_ = cmd.Run()
		_ = f.Close()
		if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.HasPrefix(errs.String(), "GATE_UNAVAILABLE: ") {
			t.Errorf("%s: exit %d, %s", name, code, errs)
		}
	}
}

// TestPanic: a fault in the gate refuses, and so does a decision that was never made.
func TestPanic(t *testing.T) {
	t.Parallel()
	g := gate{args: []string{"--runtime", "claude"}, stdin: reader(func([]byte) (int, error) { panic("a fault") })}
	if a := g.decide(t.Context()); a.allow || a.code != wire.GateUnavailable || !strings.Contains(a.why, "a fault") {
		t.Errorf("%+v", a)
	}
	g.stdin = reader(func([]byte) (int, error) { return 0, errors.New("broken") })
	if a := g.decide(t.Context()); a.allow || a.code != wire.GateUnavailable || !strings.Contains(a.why, "broken") {
		t.Errorf("%+v", a)
	}
	var out, errs bytes.Buffer
	if code := (answer{}).write(adapters["claude"], &out, &errs); code != 2 || !strings.HasPrefix(errs.String(), "GATE_UNAVAILABLE") {
		t.Errorf("exit %d, %s", code, &errs)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	out.Reset()
	if code := finish(over, nil, nil, &gate{}, &out, &errs); code != 2 || !strings.Contains(out.String(), `"deny"`) {
		t.Errorf("exit %d, %s", code, &out)
	}
}

type reader func([]byte) (int, error)

func (r reader) Read(b []byte) (int, error) { return r(b) }

// FuzzHook: nothing that a runtime gives its hook makes the gate panic, hang or allow by itself.
func FuzzHook(f *testing.F) {
	for _, h := range hooks {
		f.Add(h)
	}
	f.Fuzz(func(t *testing.T, input string) {
		for runtime, form := range adapters {
			a := ask(t.Context(), options{runtime, "/nowhere/at/all"}, form, []byte(input))
			if a.allow || a.code == "" {
				t.Fatalf("%s: %q is answered by %+v", runtime, input, a)
			}
			if out := form.deny(a); !json.Valid(out) || bytes.Count(out, []byte("\n")) != 1 {
				t.Fatalf("%s: %q", runtime, out)
			}
		}
	})
}
