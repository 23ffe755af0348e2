// Command interlock-gate is what the tool hooks of agents call before a tool runs. It asks the
// broker of its session, and answers in the form of the runtime that called it. Whatever goes wrong
// on the way is a refusal: no answer, half an answer, no time, no socket, a panic.
//
// It exits 0 where the call may go on, and 2 where it may not.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"interlock/internal/wire"
)

// total is how long the gate takes at most: far less than the 30 s after which a runtime gives a
// hook up, and lets the tool run.
const total = 5 * time.Second

// What is at fixed places inside a session, for a hook that names neither.
const (
	sessionSocket  = "/run/interlock/session.sock"
	sessionRuntime = "/run/interlock/runtime"
)

const (
	exitAllow = 0
	exitDeny  = 2
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), total)
	defer cancel()
	// An interrupt is a refusal like any other: a runtime takes a hook that died for one that agreed.
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	decided := make(chan answer, 1)
	g := gate{args: os.Args[1:], stdin: os.Stdin}
	go func() { decided <- g.decide(ctx) }()
	os.Exit(finish(ctx, decided, stop, &g, os.Stdout, os.Stderr))
}

// finish is the one way out: the first of a decision, a signal and the deadline is written, and
// nothing is written after it.
func finish(ctx context.Context, decided <-chan answer, stop <-chan os.Signal, g *gate, stdout, stderr io.Writer) int {
	var a answer
	select {
	case a = <-decided:
	case s := <-stop:
		a = unavailable("the gate was ended by the signal %q", s)
	case <-ctx.Done():
		a = unavailable("no decision within %v", total)
	}
	return a.write(g.adapter(), stdout, stderr)
}

// answer is a decision. Its zero value is a refusal.
type answer struct {
	allow bool
	call  string // the runtime's id of the call; may be empty
	code  wire.Code
	why   string
	next  string
}

// unavailable is a refusal because no decision could be had.
func unavailable(format string, args ...any) answer {
	return answer{code: wire.GateUnavailable, why: fmt.Sprintf(format, args...), next: wire.GateUnavailable.Next()}
}

// write says the answer in three ways at once, because runtimes look at different ones: the
// runtime's own JSON, a line of text, and the exit code. An answer that cannot be written is none.
func (a answer) write(to adapter, stdout, stderr io.Writer) int {
	if a.allow {
		if _, err := stdout.Write(to.allow(a)); err == nil {
			return exitAllow
		}
		a = unavailable("the answer could not be written")
	}
	if a.code == "" {
		a = unavailable("nothing was decided")
	}
	_, _ = io.WriteString(stderr, a.reason()+"\n")
	_, _ = stdout.Write(to.deny(a))
	return exitDeny
}

// reasonMost bounds what is told to an agent: a runtime hands it to the model, which has other
// things to read.
const reasonMost = 600

// reason is one line of plain text.
func (a answer) reason() string {
	s := string(a.code) + ": " + a.why
	if a.next != "" {
		s += " (" + a.next + ")"
	}
	return line(s, reasonMost)
}

// line makes a text one line of printable ASCII: what the broker quotes may come from anywhere.
func line(s string, most int) string {
	b := make([]byte, 0, min(len(s), most))
	for _, r := range s {
		if len(b) == most {
			break
		}
		switch {
		case r == '\n' || r == '\t':
			b = append(b, ' ')
		case r < ' ' || r > '~':
			b = append(b, '?')
		default:
			b = append(b, byte(r))
		}
	}
	return string(b)
}
