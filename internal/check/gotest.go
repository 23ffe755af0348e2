package check

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"interlock/internal/testcount"
)

// goTest finds `go test` as two words of a shell line, also after -C, a path or a version of go.
// Group 1 is what comes before, group 2 ends where flags begin.
var goTest = regexp.MustCompile("(^|[\\s;&|(){}!/'\"`])(?:go(?:tip|1(?:\\.[0-9a-z]+)+)?(?:(?:\\s|\\\\\\n)+-C(?:=|(?:\\s|\\\\\\n)+)[^\\s;&|()'\"`]+)?(?:\\s|\\\\\\n)+test)($|[\\s;&|(){}'\"`\\\\<>])")

// shellString finds where a quoted string is itself a shell line: after -c and its like, and
// after eval.
var shellString = regexp.MustCompile(`(?:^|\s)(?:-[a-zA-Z]*c|eval)\s+$`)

// withJSON returns the line with -json as the first flag of each `go test`, and whether there was
// one. The flag is put there and not into GOFLAGS, because GOFLAGS reaches every other go command
// too: `go vet -json` always succeeds, and tests that call `go list` or `go env` break.
func withJSON(line string) (string, bool) {
	quotes := quotedParts(line)
	var b strings.Builder
	from := 0
	for at := 0; at < len(line); {
		m := goTest.FindStringSubmatchIndex(line[at:])
		if m == nil {
			break
		}
		start, end := at+m[3], at+m[4]
		if isCommand(line, quotes, start) {
			b.WriteString(line[from:end])
			b.WriteString(" -json")
			from = end
		}
		at = end
	}
	b.WriteString(line[from:])
	return b.String(), from > 0
}

// part is a quoted string or a comment of a line; start is where it opens.
type part struct{ start, end int }

// isCommand reports whether what stands at a place of the line is executed, as far as can be told:
// text in quotes and comments is not, unless it is a line for another shell.
func isCommand(line string, parts []part, at int) bool {
	for _, p := range parts {
		if p.start <= at && at < p.end {
			return line[p.start] != '#' && shellString.MatchString(line[:p.start]) || substituted(line[p.start:at])
		}
	}
	return true
}

// substituted reports whether a double-quoted string is inside a command substitution at its end.
func substituted(s string) bool {
	return strings.HasPrefix(s, `"`) && strings.LastIndex(s, "$(") > strings.LastIndex(s, ")")
}

// quotedParts lists the quoted strings and comments of a shell line, in order.
func quotedParts(line string) []part {
	var out []part
	for i := 0; i < len(line); i++ {
		end := -1
		switch c := line[i]; {
		case c == '\\':
			i++
			continue
		case c == '\'':
			end = strings.IndexByte(line[i+1:], '\'')
		case c == '"':
			end = closing(line[i+1:])
		case c == '#' && (i == 0 || strings.IndexByte(" \t\n;&|(", line[i-1]) >= 0):
			end = strings.IndexByte(line[i+1:], '\n')
		default:
			continue
		}
		p := part{i, len(line)}
		if end >= 0 {
			p.end = i + 1 + end + 1
		}
		out = append(out, p)
		i = p.end - 1
	}
	return out
}

// closing finds the double quote that ends a string, -1 if none does.
func closing(s string) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// event is one line of `go test -json` (see `go doc test2json`); build events are of `go build
// -json`.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
}

var actions = []string{"start", "run", "pause", "cont", "pass", "bench", "fail", "output", "skip", "attr", "artifacts",
	"build-output", "build-fail"}

// stream reads what `go test -json` printed, with anything else in between.
type stream struct {
	ran     map[testKey]bool // each test once, however often it ran; whether it never failed
	skipped map[testKey]bool
	all     tail                 // readable text
	bad     tail                 // the same without what passed
	held    map[testKey]*holding // text of tests and packages that are not decided yet
	order   int
	printed *testcount.Text // what other runners printed
}

type testKey struct{ pkg, test string }

type holding struct {
	order int
	text  tail
}

func newStream() *stream {
	return &stream{ran: map[testKey]bool{}, skipped: map[testKey]bool{}, held: map[testKey]*holding{}, printed: testcount.NewText()}
}

// lineBytes is how much of one line is read as an event; the rest of a longer line is text.
const lineBytes = 8 << 20

