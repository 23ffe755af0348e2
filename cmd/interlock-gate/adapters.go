package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// adapter is how a runtime says what it is about to do, and how it is answered.
type adapter struct {
	parse func([]byte) (call, error)
	allow func(answer) []byte
	deny  func(answer) []byte
}

var adapters = map[string]adapter{
	"claude":  {parseHook, allowHook, denyHook},
	"codex":   {parseHook, allowHook, denyHook},
	"pi":      {parsePi, allowPlain, denyPlain},
	"generic": {parseGeneric, allowPlain, denyPlain},
}

func names() string {
	all := make([]string, 0, len(adapters))
	for n := range adapters {
		all = append(all, n)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// hookEvent is the event of Claude Code and Codex that comes before a tool runs. They call it the
// same, and hold other fields, which differ from version to version and are not looked at.
const hookEvent = "PreToolUse"

func parseHook(b []byte) (c call, err error) {
	var in struct {
		Event string          `json:"hook_event_name"`
		Tool  string          `json:"tool_name"`
		Input json.RawMessage `json:"tool_input"`
		ID    string          `json:"tool_use_id"`
		Dir   string          `json:"cwd"`
		Agent string          `json:"agent_id"`
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return c, notTheHook(err)
	}
	if in.Event != hookEvent {
		return c, fmt.Errorf("this is not the event %s", hookEvent)
	}
	c = call{Tool: in.Tool, Call: in.ID, Dir: in.Dir, Agent: in.Agent, Input: in.Input}
	return c, c.complete()
}

// notTheHook says which field is of another type than the runtime gives it; values are not shown.
func notTheHook(err error) error {
	if of := (*json.UnmarshalTypeError)(nil); errors.As(err, &of) {
		return fmt.Errorf("the field %s of the hook's input is not what it should be: %s", of.Field, of.Value)
	}
	return errors.New("the hook's input is no JSON")
}

// complete demands what each decision needs.
func (c call) complete() error {
	switch {
	case c.Tool == "":
		return errors.New("the hook's input names no tool")
	case c.Call == "":
		return errors.New("the hook's input has no id of the call")
	case len(c.Input) == 0:
		return errors.New("the hook's input has no input of the tool")
	}
	return nil
}

type hookOutput struct {
	Output hookDecision `json:"hookSpecificOutput"`
}

type hookDecision struct {
	Event    string `json:"hookEventName"`
	Decision string `json:"permissionDecision"`
	Reason   string `json:"permissionDecisionReason"`
}

func allowHook(answer) []byte {
	return object(hookOutput{hookDecision{hookEvent, "allow", "within the task's scope"}})
}

func denyHook(a answer) []byte {
	return object(hookOutput{hookDecision{hookEvent, "deny", a.reason()}})
}

// parsePi reads what Interlock's extension of Pi passes on: Pi's event tool_call, as it is, with
// the working directory.
func parsePi(b []byte) (c call, err error) {
	var in struct {
		Type  string          `json:"type"`
		Tool  string          `json:"toolName"`
		ID    string          `json:"toolCallId"`
		Input json.RawMessage `json:"input"`
		Dir   string          `json:"cwd"`
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return c, notTheHook(err)
	}
	if in.Type != "tool_call" {
		return c, errors.New("this is not the event tool_call")
	}
	c = call{Tool: in.Tool, Call: in.ID, Dir: in.Dir, Input: in.Input}
	return c, c.complete()
}

// parseGeneric reads the documented form, for any runtime with a command hook.
func parseGeneric(b []byte) (c call, err error) {
	var in struct {
		Tool  string          `json:"tool"`
		ID    string          `json:"call"`
		Input json.RawMessage `json:"input"`
		Dir   string          `json:"dir"`
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return c, notTheHook(err)
	}
	c = call{Tool: in.Tool, Call: in.ID, Dir: in.Dir, Input: in.Input}
	return c, c.complete()
}

// plain is the answer of the documented form. Who reads it allows only if the exit code is 0 and
// the object is exactly {"decision":"allow","call":ID} with the id of the call.
type plain struct {
	Decision string `json:"decision"`
	Call     string `json:"call"`
	Reason   string `json:"reason,omitempty"`
}

func allowPlain(a answer) []byte { return object(plain{Decision: "allow", Call: a.call}) }

func denyPlain(a answer) []byte { return object(plain{"deny", a.call, a.reason()}) }

// object is one line of JSON; these shapes cannot fail to become it.
func object(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return append(b, '\n')
}
