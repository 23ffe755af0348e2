// Package wire is what the broker and its clients say to each other: one JSON object and one
// newline each way, over a Unix socket, one request for a connection. It imports the standard library
// alone, and none of its large parts, because the program that hooks of agents start is made of it.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The caps. A frame is a request or a reply with its newline.
const (
	MaxRequest = 4 << 20 // bytes: the input of a tool call may hold a whole file
	MaxReply   = 1 << 20 // bytes
	MaxDepth   = 64      // of objects and lists in each other
)

// Version is the version of the protocol that both sides speak. A peer of another one is refused.
const Version = 1

// Request asks the broker for one thing.
type Request struct {
	Version int    `json:"v"`
	ID      string `json:"id"` // chosen by the client; the same id asks for the same thing again
	Op      string `json:"op"`
	// Body is what the operation needs; its shape is the operation's.
	Body json.RawMessage `json:"body,omitempty"`
}

// Reply is the broker's whole answer to a request. Either OK is true, or Code says why not.
type Reply struct {
	Version int             `json:"v"`
	ID      string          `json:"id"` // that of the request
	OK      bool            `json:"ok"`
	Body    json.RawMessage `json:"body,omitempty"`
	Code    Code            `json:"code,omitempty"`
	Why     string          `json:"why,omitempty"`  // one sentence for a person or an agent
	Next    string          `json:"next,omitempty"` // what to do; empty for the code's own
}

// Refuse is a reply that refuses a request, with the code's own next step.
func Refuse(id string, code Code, why string) Reply {
	return Reply{Version: Version, ID: id, Code: code, Why: why, Next: code.Next()}
}

// Encode makes a frame of a request or reply: JSON on one line, and a newline.
func Encode(v any, most int) ([]byte, error) {
	b, err := json.Marshal(v) // writes no newline of its own
	if err != nil {
		return nil, fmt.Errorf("a message that is no JSON: %w", err)
	}
	if len(b) >= most {
		return nil, fmt.Errorf("a message of %d bytes, at most %d are allowed", len(b)+1, most)
	}
	return append(b, '\n'), nil
}

// DecodeRequest reads the frame of a request. What a frame may not be is a *FrameError.
func DecodeRequest(frame []byte) (r Request, err error) {
	if err := decode(frame, MaxRequest, &r); err != nil {
		return Request{}, err
	}
	switch {
	case r.Version != Version:
		return Request{}, wrong(Malformed, frame, "it speaks version %d of the protocol, and this is version %d", r.Version, Version)
	case r.ID == "" || len(r.ID) > 128 || strings.ContainsFunc(r.ID, unprintable):
		return Request{}, wrong(Malformed, frame, "its id is empty, too long, or not plain text")
	case r.Op == "":
		return Request{}, wrong(Malformed, frame, "it asks for nothing")
	}
	return r, nil
}

// DecodeReply reads the frame of the reply to the request with this id. What a frame may not be is
// a *FrameError: it is never a refusal of the broker, and never an approval.
func DecodeReply(frame []byte, id string) (r Reply, err error) {
	if err := decode(frame, MaxReply, &r); err != nil {
		return Reply{}, err
	}
	switch {
	case r.Version != Version:
		return Reply{}, wrong(Malformed, frame, "it speaks version %d of the protocol, and this is version %d", r.Version, Version)
	case r.ID != id:
		return Reply{}, wrong(Malformed, frame, "it answers another request")
	case r.OK && (r.Code != "" || r.Why != ""):
		return Reply{}, wrong(Malformed, frame, "it grants and refuses at once")
	case !r.OK && !r.Code.Known():
		return Reply{}, wrong(Malformed, frame, "it refuses with a code that does not exist")
	}
	return r, nil
}

func unprintable(r rune) bool { return r <= ' ' || r > '~' }

