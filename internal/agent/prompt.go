package agent

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"
	"text/template"
	"unicode"
	"unicode/utf8"
)

// FindingsBytes is how much of the findings of the last attempt a prompt repeats; the tail is kept.
const FindingsBytes = 16 << 10

// PromptData is what a prompt is made of. Title, Body and Findings are untrusted: they are fenced
// and cannot end their fence.
type PromptData struct {
	Issue      int64
	Title      string
	Body       string // cleaned by the caller of what people do not see
	Base       string // branch
	BaseCommit string
	Branch     string // the run's own branch
	Checks     []string
	Protected  []string // paths the run may not touch, as the scope lists them
	Allowed    []string // protected paths this run may touch all the same
	Attempt    int      // from 1
	Attempts   int      // how many there may be
	Findings   string   // why the last attempt was not enough, "" at the first
}

//go:embed prompt.tmpl
var promptText string

var promptTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("prompt").
		Option("missingkey=error").
		Funcs(template.FuncMap{"fence": fence, "line": line}).
		Parse(promptText))
})

// Prompt writes the text an agent is started with. The same data always give the same text.
func Prompt(d PromptData) (string, error) {
	if d.Issue <= 0 || d.Base == "" || d.BaseCommit == "" || d.Branch == "" || d.Attempt <= 0 {
		return "", errors.New("prompt: issue, base, base commit, branch and attempt are needed")
	}
	d.Findings = tail(printable(strings.TrimSpace(d.Findings)), FindingsBytes)
	var b bytes.Buffer
	if err := promptTemplate().Execute(&b, d); err != nil {
		return "", fmt.Errorf("prompt: %w", err)
	}
	return b.String(), nil
}

// fence puts text between two lines of tildes that are longer than any run of tildes in the text,
// so that nothing in the text can end the block.
func fence(text string) string {
	text = printable(text)
	longest, n := 0, 0
	for _, r := range text {
		if n++; r != '~' {
			n = 0
		}
		longest = max(longest, n)
	}
	mark := strings.Repeat("~", max(4, longest+1))
	return mark + "\n" + strings.TrimRight(text, "\n") + "\n" + mark
}

// line shows a value on one line.
func line(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(printable(s))
}

// printable escapes all that a terminal or a reader could take for something else than text.
func printable(s string) string {
	var b strings.Builder
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

// tail keeps the last limit bytes of s, from the start of a line where there is one, and says how
// much is missing.
func tail(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := len(s) - limit
	for cut < len(s) && !utf8.RuneStart(s[cut]) {
		cut++
	}
	if at := strings.IndexByte(s[cut:], '\n'); at >= 0 && at < limit/2 {
		cut += at + 1
	}
	return fmt.Sprintf("[%d bytes left out]\n%s", cut, s[cut:])
}
