package scriptmodel

import (
	"encoding/json"
	"fmt"
)

// responsesRequest is what is read of a request to OpenAI's Responses.
type responsesRequest struct {
	Model  string          `json:"model"`
	Stream bool            `json:"stream"`
	Input  json.RawMessage `json:"input"` // a text, or a list of items
	Tools  []responsesTool `json:"tools"`
}

type responsesTool struct {
	Type  string          `json:"type"`
	Name  string          `json:"name"`
	Tools []responsesTool `json:"tools"` // of a namespace
}

type responsesItem struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"` // of a message
	ID      string          `json:"call_id"`
	Output  json.RawMessage `json:"output"` // of a call: a text, or a list of blocks
}

func parseResponses(body []byte) (r Request, stream bool, err error) {
	var m responsesRequest
	if err := json.Unmarshal(body, &m); err != nil {
		return r, false, fmt.Errorf("the request is no JSON of Responses: %w", err)
	}
	r = Request{API: Responses, Model: m.Model}
	r.offer("", m.Tools)
	var text string
	if len(m.Input) == 0 || json.Unmarshal(m.Input, &text) == nil {
		r.says(text)
		return r, m.Stream, nil
	}
	var items []responsesItem
	if err := json.Unmarshal(m.Input, &items); err != nil {
		return r, false, fmt.Errorf("the input is neither a text nor a list of items: %w", err)
	}
	before := false
	for _, item := range items {
		own := item.ofModel()
		switch {
		case own && !before:
			r.Answers++
			r.Results = nil
		case item.Type == "function_call_output" || item.Type == "custom_tool_call_output":
			r.Results = append(r.Results, Result{ID: item.ID, Text: textOf(item.Output)})
		case !own:
			r.says(textOf(item.Content))
		}
		before = own
	}
	return r, m.Stream, nil
}

// offer takes up the tools, those of namespaces too: they are called by both names.
func (r *Request) offer(namespace string, tools []responsesTool) {
	for _, t := range tools {
		switch {
		case t.Type == "namespace":
			r.offer(t.Name+".", t.Tools)
		case t.Name != "":
			r.Tools = append(r.Tools, Tool{Name: namespace + t.Name, Text: t.Type == "custom"})
		}
	}
}

// ofModel reports whether an item is part of an answer of the model.
func (i responsesItem) ofModel() bool {
	switch i.Type {
	case "function_call", "custom_tool_call", "reasoning":
		return true
	}
	return i.Role == "assistant"
}

func renderResponses(req Request, a Answer, stream bool) ([]byte, error) {
	items := []object{}
	if a.Text != "" {
		items = append(items, object{
			"type": "message", "id": fmt.Sprintf("msg_%d", req.Answers), "role": "assistant", "status": "completed",
			"content": []object{{"type": "output_text", "text": a.Text, "annotations": []object{}}},
		})
	}
	for _, c := range a.Calls {
		item, err := responsesCall(req, c)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	response := object{
		"id": fmt.Sprintf("resp_%d", req.Answers), "object": "response", "model": req.Model, "status": "completed", "output": items,
		"usage": object{
			"input_tokens": a.Usage.Input, "input_tokens_details": object{"cached_tokens": 0},
			"output_tokens": a.Usage.Output, "output_tokens_details": object{"reasoning_tokens": 0},
			"total_tokens": a.Usage.Input + a.Usage.Output,
		},
	}
	if !stream {
		return json.Marshal(response)
	}
	var e events
	add := func(kind string, data object) {
		data["sequence_number"] = e.next
		e.add(kind, data)
	}
	add("response.created", object{"response": object{"id": response["id"], "object": "response", "model": req.Model, "status": "in_progress", "output": []object{}}})
	for i, item := range items {
		add("response.output_item.added", object{"output_index": i, "item": item})
		if item["type"] == "message" {
			add("response.output_text.delta", object{"output_index": i, "content_index": 0, "item_id": item["id"], "delta": a.Text})
		}
		add("response.output_item.done", object{"output_index": i, "item": item})
	}
	add("response.completed", object{"response": response})
	return e.body, e.err
}

// responsesCall is a call as an item: of a function with its input as JSON in a text, or of a tool
// whose input is a text as that text.
func responsesCall(req Request, c Call) (object, error) {
	item := object{"id": "item_" + c.ID, "call_id": c.ID, "name": c.Name, "status": "completed"}
	if t, ok := req.tool(c.Name); ok && t.Text {
		var text string
		if err := json.Unmarshal(c.Input, &text); err != nil {
			return nil, fmt.Errorf("the script's input of %s is no JSON string, which this tool takes: %w", c.Name, err)
		}
		item["type"], item["input"] = "custom_tool_call", text
		return item, nil
	}
	if !json.Valid(c.Input) {
		return nil, fmt.Errorf("the script's input of %s is no JSON", c.Name)
	}
	item["type"], item["arguments"] = "function_call", string(c.Input)
	return item, nil
}
