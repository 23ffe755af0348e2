package secret_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"interlock/internal/secret"
)

// No secret stands in this file: all are made when it runs, or the file could not be pushed.
//
// made are the samples of all shapes.
var made = secret.Samples(rand.New(rand.NewPCG(1, 2)).IntN)

func token(kind string) string { return made[kind][0] }

// text of n characters as a machine makes it.
func made64(n int) string {
	const chars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	b := make([]byte, n)
	dice := rand.New(rand.NewPCG(uint64(n), 7)) // the same for the same length
	for i := range b {
		b[i] = chars[dice.IntN(len(chars))]
	}
	return string(b)
}

func webToken(header, payload, signature string) string {
	enc := base64.RawURLEncoding
	return enc.EncodeToString([]byte(header)) + "." + enc.EncodeToString([]byte(payload)) + "." + enc.EncodeToString([]byte(signature))
}

var (
	signed = webToken(`{"alg":"HS256","typ":"JWT"}`, `{"sub":"4711","iat":1516239022}`, "0123456789abcdefABCDEF##")
	body   = "MIIEpAIBAAKCAQEA" + made64(48)
	ed     = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW"
)

const begin, end = "-----BEGIN RSA PRIVATE" + " KEY-----", "-----END RSA PRIVATE" + " KEY-----"