// read consumes r to its end.
func (s *stream) read(r io.Reader) error {
	br := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	for {
		chunk, err := br.ReadSlice('\n')
		line = append(line, chunk...)
		if errors.Is(err, bufio.ErrBufferFull) && len(line) < lineBytes {
			continue
		}
		if len(line) > 0 {
			s.line(line)
			line = line[:0]
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			s.finish()
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// line takes one line.
func (s *stream) line(line []byte) {
	e, before, ok := eventIn(line)
	if len(before) > 0 {
		s.printed.Line(before)
		s.print(before)
	}
	if ok {
		s.event(e)
	}
}

// eventIn finds the event of a line, and what stands before it: another program may have written to
// the same descriptor without ending its line, so that an event begins in the middle. Without an
// event all of the line stands before it. A line can be made of beginnings of events: of those in the
// middle only the first few are tried that are no longer than an event can be.
func eventIn(line []byte) (e event, before []byte, ok bool) {
	at := bytes.IndexByte(line, '{')
	for tries, first := 0, true; at >= 0 && tries < eventTries; first = false {
		if first || len(line)-at <= eventBytes {
			if e, ok := decode(line[at:]); ok {
				return e, line[:at], true
			}
			tries++
		}
		next := bytes.Index(line[at+1:], []byte(`{"`))
		if next < 0 {
			break
		}
		at += 1 + next
		if !bytes.HasPrefix(line[at:], []byte(`{"Time":"`)) && !bytes.HasPrefix(line[at:], []byte(`{"Action":"`)) &&
			!bytes.HasPrefix(line[at:], []byte(`{"ImportPath":"`)) {
			break
		}
	}
	return event{}, line, false
}

const (
	eventBytes = 64 << 10 // of an event; go cuts what a test prints at 4 KiB, and each byte takes six at most
	eventTries = 5
)

func decode(line []byte) (event, bool) {
	var e event
	if !bytes.Contains(line, []byte(`"Action"`)) || json.Unmarshal(line, &e) != nil || !slices.Contains(actions, e.Action) {
		return event{}, false
	}
	return e, true
}

func (s *stream) event(e event) {
	key := testKey{e.Package, e.Test}
	switch e.Action {
	case "output":
		if !noise(e.Output) {
			s.hold(key, e.Output)
		}
	case "build-output":
		s.print([]byte(e.Output))
	case "pass":
		s.decide(key, true)
		if before, ran := s.ran[key]; e.Test != "" && (before || !ran) {
			s.ran[key] = true
		}
	case "skip":
		s.decide(key, true)
		if e.Test != "" {
			s.skipped[key] = true
		}
	case "fail":
		if e.Test != "" {
			s.ran[key] = false
		} else {
			s.undecided(e.Package)
		}
		s.decide(key, false)
	}
}

// noise is what `go test` prints only because -json makes it verbose.
func noise(text string) bool {
	for _, p := range []string{"=== RUN ", "=== PAUSE ", "=== CONT ", "=== NAME ", "--- PASS: "} {
		if strings.HasPrefix(strings.TrimLeft(text, " "), p) {
			return true
		}
	}
	return text == "PASS\n"
}

func (s *stream) hold(key testKey, text string) {
	h := s.held[key]
	if h == nil {
		h = &holding{order: s.order}
		s.order++
		s.held[key] = h
	}
	h.text.write([]byte(text))
}

// decide prints the held text of a test or package. What a passing test printed is not repeated;
// what a passing package says of itself is.
func (s *stream) decide(key testKey, passed bool) {
	h := s.held[key]
	delete(s.held, key)
	switch {
	case h == nil || passed && key.test != "":
	case passed:
		s.all.write(h.text.bytes())
	default:
		s.print(h.text.bytes())
	}
}

// undecided prints what tests of a package printed that never came to an end: it panicked, was
// killed or ran out of time. An empty name means every package.
func (s *stream) undecided(pkg string) {
	var keys []testKey
	for k := range s.held {
		if pkg == "" || k.pkg == pkg && k.test != "" {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b testKey) int { return s.held[a].order - s.held[b].order })
	for _, k := range keys {
		s.decide(k, false)
	}
}

func (s *stream) finish() { s.undecided("") }

func (s *stream) print(text []byte) {
	s.all.write(text)
	s.bad.write(text)
}

// tally returns what go's events say of tests, and whether there was one about a test.
func (s *stream) tally() (testcount.Tally, bool) {
	t := testcount.Tally{Source: "go test", Names: map[string]int{}}
	for k, passed := range s.ran {
		if passed {
			t.Passed++
		} else {
			t.Failed++
		}
		t.Names[strings.TrimSpace(k.pkg+" "+k.test)]++
	}
	for k := range s.skipped {
		if _, ran := s.ran[k]; !ran {
			t.Skipped++
		}
	}
	return t, len(s.ran)+len(s.skipped) > 0
}

// text is what a verdict keeps of the output: of a failed command what failed, if that can be
// told, else the tail of everything.
func (s *stream) text(failed bool, dropped int64) string {
	t := &s.all
	if failed && len(s.bad.buf) > 0 {
		t = &s.bad
	}
	text := t.text()
	if dropped > 0 {
		text += fmt.Sprintf("\n[%d bytes of output came after the limit of the log and were not kept]", dropped)
	}
	return text
}
