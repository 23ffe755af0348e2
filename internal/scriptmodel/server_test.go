package scriptmodel_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"interlock/internal/scriptmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server that ends with the test.
func serve(t *testing.T, m scriptmodel.Model) *scriptmodel.Server {
	t.Helper()
	s, err := scriptmodel.Start(m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return s
}

// reply is what came back.
type reply struct {
	status int
	header http.Header
	body   []byte
	err    error // of reading the body
}

func ask(t *testing.T, s *scriptmodel.Server, path, body string) reply {
	t.Helper()
	return askWith(t, s, path, body, "X-Api-Key", s.Key)
}

func askWith(t *testing.T, s *scriptmodel.Server, path, body, header, value string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(header, value)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, b, err}
}

// events returns the data of each event of a stream, and demands that event and type are the same.
func (r reply) events(t *testing.T) (kinds []string, data []map[string]any) {
	t.Helper()
	if got := r.header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("the content is %q", got)
	}
	lines := bufio.NewScanner(bytes.NewReader(r.body))
	for lines.Scan() {
		if kind, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kinds = append(kinds, kind)
		}
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var d map[string]any
			if err := json.Unmarshal([]byte(text), &d); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if d["type"] != kinds[len(kinds)-1] {
				t.Errorf("an event %s has the type %v", kinds[len(kinds)-1], d["type"])
			}
			data = append(data, d)
		}
	}
	return kinds, data
}

// at walks into JSON by names and places.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok {
				t.Fatalf("%v: no object at %v", path, p)
			}
			v = m[p]
		case int:
			l, ok := v.([]any)
			if !ok || p >= len(l) {
				t.Fatalf("%v: no place %d in %v", path, p, v)
			}
			v = l[p]
		}
	}
	return v
}

func (r reply) json(t *testing.T) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(r.body, &v); err != nil {
		t.Fatalf("%v: %s", err, r.body)
	}
	return v
}

var (
	write = scriptmodel.Call{Name: "Write", Input: json.RawMessage(`{"file_path":"/w/a \"b\"","content":"x\n"}`)}
	patch = scriptmodel.Call{Name: "apply_patch", Input: json.RawMessage(`"*** Begin Patch\n*** End Patch\n"`)}
	shell = scriptmodel.Call{Name: "exec_command", Input: json.RawMessage(`{"cmd":"touch b"}`)}
)

func TestMessages(t *testing.T) {
	m := scriptmodel.Script(
		scriptmodel.Answer{Text: "I write.", Calls: []scriptmodel.Call{write, write}, Usage: scriptmodel.Usage{Input: 1000, Output: 50}},
		scriptmodel.Answer{Text: "Both are there."})
	s := serve(t, m)
	const tools = `"tools":[{"name":"Write"}]`
	const path = "/v1/messages?beta=true"
	r := ask(t, s, path, `{"model":"m","stream":true,`+tools+`,"messages":[{"role":"user","content":"go"}]}`)
	kinds, data := r.events(t)
	want := []string{
		"message_start", "content_block_start", "content_block_delta", "content_block_stop", "content_block_start", "content_block_delta", "content_block_stop",
		"content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop",
	}
	if d := cmp.Diff(want, kinds); d != "" {
		t.Fatal(d)
	}
	if got := at(t, data[2], "delta", "text"); got != "I write." {
		t.Errorf("the text is %q", got)
	}
	if got := at(t, data[5], "delta", "partial_json"); got != string(write.Input) {
		t.Errorf("the input is %q", got)
	}
	first, second := at(t, data[4], "content_block", "id"), at(t, data[7], "content_block", "id")
	if first == second || first == "" || at(t, data[7], "index") != 2.0 {
		t.Errorf("two calls are %v and %v at %v", first, second, at(t, data[7], "index"))
	}
	if at(t, data[10], "delta", "stop_reason") != "tool_use" || at(t, data[0], "message", "usage", "input_tokens") != 1000.0 || at(t, data[10], "usage", "output_tokens") != 50.0 {
		t.Errorf("the ends are %v and %v", data[0], data[10])
	}
	// The next round, not streaming.
	r = ask(t, s, path, `{"model":"m",`+tools+`,"messages":[{"role":"user","content":[{"type":"text","text":"go"}]},
		{"role":"assistant","content":[{"type":"text","text":"I write."},{"type":"tool_use","id":"a","name":"Write","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"written"},
			{"type":"tool_result","tool_use_id":"b","is_error":true,"content":[{"type":"text","text":"denied"},{"type":"image"}]}]}]}`)
	v := r.json(t)
	if at(t, v, "content", 0, "text") != "Both are there." || at(t, v, "stop_reason") != "end_turn" || at(t, v, "role") != "assistant" {
		t.Errorf("the second answer is %v", v)
	}
	wantSeen := scriptmodel.Request{
		API: scriptmodel.Messages, Model: "m", Tools: []scriptmodel.Tool{{Name: "Write"}}, First: "go", Last: "go", Answers: 1,
		Results: []scriptmodel.Result{{ID: "a", Text: "written"}, {ID: "b", Text: "denied", Failed: true}},
	}
	if d := cmp.Diff(wantSeen, s.Seen()[1].Request); d != "" {
		t.Error(d)
	}
}

