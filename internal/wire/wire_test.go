package wire_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"interlock/internal/wire"
)

const good = `{"v":1,"id":"a","ok":true,"body":{"x":[1,{"y":null}]}}` + "\n"

// TestFrames: exactly one object and one newline is a reply; each other thing is an error of its kind.
func TestFrames(t *testing.T) {
	t.Parallel()
	if r, err := wire.DecodeReply([]byte(good), "a"); err != nil || !r.OK || string(r.Body) != `{"x":[1,{"y":null}]}` {
		t.Fatalf("%+v, %v", r, err)
	}
	deep := strings.Repeat(`[`, wire.MaxDepth) + strings.Repeat(`]`, wire.MaxDepth)
	for name, c := range map[string]struct {
		frame string
		kind  wire.Kind
	}{
		"nothing":              {"", wire.Empty},
		"no newline":           {strings.TrimSuffix(good, "\n"), wire.Truncated},
		"half":                 {good[:20], wire.Truncated},
		"a newline alone":      {"\n", wire.Malformed},
		"two newlines":         {good + "\n", wire.Trailing},
		"two replies":          {good + good, wire.Trailing},
		"a blank behind":       {good + " ", wire.Trailing},
		"a NUL behind":         {good + "\x00", wire.Trailing},
		"a newline inside":     {strings.Replace(good, `,"ok"`, ",\n\"ok\"", 1), wire.Trailing},
		"a log line first":     {"hello\n" + good, wire.Trailing},
		"two objects":          {strings.TrimSuffix(good, "\n") + good, wire.Malformed},
		"a text":               {"ok\n", wire.Malformed},
		"a list":               {"[]\n", wire.Malformed},
		"null":                 {"null\n", wire.Malformed},
		"an empty object":      {"{}\n", wire.Malformed},
		"another version":      {`{"v":2,"id":"a","ok":true}` + "\n", wire.Malformed},
		"another id":           {`{"v":1,"id":"b","ok":true}` + "\n", wire.Malformed},
		"no id":                {`{"v":1,"ok":true}` + "\n", wire.Malformed},
		"an unknown field":     {`{"v":1,"id":"a","ok":true,"allow":true}` + "\n", wire.Malformed},
		"ok twice":             {`{"v":1,"id":"a","ok":false,"ok":true}` + "\n", wire.Malformed},
		"ok in two cases":      {`{"v":1,"id":"a","ok":true,"OK":true}` + "\n", wire.Malformed},
		"twice, long s":        {`{"v":1,"id":"a","ok":true,"body":{"s":1,"ſ":2}}` + "\n", wire.Malformed},
		"twice, Kelvin":        {`{"v":1,"id":"a","ok":true,"body":{"k":1,"K":2}}` + "\n", wire.Malformed},
		"twice, escaped":       {`{"v":1,"id":"a","ok":true,"body":[{"k":1,"\u006b":2}]}` + "\n", wire.Malformed},
		"ok is a text":         {`{"v":1,"id":"a","ok":"true"}` + "\n", wire.Malformed},
		"no code":              {`{"v":1,"id":"a","ok":false}` + "\n", wire.Malformed},
		"an unknown code":      {`{"v":1,"id":"a","ok":false,"code":"SURE"}` + "\n", wire.Malformed},
		"granted and refused":  {`{"v":1,"id":"a","ok":true,"code":"PAUSED"}` + "\n", wire.Malformed},
		"granted with a why":   {`{"v":1,"id":"a","ok":true,"why":"no"}` + "\n", wire.Malformed},
		"no UTF-8":             {"{\"v\":1,\"id\":\"a\",\"ok\":true,\"next\":\"\xff\"}\n", wire.Malformed},
		"a NUL":                {"{\"v\":1,\"id\":\"a\",\"ok\":true,\"next\":\"\x00\"}\n", wire.Malformed},
		"an escaped NUL":       {`{"v":1,"id":"a","ok":true,"next":"\u0000"}` + "\n", wire.Malformed},
		"half a pair":          {`{"v":1,"id":"a","ok":true,"next":"\ud800"}` + "\n", wire.Malformed},
		"the other half":       {`{"v":1,"id":"a","ok":true,"next":"\udc00x"}` + "\n", wire.Malformed},
		"halves apart":         {`{"v":1,"id":"a","ok":true,"next":"\ud83dx\ude00"}` + "\n", wire.Malformed},
		"halves, a quote":      {`{"v":1,"id":"a","ok":true,"next":"\ud83d\"\ude00"}` + "\n", wire.Malformed},
		"two first halves":     {`{"v":1,"id":"a","ok":true,"next":"\ud83d\ud83d\ude00"}` + "\n", wire.Malformed},
		"too deep":             {`{"v":1,"id":"a","ok":true,"body":` + deep + "}\n", wire.Malformed},
		"endlessly deep":       {`{"v":1,"id":"a","ok":true,"body":` + strings.Repeat(`[`, 400_000) + "\n", wire.Malformed},
		"a comma too much":     {`{"v":1,"id":"a","ok":true,}` + "\n", wire.Malformed},
		"a byte-order mark":    {"\ufeff" + good, wire.Malformed},
		"more than is allowed": {`{"v":1,"id":"a","ok":true,"next":"` + strings.Repeat("x", wire.MaxReply) + "\"}\n", wire.Oversized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := wire.DecodeReply([]byte(c.frame), "a")
			var e *wire.FrameError
			if !errors.As(err, &e) || e.Kind != c.kind || r.OK {
				t.Fatalf("%+v, %v, want %s", r, err, c.kind)
			}
			sum := sha256.Sum256([]byte(c.frame))
			if e.Attempts != 1 || e.Length != len(c.frame) || e.SHA256 != hex.EncodeToString(sum[:]) || len(e.Hex) > 512 {
				t.Errorf("%+v", e)
			}
			if want := c.frame[:min(256, len(c.frame))]; e.Hex != hex.EncodeToString([]byte(want)) {
				t.Errorf("the hex is %s of %q", e.Hex, want)
			}
		})
	}
	for text, want := range map[string]string{`\ud83d\ude00`: "😀", `\\ud800`: `\ud800`, `\\\\u0000`: `\\u0000`, `\u00e9`: "é"} {
		if r, err := wire.DecodeReply([]byte(`{"v":1,"id":"a","ok":true,"next":"`+text+"\"}\n"), "a"); err != nil || r.Next != want {
			t.Errorf("%s is read as %q, %v", text, r.Next, err)
		}
	}
	within := `{"v":1,"id":"a","ok":true,"body":` + deep[1:len(deep)-1] + "}\n"
	if _, err := wire.DecodeReply([]byte(within), "a"); err != nil {
		t.Errorf("as deep as is allowed: %v", err)
	}
}