func kinds(hits []secret.Hit) (all []string) {
	for _, h := range hits {
		all = append(all, fmt.Sprintf("%d %s", h.Line, h.Kind))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestShapes: each shape is found where it stands in the usual ways, named by its kind and its line,
// and taken out; what is one character short of it is not.
func TestShapes(t *testing.T) {
	t.Parallel()
	k := secret.New([]byte("key"))
	for kind, samples := range made {
		for _, s := range samples {
			for _, around := range []string{"%s", "token = %q\n", "https://x:%s@host", "a\\n%s\\n", "q=%%3D%s&b", "(%s)", "AUTH=%s"} {
				text := "first\n" + fmt.Sprintf(around, s)
				if got := kinds(k.Scan(text)); !slices.Contains(got, "2 "+kind) {
					t.Errorf("%s in %q: found %q", kind, around, got)
				}
				if out := k.Redact(text); strings.Contains(out, s) || !strings.Contains(out, secret.Mark) {
					t.Errorf("%s in %q: left %d bytes", kind, around, len(out))
				}
			}
			if got := kinds(k.Scan(s[:len(s)-1])); slices.Contains(got, "1 "+kind) {
				t.Errorf("%s without its last character is found", kind)
			}
			if got := k.Scan("x" + s); kind != "secret in an assignment" && len(got) > 0 && strings.HasPrefix(got[0].Kind, kind) {
				t.Errorf("%s within a word is found", kind)
			}
		}
	}
	if len(made) < 25 {
		t.Errorf("%d kinds only", len(made))
	}
}

// TestOtherShapes: what is no prefix and body.
func TestOtherShapes(t *testing.T) {
	t.Parallel()
	k := secret.New([]byte("key"))
	for name, c := range map[string]struct{ text, want string }{
		"web token":              {"Bearer " + signed, "1 JSON web token"},
		"web token, long":        {webToken(`{"alg":"RS256"}`, `{"a":"`+made64(9000)+`"}`, made64(256)), "1 JSON web token"},
		"Azure":                  {"x='a1~7Q~" + "Zk3_" + made64(29) + "'", "1 Azure client secret"},
		"key":                    {begin + "\n" + body + "\n" + end, "1 private key"},
		"key in a comment":       {"x\n// " + begin + "\n// " + body + "\n", "2 private key"},
		"key with headers":       {begin + "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n" + made64(64) + "\n" + end, "1 private key"},
		"key in one line":        {`{"private": "` + begin + `\n` + body + `\n` + end + `"}`, "1 private key"},
		"key without its armour": {"const key = `" + body, "1 private key"},
		"key of Ed25519":         {ed, "1 private key"},
		"URL":                    {"postgres://app:k87" + made64(8) + "@db.company.io:5432/x", "1 password in a URL"},
		"assignment":             {`password := "` + made64(20) + `7z9"`, "1 secret in an assignment"},
		"assignment in JSON":     {`{"clientSecret": "` + made64(24) + `7z9"}`, "1 secret in an assignment"},
		"assignment in a file":   {"export DEPLOY_TOKEN=" + made64(24) + "7z9\n", "1 secret in an assignment"},
		"token of a forge":       {"GITEA_TOKEN=" + "3f786850e387550fdab836ed7e6dc881" + "de23001b", "1 secret in an assignment"},
	} {
		if got := kinds(k.Scan(c.text)); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: found %q", name, got)
		}
		if out := k.Redact(c.text); len(k.Scan(out)) > 0 || !strings.Contains(out, secret.Mark) {
			t.Errorf("%s: something is left: %q", name, kinds(k.Scan(out)))
		}
	}
	if out := k.Redact("a\n" + begin + "\n" + body + "\n" + made64(64) + "\n" + end + "\nb"); out != "a\n"+secret.Mark+"\nb" {
		t.Errorf("a key is taken out as %q", out)
	}
}

// TestNoSecrets: what stands in the place of a secret, and what only looks like one.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	k := secret.New([]byte("key"), secret.Value{Name: "SHORT", Text: "1234567"}, secret.Value{Name: "NONE"})
	for _, text := range []string{
		"ghp_" + strings.Repeat("x", 36), "ghp_" + "EXAMPLE" + made64(29), "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "ghp_" + strings.Repeat("ab12", 9),
		"AKIA" + "IOSFODNN7EXAMPLE", "XAKIA" + "QWERTZUIOPLKJHGF", "AKIA" + "QWERTZUIOPLKJHGFX",
		begin, begin + "\n...\n" + end, `if strings.HasPrefix(s, "` + begin + `") {` + "\n\treturn " + made64(10) + "\n}",
		"-----BEGIN CERTIFICATE-----\n" + made64(64) + "\n", "MIIDazCCAlOgAwIBAgIUE" + made64(50),
		webToken(`{"alg":"none"}`, `{"a":1}`, made64(32)), webToken(`{"typ":"JWT"}`, `{"a":1}`, made64(32)), "eyJhbGciOiJIUzI1NiJ9",
		"https://user:password@host.company.io", "https://user:k8h2j9s0x7@localhost:80", "https://user:k8h2j9s0x7@db:80", "https://user:k8h2j9s0x7@example.com",
		"https://user:${SECRET7k8}@host.company.io", "https://host.company.io/a:b@c", "://", "a://b:c@",
		`password = "correct horse battery staple"`, `password = "correct-horse-battery-staple"`, `token = "` + made64(12) + `"`,
		`token_count = "` + made64(30) + `7z9"`, `token = os.Getenv("` + made64(30) + `7z9")`, "token: " + made64(30) + "7z9", "1234567",
	} {
		if got := k.Scan(text); len(got) > 0 {
			t.Errorf("%q is %v", text, got)
		}
		if got := k.Redact(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// TestValues: a value of this installation is found as it stands and encoded, with a fingerprint that
// says nothing without the key.
func TestValues(t *testing.T) {
	t.Parallel()
	value := `p@ss "w/ord" ÿ+&` + made64(7)
	k := secret.New([]byte("key"), secret.Value{Name: "OTHER", Text: "other-value-7"}, secret.Value{Name: "MODEL_KEY", Text: value + "\n"})
	if !k.Values() || secret.New(nil).Values() {
		t.Error("Values")
	}
	quoted, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"plain": value, "within": "x" + value + "y", "query": url.QueryEscape(value), "path": url.PathEscape(value),
		"lower": strings.ToLower(url.QueryEscape("@")) + url.QueryEscape(value)[3:], "JSON": string(quoted), "hex": fmt.Sprintf("%x", value),
		"base64, 0": base64.StdEncoding.EncodeToString([]byte(value)), "base64, 1": base64.StdEncoding.EncodeToString([]byte("x" + value + "z")),
		"base64, 2": base64.URLEncoding.EncodeToString([]byte("xy" + value + "zz")), "base64, user": base64.StdEncoding.EncodeToString([]byte("user:" + value)),
	} {
		hits := k.Scan("a\nb " + text + " c\n")
		if name == "lower" {
			continue // only where all escapes are
		}
		if len(hits) == 0 || hits[0].Kind != "value of MODEL_KEY" || hits[0].Line != 2 || !hits[0].Own {
			t.Errorf("%s: %v", name, hits)
			continue
		}
		if strings.Contains(fmt.Sprint(hits), value) {
			t.Errorf("%s: a finding holds the value", name)
		}
		if again := k.Scan(value)[0].Fingerprint; again != hits[0].Fingerprint || len(again) != 16 {
			t.Errorf("%s: fingerprint %q, and %q", name, hits[0].Fingerprint, again)
		}
		if out := k.Redact(text); strings.Contains(out, text) || !strings.Contains(out, secret.Mark) {
			t.Errorf("%s: not taken out", name)
		}
	}
	other := secret.New([]byte("another"), secret.Value{Name: "MODEL_KEY", Text: value})
	if other.Scan(value)[0].Fingerprint == k.Scan(value)[0].Fingerprint {
		t.Error("the fingerprint does not depend on the key")
	}
	if a, b := k.Scan(token("npm token")), k.Scan("x="+token("npm token")); a[0].Fingerprint != b[0].Fingerprint || a[0].Entry() != "fingerprint:"+a[0].Fingerprint {
		t.Error("the same token has two fingerprints")
	}
	long := made64(100)
	k = secret.New([]byte("key"), secret.Value{Name: "LONG", Text: long})
	wrapped := base64.StdEncoding.EncodeToString([]byte("HOME=/root\nMODEL_KEY=" + long + "\n"))
	wrapped = wrapped[:76] + "\n" + wrapped[76:152] + "\r\n" + wrapped[152:]
	if got := k.Scan(wrapped); len(got) != 1 || got[0].Line != 3 || !got[0].Own {
		t.Errorf("broken into lines: %v", got)
	}
	lines := "first-line-77\nsecond-line"
	k = secret.New(nil, secret.Value{Name: "LINES", Text: lines})
	if got := kinds(k.Scan("x\n" + lines + "\n")); len(got) != 1 {
		t.Errorf("a value of two lines: %q", got)
	}
}

// TestStreamInPieces: however a text is cut into writes, the same is found.
func TestStreamInPieces(t *testing.T) {
	t.Parallel()
	value := "own-value-" + made64(8)
	k := secret.New([]byte("key"), secret.Value{Name: "V", Text: value})
	parts := []string{value, "\n", " ", begin, "\n" + body + "\n", signed, strings.Repeat("x", 50), `token = "` + made64(24) + `77"`, base64.StdEncoding.EncodeToString([]byte("a" + value))}
	for _, samples := range made {
		parts = append(parts, samples[0])
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 12).Draw(t, "parts"), rapid.SampledFrom([]string{"", " ", "\n"}).Draw(t, "between"))
		want := kinds(k.Scan(text))
		var hits []secret.Hit
		s := k.Stream(func(h secret.Hit) { hits = append(hits, h) })
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, min(len(rest), 40)).Draw(t, "n")
			if _, err := s.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		s.Close()
		if got := kinds(hits); !slices.Equal(got, want) {
			t.Fatalf("%q in pieces, %q at once", got, want)
		}
	})
}