func TestResponses(t *testing.T) {
	m := scriptmodel.Script(
		scriptmodel.Answer{Text: "I write.", Calls: []scriptmodel.Call{shell, patch}, Usage: scriptmodel.Usage{Input: 1000, Output: 50}},
		scriptmodel.Answer{Text: "Both are there."})
	s := serve(t, m)
	const tools = `"tools":[{"type":"function","name":"exec_command"},{"type":"custom","name":"apply_patch"},{"type":"web_search"},
		{"type":"namespace","name":"t","tools":[{"type":"function","name":"touch"}]}]`
	const path = "/v1/responses"
	r := askWith(t, s, path, `{"model":"m","stream":true,`+tools+`,"input":"go"}`, "Authorization", "Bearer "+s.Key)
	kinds, data := r.events(t)
	want := []string{
		"response.created", "response.output_item.added", "response.output_text.delta", "response.output_item.done",
		"response.output_item.added", "response.output_item.done", "response.output_item.added", "response.output_item.done", "response.completed",
	}
	if d := cmp.Diff(want, kinds); d != "" {
		t.Fatal(d)
	}
	for i, d := range data {
		if d["sequence_number"] != float64(i) {
			t.Errorf("event %d has the number %v", i, d["sequence_number"])
		}
	}
	if at(t, data[3], "item", "content", 0, "text") != "I write." || at(t, data[5], "item", "arguments") != string(shell.Input) ||
		at(t, data[5], "item", "type") != "function_call" || at(t, data[7], "item", "type") != "custom_tool_call" ||
		at(t, data[7], "item", "input") != "*** Begin Patch\n*** End Patch\n" {
		t.Errorf("the items are %v", data)
	}
	if at(t, data[8], "response", "usage", "total_tokens") != 1050.0 || len(at(t, data[8], "response", "output").([]any)) != 3 {
		t.Errorf("the end is %v", data[8])
	}
	r = ask(t, s, path, `{"model":"m",`+tools+`,"input":[
		{"type":"message","role":"developer","content":[{"type":"input_text","text":"be good"}]},
		{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]},
		{"type":"reasoning"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I write."}]},
		{"type":"function_call","call_id":"a","name":"exec_command","arguments":"{}"},{"type":"custom_tool_call","call_id":"b","name":"apply_patch","input":""},
		{"type":"function_call_output","call_id":"a","output":"done"},{"type":"custom_tool_call_output","call_id":"b","output":[{"type":"input_text","text":"denied"}]}]}`)
	if v := r.json(t); at(t, v, "output", 0, "content", 0, "text") != "Both are there." || at(t, v, "status") != "completed" {
		t.Errorf("the second answer is %v", v)
	}
	wantSeen := scriptmodel.Request{
		API: scriptmodel.Responses, Model: "m", Tools: []scriptmodel.Tool{{Name: "exec_command"}, {Name: "apply_patch", Text: true}, {Name: "t.touch"}},
		First: "be good", Last: "go", Answers: 1, Results: []scriptmodel.Result{{ID: "a", Text: "done"}, {ID: "b", Text: "denied"}},
	}
	got := s.Seen()[1].Request
	if d := cmp.Diff(wantSeen, got); d != "" {
		t.Error(d)
	}
	if !got.Offers("t.touch") || got.Offers("touch") {
		t.Errorf("offers %v", got.Tools)
	}
}

// TestScriptEnds: a conversation that is longer than its script ends, and one without tools is none of it.
func TestScriptEnds(t *testing.T) {
	m := scriptmodel.Script(scriptmodel.Answer{Calls: []scriptmodel.Call{write}})
	if a := m(scriptmodel.Request{Tools: []scriptmodel.Tool{{Name: "Write"}}, Answers: 1}); len(a.Calls) != 0 || a.Text == "" {
		t.Errorf("after its end the script says %+v", a)
	}
	if a := m(scriptmodel.Request{}); len(a.Calls) != 0 || a.Text == "" {
		t.Errorf("a request for a title gets %+v", a)
	}
}

// TestKey: only who shows the key is answered, and what was sent without it is noted.
func TestKey(t *testing.T) {
	s := serve(t, func(scriptmodel.Request) scriptmodel.Answer {
		t.Error("the model was asked")
		return scriptmodel.Answer{}
	})
	other := serve(t, scriptmodel.Script())
	for _, key := range []string{"", "Bearer ", other.Key} {
		if r := askWith(t, s, "/v1/messages", `{"messages":[]}`, "Authorization", key); r.status != http.StatusUnauthorized || at(t, r.json(t), "error", "type") != "authentication_error" {
			t.Errorf("with the key %q: %d %s", key, r.status, r.body)
		}
	}
	if seen := s.Seen(); len(seen) != 3 || slices.ContainsFunc(seen, func(s scriptmodel.Seen) bool { return s.Key }) {
		t.Errorf("seen: %+v", seen)
	}
}