// decode demands exactly one object and one newline, in this order, and nothing else: a frame that
// is cut off, or that something follows, is not taken for what its beginning says.
func decode(frame []byte, most int, v any) error {
	end := bytes.IndexByte(frame, '\n')
	switch {
	case len(frame) == 0:
		return wrong(Empty, frame, "nothing came")
	case len(frame) > most:
		return wrong(Oversized, frame, "at most %d bytes are allowed", most)
	case end < 0:
		return wrong(Truncated, frame, "it does not end with a newline")
	case end != len(frame)-1:
		return wrong(Trailing, frame, "something follows its newline")
	}
	body := frame[:end]
	if err := Strict(body); err != nil {
		return wrong(Malformed, frame, "%v", err)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return wrong(Malformed, frame, "%v", err)
	}
	return nil
}

// Strict demands one JSON object that every reader understands the same way: UTF-8, no NUL, no half
// of a surrogate pair, no name twice in an object (also not in another case, which encoding/json
// takes for the same), no more than MaxDepth objects and lists in each other, and nothing behind it.
// Its errors name no value.
func Strict(b []byte) error {
	if !utf8.Valid(b) {
		return errors.New("it is not UTF-8")
	}
	if err := escapes(b); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	first, err := d.Token()
	if err != nil {
		return notJSON(err)
	}
	if first != json.Delim('{') {
		return errors.New("it is not an object")
	}
	if err := walk(d); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the object")
	}
	return nil
}

// escapes refuses what readers make different things of: a NUL, where some end the text, and half of
// a surrogate pair, which some keep and others replace.
func escapes(b []byte) error {
	if bytes.IndexByte(b, 0) >= 0 {
		return errors.New("it holds a NUL")
	}
	high := false // the escape just before was the first half of a pair
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			if high {
				return errHalf
			}
			continue
		}
		i++ // whatever is escaped
		if i+4 >= len(b) || b[i] != 'u' {
			if high {
				return errHalf
			}
			continue
		}
		unit, err := strconv.ParseUint(string(b[i+1:i+5]), 16, 16)
		i += 4
		switch low := unit >= 0xdc00 && unit < 0xe000; {
		case err != nil:
			return errors.New("it holds an escape that is none")
		case unit == 0:
			return errors.New("it holds a NUL")
		case low != high:
			return errHalf
		}
		high = unit >= 0xd800 && unit < 0xdc00
	}
	return nil
}

var errHalf = errors.New("it holds half of a surrogate pair")

// notJSON leaves out what the decoder quotes of the text.
func notJSON(err error) error {
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return fmt.Errorf("it is no JSON from byte %d on", syntax.Offset)
	}
	return errors.New("it is no whole JSON")
}

// walk reads to the end of the object that has just begun. It keeps its own stack: how deep a text
// goes is not to decide how deep this program does.
func walk(d *json.Decoder) error {
	stack := []map[string]bool{{}} // names of each open object; nil for a list
	name := true                   // whether a name comes next, in an object
	for len(stack) > 0 {
		t, err := d.Token()
		if err != nil {
			return notJSON(err)
		}
		open := stack[len(stack)-1]
		switch t {
		case json.Delim('{'), json.Delim('['):
			if len(stack) == MaxDepth {
				return fmt.Errorf("it goes deeper than %d", MaxDepth)
			}
			var names map[string]bool
			if t == json.Delim('{') {
				names = map[string]bool{}
			}
			stack, name = append(stack, names), true
			continue
		case json.Delim('}'), json.Delim(']'):
			stack, name = stack[:len(stack)-1], true
			continue
		}
		if open != nil && name {
			folded := fold(t.(string)) // the decoder has seen to it that a name is a string
			if open[folded] {
				return errors.New("it holds a name twice in one object")
			}
			open[folded] = true
			name = false
			continue
		}
		name = true
	}
	return nil
}

// fold makes names equal that encoding/json takes for the same.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case 'ſ': // folds to s
			return 's'
		case 'K': // the Kelvin sign folds to k
			return 'k'
		}
		return r
	}, strings.ToLower(s))
}
