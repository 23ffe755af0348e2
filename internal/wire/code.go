package wire

// Code says why the broker, or the gate for want of one, refuses. The set is closed.
type Code string

// The codes. Nothing else is ever said.
const (
	Busy             Code = "BROKER_BUSY"
	GateUnavailable  Code = "GATE_UNAVAILABLE"
	NotPromoted      Code = "NOT_PROMOTED"
	Fenced           Code = "FENCED"
	Expired          Code = "EXPIRED"
	Paused           Code = "PAUSED"
	Halted           Code = "HALTED"
	OutOfScope       Code = "OUT_OF_SCOPE"
	ForbiddenCommand Code = "FORBIDDEN_COMMAND"
	UnknownTool      Code = "UNKNOWN_TOOL"
	UnknownSession   Code = "UNKNOWN_SESSION"
	WrongCaller      Code = "WRONG_CALLER"
	BadRequest       Code = "BAD_REQUEST"
	Conflict         Code = "CONFLICT"
)

// codes has what each code means, and what whoever is refused can do.
var codes = map[Code]struct{ means, next string }{
	Busy:             {"the broker had no time, and has done nothing", "Ask again."},
	GateUnavailable:  {"whether this is allowed could not be found out, so it is not", "Look at the operator's logs: interlock logs RUN. Nothing was changed."},
	NotPromoted:      {"this session may only read yet", "Wait until the session is promoted; reading is allowed."},
	Fenced:           {"somebody else holds the work by now", "Stop. What was done so far is kept."},
	Expired:          {"the authority of this session has run out", "Stop. What was done so far is kept."},
	Paused:           {"a person has paused this", "Stop and wait; a person resumes it: interlock resume RUN."},
	Halted:           {"this is halted until a person approves", "Stop; a person looks at it: interlock show RUN."},
	OutOfScope:       {"the task does not cover this path or tool", "Do it another way, within the scope: interlock task show."},
	ForbiddenCommand: {"no agent may call this", "Do without it; docs/agents.md has what an agent may call."},
	UnknownTool:      {"nobody has said what this tool does, so it counts as one that changes things", "Use a tool that is known."},
	UnknownSession:   {"the broker knows no such session", "Nothing can be done from here; the run starts a new one."},
	WrongCaller:      {"this is not for the process that asks", "Ask from inside the session, or as the operator from outside of it."},
	BadRequest:       {"the request is not one that the broker understands", "Send what the protocol says; nothing was done."},
	Conflict:         {"this request id was used for something else before", "Use a new id for a new request."},
}

// Codes returns all codes, in no particular order.
func Codes() []Code {
	all := make([]Code, 0, len(codes))
	for c := range codes {
		all = append(all, c)
	}
	return all
}

// Known reports whether a code is one of the set.
func (c Code) Known() bool {
	_, ok := codes[c]
	return ok
}

// Means returns what a code says, as half a sentence.
func (c Code) Means() string { return codes[c].means }

// Next returns what whoever is refused can do, as a sentence.
func (c Code) Next() string { return codes[c].next }
