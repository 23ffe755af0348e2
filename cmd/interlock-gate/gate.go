package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"interlock/internal/wire"
)

// inputMost is how much a hook may be given; what the tool is to write is in it.
const inputMost = 3 << 20

// gate is one call of the program.
type gate struct {
	args  []string
	stdin io.Reader
	found atomic.Pointer[adapter] // of the runtime, once it is known
}

// adapter is the form to answer in: as long as the runtime is not known, one that each of them
// takes for a refusal.
func (g *gate) adapter() adapter {
	if a := g.found.Load(); a != nil {
		return *a
	}
	return adapters["generic"]
}

// decide asks the broker whether the call on stdin may go on. It never panics, and returns nothing
// that allows unless the broker has said so of this very call.
func (g *gate) decide(ctx context.Context) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			a = unavailable("a fault in the gate itself: %v", p)
		}
	}()
	// Standard input is read first and to its end, whatever comes of it: a runtime that cannot
	// write its hook's input may take that for a hook that agreed.
	input, err := drain(g.stdin)
	o, oerr := parseArgs(g.args)
	if oerr != nil {
		return unavailable("%v", oerr)
	}
	form, ok := adapters[o.runtime]
	if !ok {
		return unavailable("the runtime %q is not known; known are %s", o.runtime, names())
	}
	g.found.Store(&form)
	if err != nil {
		return unavailable("the hook's input could not be read: %v", err)
	}
	return ask(ctx, o, form, input)
}

// options are the flags, and what a session says where they are silent.
type options struct{ runtime, socket string }

func parseArgs(args []string) (o options, err error) {
	o.socket = sessionSocket
	for len(args) > 0 {
		name, value, joined := strings.Cut(args[0], "=")
		args = args[1:]
		if !joined {
			if len(args) == 0 {
				return o, fmt.Errorf("%s has no value; the flags are --runtime NAME and --socket PATH", name)
			}
			value, args = args[0], args[1:]
		}
		switch name {
		case "--runtime":
			o.runtime = value
		case "--socket":
			o.socket = value
		default:
			return o, fmt.Errorf("%q is no flag; the flags are --runtime NAME and --socket PATH", name)
		}
	}
	if o.runtime == "" {
		b, err := os.ReadFile(sessionRuntime)
		if err != nil {
			return o, errors.New("this is no session of Interlock: no --runtime was given, and there is no " + sessionRuntime)
		}
		o.runtime = strings.TrimSpace(string(b))
	}
	return o, nil
}

// drain reads everything, and keeps no more of it than can be used.
func drain(r io.Reader) ([]byte, error) {
	kept, err := io.ReadAll(io.LimitReader(r, inputMost+1))
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return nil, err
	}
	return kept, nil
}

// call is a tool call as the broker is asked about it.
type call struct {
	Runtime string          `json:"runtime"`
	Tool    string          `json:"tool"`
	Call    string          `json:"call"`            // the runtime's id of it
	Dir     string          `json:"dir"`             // the runtime's working directory
	Agent   string          `json:"agent,omitempty"` // of a subagent, the runtime's id
	Input   json.RawMessage `json:"input"`
}

// opDecide is the operation that decides about a tool call.
const opDecide = "decide"

// verdict is the body of a reply that allows.
type verdict struct {
	Allow bool   `json:"allow"`
	Call  string `json:"call"` // the id that was asked about
}

// ask reads what the runtime says, and has the broker decide about it.
func ask(ctx context.Context, o options, form adapter, input []byte) answer {
	if len(input) == 0 {
		return unavailable("nothing came on standard input; this program is called by the tool hook of an agent")
	}
	if len(input) > inputMost {
		return refusal("the hook's input has more than %d bytes", inputMost)
	}
	if err := wire.Strict(trimmed(input)); err != nil {
		return refusal("the hook's input is not to be understood in one way only: %v", err)
	}
	c, err := form.parse(input)
	if err != nil {
		return refusal("%v", err)
	}
	c.Runtime = o.runtime
	body, err := json.Marshal(c)
	if err != nil {
		return unavailable("the call cannot be passed on: %v", err)
	}
	id := rand.Text()
	r, err := wire.Call(ctx, o.socket, wire.Request{Version: wire.Version, ID: id, Op: opDecide, Body: body})
	if err != nil {
		return unavailable("the broker did not decide: %v", err)
	}
	if !r.OK {
		return answer{call: c.Call, code: r.Code, why: r.Why, next: r.Next}
	}
	var v verdict
	if err := json.Unmarshal(r.Body, &v); err != nil || !v.Allow || v.Call != c.Call {
		return unavailable("the broker's reply does not allow this call")
	}
	return answer{allow: true, call: c.Call}
}

// refusal is a refusal of what the runtime says.
func refusal(format string, args ...any) answer {
	return answer{code: wire.BadRequest, why: fmt.Sprintf(format, args...), next: wire.BadRequest.Next()}
}

// trimmed takes off the blanks that some runtimes write behind their JSON.
func trimmed(b []byte) []byte {
	return []byte(strings.TrimRight(string(b), " \t\r\n"))
}
