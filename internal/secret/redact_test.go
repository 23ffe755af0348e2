package secret_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"interlock/internal/secret"
)

// redacted is what a text becomes, said in the simplest way: each byte that is in a form of a value is
// taken out, and what overlaps has one mark.
func redacted(text string, values ...string) string {
	starts := make([]int, len(text)+1) // of the longest form that begins there
	for _, v := range values {
		for _, form := range secret.Forms(v) {
			for i := range text {
				if strings.HasPrefix(text[i:], form) && starts[i] < len(form) {
					starts[i] = len(form)
				}
			}
		}
	}
	var out strings.Builder
	for i := 0; i < len(text); {
		if starts[i] == 0 {
			out.WriteByte(text[i])
			i++
			continue
		}
		end := i + starts[i]
		for j := i; j < end; j++ {
			end = max(end, j+starts[j])
		}
		out.WriteString(secret.Mark)
		i = end
	}
	return out.String()
}

// TestRedactor: whatever the values and however the text comes in pieces, it is passed on as if it came
// at once, no value is left, and no more is held back than can begin a value.
func TestRedactor(t *testing.T) {
	t.Parallel()
	word := rapid.StringMatching(`[ab]{8,14}`)
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(word, 1, 4).Draw(t, "values")
		var known []secret.Value
		for _, v := range values {
			known = append(known, secret.Value{Name: "V", Text: v})
		}
		k := secret.New(nil, known...)
		text := strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(values), rapid.StringMatching(`[ab\n ]{0,9}`)), 0, 12).Draw(t, "text"), "")
		var out strings.Builder
		r := k.Redactor(&out)
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if m, err := r.Write([]byte(rest[:n])); err != nil || m != n {
				t.Fatal(m, err)
			}
			rest = rest[n:]
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if want := redacted(text, values...); out.String() != want {
			t.Fatalf("%q becomes %q, want %q", text, out.String(), want)
		}
		if got := k.Redact(text); got != out.String() {
			t.Fatalf("Redact makes %q, the Redactor %q", got, out.String())
		}
	})
}

// TestRedactorHolds: an ordinary line passes at once, the beginning of a value is held until it is
// decided, and an endless chain of values takes no memory.
func TestRedactorHolds(t *testing.T) {
	t.Parallel()
	k := secret.New(nil, secret.Value{Name: "V", Text: "aaaaaaaa"}, secret.Value{Name: "W", Text: "secret-value"})
	var out strings.Builder
	r := k.Redactor(&out)
	for _, c := range []struct{ in, out string }{
		{"plain\n", "plain\n"}, {"x secret-", "x "}, {"vane", "secret-vane"}, {" secret-", " "}, {"value", "secret-vane "}, {"!", " " + secret.Mark + "!"},
	} {
		r.Write([]byte(c.in))
		if !strings.HasSuffix(out.String(), c.out) || strings.HasSuffix(c.in, "secret-") && strings.HasSuffix(out.String(), "-") {
			t.Errorf("after %q: %q", c.in, out.String())
		}
	}
	out.Reset()
	for range 1000 {
		r.Write([]byte(strings.Repeat("a", 1000)))
	}
	r.Close()
	if out.String() != secret.Mark {
		t.Errorf("a million a: %d bytes", out.Len())
	}
	failing := k.Redactor(fails{})
	if n, err := failing.Write([]byte("abc")); n != 3 || err == nil {
		t.Error("the error of the writer behind is lost")
	}
}

type fails struct{}

func (fails) Write([]byte) (int, error) { return 0, errors.New("full") }

// TestRedactBeforeCut: what is cut after it was redacted holds no half of a secret.
func TestRedactBeforeCut(t *testing.T) {
	t.Parallel()
	value := made64(40)
	k := secret.New(nil, secret.Value{Name: "V", Text: value})
	for _, s := range []string{value, token("GitHub token"), signed} {
		text := strings.Repeat("x", 100) + " " + s + " " + strings.Repeat("y", 100)
		whole := k.Redact(text)
		for cut := range len(whole) {
			if strings.Contains(whole[:cut], s[:8]) || strings.Contains(whole[cut:], s[len(s)-8:]) {
				t.Fatalf("cut at %d: a part of a secret is left", cut)
			}
		}
	}
}