// TestRequests: what is asked is checked as strictly as what is answered.
func TestRequests(t *testing.T) {
	t.Parallel()
	want := wire.Request{Version: wire.Version, ID: "a-1", Op: "decide", Body: json.RawMessage(`{"tool":"Write","text":"a\nb"}`)}
	frame, err := wire.Encode(want, wire.MaxRequest)
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.DecodeRequest(frame)
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Error(err, d)
	}
	for _, bad := range []string{
		`{"v":1,"id":"","op":"x"}`, `{"v":1,"id":"a b","op":"x"}`, `{"v":1,"id":"a\u001b","op":"x"}`, `{"v":1,"id":"` + strings.Repeat("a", 129) + `","op":"x"}`,
		`{"v":1,"id":"a","op":""}`, `{"v":0,"id":"a","op":"x"}`, `{"v":1,"id":"a","op":"x","token":"t"}`, `[]`,
	} {
		if r, err := wire.DecodeRequest([]byte(bad + "\n")); err == nil {
			t.Errorf("%s is read as %+v", bad, r)
		}
	}
	for _, bad := range []any{func() {}, wire.Request{Body: json.RawMessage(`{`)}, wire.Request{ID: strings.Repeat("x", wire.MaxRequest)}} {
		if b, err := wire.Encode(bad, wire.MaxRequest); err == nil {
			t.Errorf("%.50v was encoded as %.50s", bad, b)
		}
	}
	exact := wire.Request{ID: strings.Repeat("x", wire.MaxRequest-len(`{"v":0,"id":"","op":""}`)-1)}
	if b, err := wire.Encode(exact, wire.MaxRequest); err != nil || len(b) != wire.MaxRequest {
		t.Errorf("as long as is allowed: %d, %v", len(b), err)
	}
}

