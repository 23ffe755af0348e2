package forge_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"interlock/internal/forge"
)

func TestCleanText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"plain":                 {"Fix the bug\n\n\tin `a.go`", "Fix the bug\n\n\tin `a.go`"},
		"comment":               {"a<!-- run rm -->b", "ab"},
		"comment over lines":    {"a\n<!--\nrun\nrm\n-->\nb", "a\n\nb"},
		"unterminated":          {"a <!-- run rm", "a "},
		"opener by removal":     {"a<!<!-- x -->-- hidden -->b", "ab"},
		"opener by removal, 2":  {"a<<!-- x -->!<!-- y -->-- hidden -->b", "ab"},
		"opener in hidden":      {"a<\u200b!\u202e-\u00ad- hidden -->b", "ab"},
		"opener by removed end": {"<!<!---->--x", ""},
		"early end is no end":   {"a<!--> hidden -->b", "ab"},
		"arrow stays":           {"a --> b, a <- b, <b>", "a --> b, a <- b, <b>"},
		"bidi":                  {"a\u202eb\u2066c\u2069d\u200fe", "abcde"},
		"zero width":            {"a\u200bb\u200cc\u200dd\ufeffe\u00adf\u2060g", "abcdefg"},
		"tags":                  {"a\U000E0001\U000E0041\U000E007Fb", "ab"},
		"variation selectors":   {"a\ufe0f\U000E0100\U000E01EFb", "ab"},
		"fillers":               {"a\u3164\u115f\u034f\uffa0b", "ab"},
		"controls":              {"a\x00\x07\x1b[31m\x7f\u009bb", "a[31mb"},
		"line ends":             {"a\r\nb\rc\u2028d", "a\nb\nc\nd"},
		"not UTF-8":             {"a\xff\xfeb", "a\ufffd\ufffdb"},
		"languages":             {"Größe 数 עברית ñ 🎉", "Größe 数 עברית ñ 🎉"},
		"empty":                 {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := forge.CleanText(c.in); got != c.want {
				t.Errorf("CleanText(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

// Nested openers must not cost more than one pass: at the square of this length the test would
// not end.
func TestCleanTextIsLinear(t *testing.T) {
	t.Parallel()
	const n = 300_000
	in := strings.Repeat("<!", n) + strings.Repeat("<!-- -->-- -->", n)
	if got := forge.CleanText(in); strings.Contains(got, "<!--") {
		t.Error("an opener survived")
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	if got := forge.OneLine(" a\n\tb<!-- c -->\u202e  d ", 80); got != "a b d" {
		t.Errorf("got %q", got)
	}
	if got := forge.OneLine(strings.Repeat("ü", 300), 10); got != strings.Repeat("ü", 9)+"…" {
		t.Errorf("got %q", got)
	}
}

func TestTaskDigest(t *testing.T) {
	t.Parallel()
	if forge.TaskDigest("ab", "c") == forge.TaskDigest("a", "bc") {
		t.Error("title and body run into each other")
	}
	// printf 'a\0b' | sha256sum
	if got := forge.TaskDigest("a", "b"); got != "59b271ae1bbcb1d31d41929817f4b16fb439eb4f31520b5ad1d5ce98920a7138" {
		t.Errorf("got %s", got)
	}
}

func FuzzCleanText(f *testing.F) {
	for _, s := range []string{"", "a<!<!-- x -->-- y -->b", "<!-->", "\u202e<\u200b!--", "a\xffb\r\n", "<!--<!---->-->"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := forge.CleanText(s)
		if !utf8.ValidString(got) {
			t.Fatalf("not UTF-8: %q", got)
		}
		if strings.Contains(got, "<!--") {
			t.Fatalf("an opener survived: %q", got)
		}
		if strings.ContainsAny(got, "\x00\x1b\r\u200b\u202e\u2066\ufeff\u00ad\U000E0041") {
			t.Fatalf("a hidden character survived: %q", got)
		}
		if again := forge.CleanText(got); again != got {
			t.Fatalf("not idempotent: %q, then %q", got, again)
		}
	})
}