// FuzzRedact: no form of a value is left, in one piece or in two; what was redacted has nothing more.
func FuzzRedact(f *testing.F) {
	f.Add("own-value-4711", "x own-value-4711 y", 5)
	f.Add("aaaaaaaab", "aaaaaaaaaaaaaaaaaab", 9)
	f.Add("p@ss w/ord", "p%40ss+w%2Ford cEBzcyB3L29yZA==", 3)
	f.Add("line one\nline two", `"line one\nline two"`, 11)
	f.Add("12345678", token("GitHub token")+signed+begin+"\n"+body, 40)
	f.Fuzz(func(t *testing.T, value, text string, cut int) {
		if len(value) > 1<<10 || len(text) > 1<<14 {
			return
		}
		k := secret.New([]byte("key"), secret.Value{Name: "V", Text: value})
		out := k.Redact(text)
		var pieces strings.Builder
		r := k.Redactor(&pieces)
		cut = max(0, min(cut, len(text)))
		r.Write([]byte(text[:cut]))
		r.Write([]byte(text[cut:]))
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		hits := k.Scan(text)
		value = strings.TrimSpace(value)
		if len(value) < secret.MinValue {
			if pieces.String() != text {
				t.Fatalf("%q becomes %q with nothing to look for", text, pieces.String())
			}
			return
		}
		for _, form := range secret.Forms(value) {
			if meetsMark(form) {
				return // the mark itself, or what is beside it, can complete such a one
			}
			if strings.Contains(out, form) || strings.Contains(pieces.String(), form) {
				t.Fatalf("a form of the value is left of %q: %q, %q", text, out, pieces.String())
			}
			found := false
			for _, h := range hits {
				found = found || h.Own
				if strings.Contains(h.Kind+h.Fingerprint, value) && !strings.Contains("value of V", value) {
					t.Fatalf("a finding repeats the value")
				}
			}
			if strings.Contains(text, form) && !found {
				t.Fatalf("%q is in %q and not found", form, text)
			}
		}
	})
}

// meetsMark reports whether a text overlaps with the mark.
func meetsMark(s string) bool {
	for i := range secret.Mark {
		if strings.HasPrefix(s, secret.Mark[i:]) || strings.HasSuffix(s, secret.Mark[:i+1]) {
			return true
		}
	}
	return strings.Contains(s, secret.Mark) || strings.Contains(secret.Mark, s)
}

// FuzzScan: in two pieces the same is found as in one, and lines are numbered.
func FuzzScan(f *testing.F) {
	for _, samples := range made {
		f.Add("x\n"+samples[0]+"\n", 7)
	}
	for _, s := range []string{signed, begin + "\n" + body, "postgres://app:k8h2j9s0@db.company.io", `x:="` + made64(30), "a1~7Q~", "%3D\\n", "-----BEGIN "} {
		f.Add(s, 3)
	}
	k := secret.New([]byte("key"), secret.Value{Name: "V", Text: "own-value-4711"})
	f.Fuzz(func(t *testing.T, text string, cut int) {
		var hits []secret.Hit
		s := k.Stream(func(h secret.Hit) { hits = append(hits, h) })
		cut = max(0, min(cut, len(text)))
		s.Write([]byte(text[:cut]))
		s.Write([]byte(text[cut:]))
		s.Close()
		want := k.Scan(text)
		if a, b := kinds(hits), kinds(want); strings.Join(a, "\n") != strings.Join(b, "\n") {
			t.Fatalf("%q: %q in pieces, %q at once", text, a, b)
		}
		for _, h := range want {
			if h.Line < 1 || h.Line > strings.Count(text, "\n")+1 || h.Kind == "" || len(h.Fingerprint) != 16 {
				t.Fatalf("%q: %+v", text, h)
			}
		}
		k.Redact(text)
	})
}