// TestFaults: errors in the form of each protocol, and a connection that is cut.
func TestFaults(t *testing.T) {
	fault := scriptmodel.Answer{Fail: &scriptmodel.Failure{Status: 429, Kind: "rate_limit_error", Text: "slowly", RetryAfter: 3 * time.Second}}
	s := serve(t, func(r scriptmodel.Request) scriptmodel.Answer {
		switch r.Model {
		case "busy":
			return fault
		case "cut":
			return scriptmodel.Answer{Text: strings.Repeat("long ", 100), Cut: 40}
		case "short":
			return scriptmodel.Answer{Text: "short", Cut: 1 << 20}
		}
		return scriptmodel.Answer{Calls: []scriptmodel.Call{{Name: "Write", Input: json.RawMessage(`{`)}}}
	})
	for path, kind := range map[string][]any{"/v1/messages": {"type"}, "/v1/responses": {"error", "code"}} {
		r := ask(t, s, path, `{"model":"busy","stream":true}`)
		want := map[string]any{"/v1/messages": "error", "/v1/responses": "rate_limit_error"}[path]
		if r.status != 429 || r.header.Get("Retry-After") != "3" || at(t, r.json(t), "error", "message") != "slowly" || at(t, r.json(t), kind...) != want {
			t.Errorf("%s busy: %d %s", path, r.status, r.body)
		}
		if r := ask(t, s, path, `{"model":"cut","stream":true}`); r.status != 200 || len(r.body) != 40 || !errors.Is(r.err, io.ErrUnexpectedEOF) {
			t.Errorf("%s cut: %d, %d bytes, %v", path, r.status, len(r.body), r.err)
		}
		if r := ask(t, s, path, `{"model":"short"}`); r.err != nil || !strings.Contains(string(r.body), "short") {
			t.Errorf("%s short: %s, %v", path, r.body, r.err)
		}
		for _, stream := range []string{"true", "false"} {
			if r := ask(t, s, path, `{"model":"bad script","stream":`+stream+`}`); r.status != 500 || !strings.Contains(string(r.body), "Write") {
				t.Errorf("%s bad script: %d %s", path, r.status, r.body)
			}
		}
		for _, body := range []string{``, `[]`, `{"messages":[{"role":"user","content":3}],"input":3}`, `{"messages":3,"input":[3]}`} {
			if r := ask(t, s, path, body); r.status != 400 || at(t, r.json(t), "error", "message") == "" {
				t.Errorf("%s %s: %d %s", path, body, r.status, r.body)
			}
		}
	}
	if r := ask(t, s, "/v1/models", ""); r.status != 404 || !strings.Contains(string(r.body), "/v1/models") {
		t.Errorf("an unknown path: %d %s", r.status, r.body)
	}
	if r := ask(t, s, "/v1/messages/count_tokens", `{"messages":[]}`); r.status != 200 || at(t, r.json(t), "input_tokens") == 0.0 {
		t.Errorf("counted: %d %s", r.status, r.body)
	}
	if r := ask(t, s, "/v1/messages", strings.Repeat(" ", 33<<20)); r.status != 413 {
		t.Errorf("33 MiB: %d %.100s", r.status, r.body)
	}
}

// TestTextInput: a script that gives an object to a tool that takes a text is wrong, and is told so.
func TestTextInput(t *testing.T) {
	s := serve(t, scriptmodel.Script(scriptmodel.Answer{Calls: []scriptmodel.Call{{Name: "apply_patch", Input: json.RawMessage(`{}`)}}}))
	if r := ask(t, s, "/v1/responses", `{"tools":[{"type":"custom","name":"apply_patch"}]}`); r.status != 500 || !strings.Contains(string(r.body), "apply_patch") {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestDelay: an answer that is late comes late, and a client that has gone holds nothing up.
func TestDelay(t *testing.T) {
	s := serve(t, func(r scriptmodel.Request) scriptmodel.Answer {
		return scriptmodel.Answer{Text: "late", Delay: map[string]time.Duration{"a little": 50 * time.Millisecond, "for ever": time.Hour}[r.Model]}
	})
	begun := time.Now()
	if r := ask(t, s, "/v1/messages", `{"model":"a little"}`); r.status != 200 || time.Since(begun) < 50*time.Millisecond {
		t.Errorf("%d after %v", r.status, time.Since(begun))
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/v1/messages", strings.NewReader(`{"model":"for ever"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", s.Key)
	client := http.Client{Timeout: 50 * time.Millisecond}
	if res, err := client.Do(req); err == nil {
		res.Body.Close()
		t.Error("an answer that never comes has come")
	} // that its goroutine ends is goleak's to see
	client.CloseIdleConnections()
}