// TestStreamLongLine: in a line of any length a secret is found once, wherever the window ends.
func TestStreamLongLine(t *testing.T) {
	t.Parallel()
	k := secret.New([]byte("key"), secret.Value{Name: "V", Text: "own-value-4711"})
	for _, s := range []string{token("GitHub token"), "own-value-4711", signed, "a1~7Q~" + made64(33), `password="` + made64(30) + `7z9"`} {
		for at := secret.Window - secret.LookAhead - 60; at < secret.Window-secret.LookAhead+20; at += 3 {
			check(t, k, s, at)
		}
		for at := 2*secret.Window - 2*len(s); at < 2*secret.Window+20; at += 11 {
			check(t, k, s, at)
		}
	}
}

func check(t *testing.T, k *secret.Known, s string, at int) {
	t.Helper()
	text := strings.Repeat(".", at-1) + " " + s + " " + strings.Repeat(".", 3*secret.Window) + "\n" + s
	if hits := k.Scan(text); len(hits) != 2 || hits[0].Line != 1 || hits[1].Line != 2 || hits[0].Fingerprint != hits[1].Fingerprint {
		t.Fatalf("at %d: %v", at, hits)
	}
}

// TestBegin: a piece goes on from nothing that was before.
func TestBegin(t *testing.T) {
	t.Parallel()
	k := secret.New(nil, secret.Value{Name: "V", Text: "own-value-4711"})
	var hits []secret.Hit
	s := k.Stream(func(h secret.Hit) { hits = append(hits, h) })
	s.Write([]byte("own-value"))
	s.Begin(40)
	s.Write([]byte("-4711\n" + begin + "\n"))
	s.Begin(90)
	s.Write([]byte("\n" + strings.Repeat("Ab1/cD2+", 8) + "\nown-value-4711"))
	s.Close()
	if got := kinds(hits); !slices.Equal(got, []string{"92 value of V"}) {
		t.Errorf("%q", got)
	}
}

// TestIsLinear: texts that make a careless matcher look at each byte many times.
func TestIsLinear(t *testing.T) {
	t.Parallel()
	k := secret.New([]byte("key"), secret.Value{Name: "V", Text: strings.Repeat("ab", 2000) + "c"}, secret.Value{Name: "W", Text: strings.Repeat("a", 3000)})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, piece := range []string{"eyJ", "-eyJ", ".eyJ", "://", "=", `="`, ":", "ghp_", "sk-", "AKIA", "Q~", "1Q~", "-----BEGIN ", begin, "ab", "a", "token=", "%3D", "SG.", "MII", "+MII", "-ya29.", "\n", "https://a:b"} {
			text := strings.Repeat(piece, (1<<20)/len(piece))

			k.Scan(text)
			k.Redact(text)
			r := k.Redactor(&strings.Builder{})
			r.Write([]byte(text))
			r.Close()
		}
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatal("not done after two minutes")
	}
}

func BenchmarkScan(b *testing.B) {
	k := secret.New([]byte("key"), secret.Value{Name: "V", Text: made64(40)}, secret.Value{Name: "W", Text: made64(100)})
	text := strings.Repeat("\tfor i, c := range fields[1 : d.columns+2] { // one for each parent, in order\n", 1<<17)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s := k.Stream(func(secret.Hit) {})
		s.Write([]byte(text))
		s.Close()
	}
}
