package scriptmodel

import (
	"encoding/json"
	"fmt"
	"strings"
)

// messagesRequest is what is read of a request to Anthropic's Messages.
type messagesRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"` // a text, or a list of blocks
	} `json:"messages"`
	Tools []struct {
		Name string `json:"name"`
	} `json:"tools"`
}

type messagesBlock struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"tool_use_id"`
	Failed  bool            `json:"is_error"`
	Content json.RawMessage `json:"content"` // of a result: a text, or a list of blocks
}

func parseMessages(body []byte) (r Request, stream bool, err error) {
	var m messagesRequest
	if err := json.Unmarshal(body, &m); err != nil {
		return r, false, fmt.Errorf("the request is no JSON of Messages: %w", err)
	}
	r = Request{API: Messages, Model: m.Model}
	for _, t := range m.Tools {
		r.Tools = append(r.Tools, Tool{Name: t.Name})
	}
	before := ""
	for _, message := range m.Messages {
		blocks, err := blocksOf(message.Content)
		if err != nil {
			return r, false, err
		}
		if message.Role == "assistant" {
			if before != "assistant" {
				r.Answers++
			}
		} else {
			r.hear(blocks)
		}
		before = message.Role
	}
	return r, m.Stream, nil
}

// hear takes up what one message of the user holds.
func (r *Request) hear(blocks []messagesBlock) {
	var texts []string
	r.Results = nil // those of an earlier answer
	for _, b := range blocks {
		switch b.Type {
		case "text":
			texts = append(texts, b.Text)
		case "tool_result":
			r.Results = append(r.Results, Result{ID: b.ID, Text: textOf(b.Content), Failed: b.Failed})
		}
	}
	r.says(strings.Join(texts, "\n"))
}

// says notes what the user has said.
func (r *Request) says(text string) {
	if text == "" {
		return
	}
	if r.First == "" {
		r.First = text
	}
	r.Last = text
}

// blocksOf reads content that is a text or a list of blocks.
func blocksOf(content json.RawMessage) ([]messagesBlock, error) {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []messagesBlock{{Type: "text", Text: text}}, nil
	}
	var blocks []messagesBlock
	if err := json.Unmarshal(content, &blocks); err != nil {
		return nil, fmt.Errorf("a message's content is neither a text nor a list of blocks: %w", err)
	}
	return blocks, nil
}

// textOf returns the texts of content; what is no text is left out.
func textOf(content json.RawMessage) string {
	blocks, err := blocksOf(content)
	if err != nil {
		return ""
	}
	var texts []string
	for _, b := range blocks {
		if b.Text != "" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}

type object map[string]any

func renderMessages(req Request, a Answer, stream bool) ([]byte, error) {
	reason := "end_turn"
	content := []object{}
	if a.Text != "" {
		content = append(content, object{"type": "text", "text": a.Text})
	}
	for _, c := range a.Calls {
		if !json.Valid(c.Input) {
			return nil, fmt.Errorf("the script's input of %s is no JSON", c.Name)
		}
		reason = "tool_use"
		content = append(content, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": c.Input})
	}
	message := object{
		"id": fmt.Sprintf("msg_%d", req.Answers), "type": "message", "role": "assistant", "model": req.Model,
		"content": content, "stop_reason": reason, "stop_sequence": nil,
		"usage": object{"input_tokens": a.Usage.Input, "output_tokens": a.Usage.Output},
	}
	if !stream {
		return json.Marshal(message)
	}
	return messagesEvents(message, content, reason, a.Usage)
}

// messagesEvents tells a message as the events of a stream.
func messagesEvents(message object, content []object, reason string, u Usage) ([]byte, error) {
	var e events
	begin := object{}
	for k, v := range message {
		begin[k] = v
	}
	begin["content"], begin["stop_reason"] = []object{}, nil
	begin["usage"] = object{"input_tokens": u.Input, "output_tokens": 0}
	e.add("message_start", object{"message": begin})
	for i, block := range content {
		start, delta := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": block["text"]}
		if block["type"] == "tool_use" {
			start = object{"type": "tool_use", "id": block["id"], "name": block["name"], "input": object{}}
			delta = object{"type": "input_json_delta", "partial_json": string(block["input"].(json.RawMessage))}
		}
		e.add("content_block_start", object{"index": i, "content_block": start})
		e.add("content_block_delta", object{"index": i, "delta": delta})
		e.add("content_block_stop", object{"index": i})
	}
	e.add("message_delta", object{"delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": object{"output_tokens": u.Output}})
	e.add("message_stop", object{})
	return e.body, e.err
}

// events collects the events of a stream, and the first error.
type events struct {
	body []byte
	err  error
	next int // the sequence number of the next one
}

// add writes an event; its data gets its type.
func (e *events) add(kind string, data object) {
	data["type"] = kind
	b, err := json.Marshal(data)
	if err != nil {
		e.err = fmt.Errorf("an event %s: %w", kind, err)
	}
	e.body = fmt.Appendf(e.body, "event: %s\ndata: %s\n\n", kind, b)
	e.next++
}
