package check

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// OutputBytes is how much of a command's output a verdict keeps; the tail is kept.
const OutputBytes = 16 << 10

// tail keeps the end of what is written to it.
type tail struct {
	buf []byte
	cut int64
}

func (t *tail) write(p []byte) {
	if over := len(p) - OutputBytes; over > 0 {
		t.cut += int64(len(t.buf)) + int64(over)
		t.buf = append(t.buf[:0], p[over:]...)
		return
	}
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - OutputBytes; over > OutputBytes {
		t.cut += int64(over)
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
}

// bytes is what was kept, up to twice OutputBytes.
func (t *tail) bytes() []byte { return t.buf }

// text is the kept tail, escaped, from the start of a line where there is one, with a first line
// that says how much is missing.
func (t *tail) text() string {
	s := printable(string(t.buf))
	cut := t.cut
	if over := len(s) - OutputBytes; over > 0 {
		for over < len(s) && !utf8.RuneStart(s[over]) {
			over++
		}
		if at := strings.IndexByte(s[over:], '\n'); at >= 0 && at < OutputBytes/2 {
			over += at + 1
		}
		cut += int64(over)
		s = s[over:]
	}
	s = strings.TrimRight(s, "\n")
	if cut > 0 {
		s = fmt.Sprintf("[about %d bytes left out]\n%s", cut, s)
	}
	return s
}

// printable escapes all that a terminal or a reader could take for something else than text.
func printable(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\r' && strings.HasPrefix(s[i+n:], "\n"):
		case r == '\n' || r == '\t' || unicode.IsGraphic(r):
			b.WriteRune(r)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	return b.String()
}

// oneLine shows a command on one line.
func oneLine(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", " ").Replace(printable(s))
}
