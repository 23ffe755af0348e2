package text_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"interlock/internal/text"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"plain", "Grüße, 世界 \t\n", "Grüße, 世界 \t\n"},
		{"color and title", "\x1b[31mred\x1b]0;title\a", `\x1b[31mred\x1b]0;title\x07`},
		{"overwrites the line", "good\rbad\b", `good\x0dbad\x08`},
		{"C1 control", "a\u009bb\u0085", `a\u009bb\u0085`},
		{"DEL and NUL", "a\x7fb\x00", `a\x7fb\x00`},
		{"turns the text around", "a\u202eb\u2066c\u200f", `a\u202eb\u2066c\u200f`},
		{"cannot be seen", "a\u200bb\ufeffc\u2060", `a\u200bb\ufeffc\u2060`},
		{"tags", "a\U000e0041", `a\U000e0041`},
		{"separators", "a\u2028b\u2029", `a\u2028b\u2029`},
		{"not UTF-8", "a\xffb\xc3", `a\xffb\xc3`},
		{"the replacement character itself", "a\ufffd", "a\ufffd"},
		{"joiners of scripts and emoji", "می\u200cخواهم 👩\u200d💻", "می\u200cخواهم 👩\u200d💻"},
	} {
		if got := text.Clean(c.in); got != c.want {
			t.Errorf("%s: Clean(%q) = %q, want %q", c.name, c.in, got, c.want)
		}
	}
	if got, want := text.Line("a\nb\tc\x1b"), `a\nb\tc\x1b`; got != want {
		t.Errorf("Line = %q, want %q", got, want)
	}
}

// TestWriterInPieces: however a log is cut into writes, it is shown as if it came at once.
func TestWriterInPieces(t *testing.T) {
	t.Parallel()
	const in = "ä€𝄞\x1b[2J\u202e世\xe4\xbd end \xf0\x9f"
	for size := 1; size < len(in); size++ {
		var b bytes.Buffer
		w := &text.Writer{To: &b}
		for i := 0; i < len(in); i += size {
			if n, err := w.Write([]byte(in[i:min(len(in), i+size)])); err != nil || n != min(size, len(in)-i) {
				t.Fatalf("Write = %d, %v", n, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text.Clean(in), b.String()); diff != "" {
			t.Errorf("in writes of %d bytes (-want +got):\n%s", size, diff)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[31m\u202e\xff")
	f.Fuzz(func(t *testing.T, in string) {
		got := text.Clean(in)
		if !utf8.ValidString(got) {
			t.Errorf("Clean(%q) = %q is not UTF-8", in, got)
		}
		if strings.ContainsAny(got, "\x1b\r\b\a\x00\x7f\u202e\u2066\u009b") {
			t.Errorf("Clean(%q) = %q can harm a terminal", in, got)
		}
		if again := text.Clean(got); again != got {
			t.Errorf("Clean twice: %q, then %q", got, again)
		}
	})
}

// TestJSON: what is written cannot harm a terminal, and reads back as what it was.
func TestJSON(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"<a> & b", "a\u202eb\u009b", "tag \U000e0041", "esc \x1b", "del \x7f", "two\nlines\t"} {
		var b bytes.Buffer
		if err := text.JSON(&b, map[string]string{"v": in}); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != text.Clean(got) || strings.Count(got, "\n") != 1 {
			t.Errorf("JSON(%q) = %q", in, got)
		}
		var back map[string]string
		if err := json.Unmarshal(b.Bytes(), &back); err != nil || back["v"] != in {
			t.Errorf("JSON(%q) reads back as %q, %v", in, back["v"], err)
		}
	}
	var b bytes.Buffer
	if err := text.List[int](&b, nil); err != nil || b.String() != "[]\n" {
		t.Errorf("List(nil) = %q, %v, want []", b.String(), err)
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	got := text.QuoteAll([]string{"run", "--checks", "go test ./...", "it's", "", "$HOME", "a;b", "~"})
	want := `run --checks 'go test ./...' 'it'\''s' '' '$HOME' 'a;b' '~'`
	if got != want {
		t.Errorf("QuoteAll = %s, want %s", got, want)
	}
}

func TestTableAndShort(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	table := text.NewTable(&b, "N", "TITLE")
	table.Row("1", "two\nlines")
	table.Row("22", text.Short("ääääääääää", 6))
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	want := "N   TITLE\n1   two\\nlines\n22  äää...\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 5 << 30: "5.0 GiB", 1 << 62: "4194304.0 TiB"} {
		if got := text.Size(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// TestNearest: a slip of the fingers is told what was meant, another word is not.
func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"open", "closed", "all"}
	for typed, want := range map[string]string{
		"opn": "open", "OPEN": "open", "oepn": "open", "closde": "closed", "close": "closed", "al": "all", "a": "", "": "", "ajar": "", "merged": "",
		strings.Repeat("x", 100): "",
	} {
		if got := text.Nearest(typed, known...); got != want {
			t.Errorf("%q is taken for %q, want %q", typed, got, want)
		}
	}
	if got := text.Known("opn", known...); got != "known are open, closed and all; did you mean open?" {
		t.Error(got)
	}
	if got := text.Known("ajar", known...); got != "known are open, closed and all" {
		t.Error(got)
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"abc", "", 3}, {"abc", "acb", 1}, {"kitten", "sitting", 3}, {"ü", "u", 1}} {
		if got := text.Distance(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
