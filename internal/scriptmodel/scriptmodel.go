// Package scriptmodel is a model endpoint on loopback that says what a script says. A coding agent
// that is pointed at it can be seen to do, and to be kept from doing, exactly the calls of the
// script: no model is asked, and no key leaves the machine. It speaks Anthropic's Messages and
// OpenAI's Responses, streaming or not, and fails as the script has it: with an error, late, or cut
// off in mid-answer.
package scriptmodel

import (
	"encoding/json"
	"time"
)

// An API is a protocol that the endpoint speaks.
type API string

// The protocols, by the path that a request of theirs ends in.
const (
	Messages  API = "messages"  // Anthropic
	Responses API = "responses" // OpenAI
)

// Request is what of a request decides the answer, in one shape for both protocols.
type Request struct {
	API     API
	Model   string   // the model that was asked for
	Tools   []Tool   // what the agent offers
	First   string   // the text that the conversation begins with, instructions of the agent's own included
	Last    string   // the newest text that the user, or the agent in the user's name, has said
	Answers int      // how many answers this conversation has had before
	Results []Result // what the calls of the last answer came to
}

// Tool is a tool that the agent offers.
type Tool struct {
	Name string
	Text bool // its input is one text, not an object (Responses: "custom")
}

// Result is what a call came to, as the agent tells the model.
type Result struct {
	ID     string // of the call
	Text   string
	Failed bool // said by Messages only; Responses has no such field
}

// Offers reports whether a tool of this name is offered.
func (r Request) Offers(name string) bool {
	_, ok := r.tool(name)
	return ok
}

func (r Request) tool(name string) (Tool, bool) {
	for _, t := range r.Tools {
		if t.Name == name {
			return t, true
		}
	}
	return Tool{}, false
}

// Answer is one answer of the model.
type Answer struct {
	Text  string // comes before the calls; may be empty
	Calls []Call
	Usage Usage
	Delay time.Duration // before the first byte of the answer
	Fail  *Failure      // instead of text and calls
	// Cut ends the connection after so many bytes of the body, if it is longer; 0 lets it end by itself.
	Cut int
}

// Call is a call of a tool. ID may be empty: then the endpoint makes one that no other call has.
type Call struct {
	ID    string
	Name  string
	Input json.RawMessage // an object; for a tool whose input is a text, a JSON string
}

// Usage is what the answer is said to have cost, in tokens.
type Usage struct{ Input, Output int }

// Failure is an error in the form of the protocol.
type Failure struct {
	Status     int    // of HTTP
	Kind       string // the protocol's word, such as overloaded_error
	Text       string
	RetryAfter time.Duration // whole seconds are sent; 0 for none
}

// Model answers requests. It is called by many goroutines at once.
type Model func(Request) Answer

// Script answers each conversation with one answer after the other, and then says that it is done.
// A request that offers no tool is none of the conversation: agents ask for titles and summaries
// beside it. It gets a short text.
func Script(answers ...Answer) Model {
	return func(r Request) Answer {
		if len(r.Tools) == 0 {
			return Answer{Text: "A task."}
		}
		if r.Answers < len(answers) {
			return answers[r.Answers]
		}
		return Answer{Text: "Done."}
	}
}