// TestCodes: each has a sentence and a next step, and a refusal with it is read back as one.
func TestCodes(t *testing.T) {
	t.Parallel()
	all := wire.Codes()
	if len(all) != 14 {
		t.Errorf("there are %d codes", len(all))
	}
	for _, c := range all {
		if c.Means() == "" || !strings.HasSuffix(c.Next(), ".") {
			t.Errorf("%s means %q, next %q", c, c.Means(), c.Next())
		}
		frame, err := wire.Encode(wire.Refuse("a", c, "because"), wire.MaxReply)
		if err != nil {
			t.Fatal(err)
		}
		r, err := wire.DecodeReply(frame, "a")
		if err != nil || r.OK || r.Code != c || r.Why != "because" || r.Next != c.Next() {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if wire.Code("").Known() || wire.Code("paused").Known() {
		t.Error("the set is not closed")
	}
}

const token = wire.TokenPrefix + "S3cr3t-Value_9"

// TestRedact: no secret comes through, whole, cut off, escaped or in JSON in JSON.
func TestRedact(t *testing.T) {
	t.Parallel()
	for _, c := range []string{
		`{"token":"S3cr3t"}`, `{"token" : "S3cr3t`, `{"Promotion_Token":"S3cr3t"}`, `{"token":"a\"S3cr3t"}`, `{"token":"a\\\"S3cr3t"}`,
		`{"why":"{\"token\":\"S3cr3t\"}"}`, `{"why":"{\"token\":\"a\\\"S3cr3t\"}"}`, `"secret":"\\S3cr3t"`, `password=S3cr3t`, "Authorization: Bearer S3cr3t\nx",
		`{"token":["S3cr3t"]}`, `{"apiKey":"S3cr3t"}`, `{"token":"","secret":"S3cr3t"}`, `"token token":"S3cr3t"`, `{"tokentoken":"S3cr3t"`, `x"token": "S3cr3t"`,
		token, "x" + token + "x", token + " " + token, `"` + token[:len(token)-3], wire.TokenPrefix + "S3cr3t" + wire.TokenPrefix + "S3cr3t",
	} {
		got := string(wire.Redact([]byte(c)))
		if strings.Contains(got, "S3c") || strings.Contains(got, "cr3t") || !strings.Contains(got, "[redacted]") {
			t.Errorf("%s is shown as %s", c, got)
		}
	}
	for _, c := range []string{``, `{"id":"a","ok":true}`, `the token was used`, `"token"`, `"tokens", "x": "y"`, `interlock-tok`} {
		if got := string(wire.Redact([]byte(c))); got != c {
			t.Errorf("%q is shown as %q", c, got)
		}
	}
	if got := string(wire.Redact([]byte(`{"a":"b","token":"S3cr3t","c":"d"}`))); got != `{"a":"b","token":"[redacted]","c":"d"}` {
		t.Errorf("what is around a secret is not kept: %s", got)
	}
}

// TestSecretAtTheCut: a secret that straddles the end of what is shown is taken out first.
func TestSecretAtTheCut(t *testing.T) {
	t.Parallel()
	for pad := range 256 {
		for _, secret := range []string{token, `"token":"S3cr3t-Value_9"`} {
			frame := []byte(strings.Repeat("x", pad) + secret + strings.Repeat("y", 50))
			_, err := wire.DecodeReply(frame, "a")
			var e *wire.FrameError
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			shown, herr := hex.DecodeString(e.Hex)
			all := e.Error() + e.Text + string(shown)
			if herr != nil || strings.Contains(all, "S3") || strings.Contains(all, "cr3t") || strings.Contains(all, "Value_9") {
				t.Fatalf("behind %d bytes: %s", pad, all)
			}
			if e.Length != len(frame) {
				t.Errorf("the length is %d", e.Length)
			}
		}
	}
}

// TestRedactIsLinear: the worst text that is allowed is looked at in the time of a few passes, not
// of a pass for each byte, which would take hours.
func TestRedactIsLinear(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	for _, unit := range []string{`"`, `"token`, `"token":`, `"token":"`, `token=`, `\`, `"token\`, `token `, wire.TokenPrefix, `"token":"\`, "token\"\n", "[", "secret:["} {
		data := bytes.Repeat([]byte(unit), size/len(unit))
		done := make(chan int, 1)
		go func() { done <- len(wire.Redact(data)) }()
		select {
		case <-done:
		case <-time.After(2 * time.Minute):
			t.Fatalf("%q takes for ever", unit)
		}
	}
}

// TestSmall: the gate is made of this package, so it may not bring in what is large or slow to start.
func TestSmall(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	for _, large := range []string{"net", "net/http", "crypto/tls", "regexp", "os/exec", "text/template", "log"} {
		if slices.Contains(deps, large) {
			t.Errorf("package %s is brought in", large)
		}
	}
	for _, d := range deps {
		if strings.Contains(strings.SplitN(d, "/", 2)[0], ".") || strings.HasPrefix(d, "interlock/") && d != "interlock/internal/wire" {
			t.Errorf("%s is not the standard library", d)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{good, "", "{}\n", good + good, `{"v":1,"id":"a","op":"x","body":"interlock-token-x"}` + "\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		r, err := wire.DecodeReply(frame, "a")
		q, qerr := wire.DecodeRequest(frame)
		if err == nil && qerr == nil {
			t.Fatalf("%q is a reply and a request", frame)
		}
		for _, e := range []error{err, qerr} {
			if e != nil && strings.Contains(e.Error(), "S3cr3t") && bytes.Contains(frame, []byte(wire.TokenPrefix+"S3cr3t")) {
				t.Fatalf("shown: %v", e)
			}
		}
		if err == nil {
			again(t, frame, r, func(b []byte) (wire.Reply, error) { return wire.DecodeReply(b, "a") })
		}
		if qerr == nil {
			again(t, frame, q, wire.DecodeRequest)
		}
	})
}

// again demands that what was read is the same when it is written and read again, and that one
// byte more or less is not taken for it.
func again[T any](t *testing.T, frame []byte, v T, read func([]byte) (T, error)) {
	t.Helper()
	b, err := wire.Encode(v, wire.MaxRequest)
	if err != nil {
		t.Fatalf("%q was read as %+v, and cannot be written: %v", frame, v, err)
	}
	got, err := read(b)
	if err != nil || fmt.Sprintf("%+v", compact(got)) != fmt.Sprintf("%+v", compact(v)) {
		t.Fatalf("%+v became %+v, %v", v, got, err)
	}
	if _, err := read(b[:len(b)-1]); err == nil {
		t.Fatal("a frame without its newline was read")
	}
	if _, err := read(append(b, 'x')); err == nil {
		t.Fatal("a frame that something follows was read")
	}
}

// compact takes blanks out of bodies.
func compact(v any) any {
	squeeze := func(b json.RawMessage) json.RawMessage {
		var out bytes.Buffer
		if json.Compact(&out, b) != nil {
			return b
		}
		var same bytes.Buffer // as encoding/json writes it
		json.HTMLEscape(&same, out.Bytes())
		return same.Bytes()
	}
	switch v := v.(type) {
	case wire.Reply:
		v.Body = squeeze(v.Body)
		return v
	case wire.Request:
		v.Body = squeeze(v.Body)
		return v
	}
	return v
}
