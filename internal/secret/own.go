package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
)

const (
	// encodedMost is the length, in bytes, up to which a value is looked for in other forms than its own.
	encodedMost = 8 << 10
	// leastForm is the length of the shortest form that is looked for: MinValue bytes in base64, of
	// which the ends depend on what is beside them.
	leastForm = MinValue
)

// forms are a value as it stands, and as it is written in URLs, in JSON, in hex and in base64: of the
// last all three alignments, so that it is found within something longer that was encoded as a whole.
func forms(value string) []string {
	all := []string{value}
	if len(value) > encodedMost {
		return all
	}
	query, path := url.QueryEscape(value), url.PathEscape(value)
	all = append(all, query, lowerEscapes(query), path, lowerEscapes(path), strings.ReplaceAll(query, "+", "%20"))
	for _, html := range []bool{true, false} {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(html)
		if e.Encode(value) == nil {
			all = append(all, strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), `"`), `"`))
		}
	}
	all = append(all, hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value))))
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			text := enc.EncodeToString([]byte("\x00\x00"[:before] + value))
			// Digits at both ends hold bits of what is beside the value.
			all = append(all, text[(before*8+5)/6:(before+len(value))*8/6])
		}
	}
	return all
}

// lowerEscapes writes the hex digits of %XX in lower case.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], strings.ToLower(string(b[i+1:i+3])))
			i += 2
		}
	}
	return string(b)
}

// ownValue is what is known of a value besides its forms.
type ownValue struct{ kind, fingerprint string }

// automaton finds all forms at once, in one pass over the text, however many there are (Aho and
// Corasick, 1975). Node 0 is the root.
type automaton struct {
	nodes  []node
	root   [256]int32
	values []ownValue
}

type node struct {
	first, next int32 // its first child, and the next child of its parent; 0: none
	fail        int32 // the node of the longest end of this one's text that begins another form
	depth       int32 // length of its text
	match       int32 // length of the longest form that its text ends in, 0: none
	value       int32 // whose form that is
	char        byte
}

// add adds one form of a value.
func (a *automaton) add(form string, v ownValue) {
	if len(form) < leastForm {
		return
	}
	if len(a.nodes) == 0 {
		a.nodes = append(a.nodes, node{})
	}
	if n := len(a.values); n == 0 || a.values[n-1] != v {
		a.values = append(a.values, v)
	}
	at := int32(0)
	for i := range len(form) {
		to := a.child(at, form[i])
		if to == 0 {
			to = int32(len(a.nodes))
			a.nodes = append(a.nodes, node{char: form[i], depth: a.nodes[at].depth + 1, next: a.nodes[at].first})
			a.nodes[at].first = to
			if at == 0 {
				a.root[form[i]] = to
			}
		}
		at = to
	}
	if a.nodes[at].match == 0 {
		a.nodes[at].match, a.nodes[at].value = int32(len(form)), int32(len(a.values)-1)
	}
}

func (a *automaton) child(at int32, c byte) int32 {
	if at == 0 {
		return a.root[c]
	}
	to := a.nodes[at].first
	for to != 0 && a.nodes[to].char != c {
		to = a.nodes[to].next
	}
	return to
}

// link computes where to go on from each node when the next character does not fit; nodes nearer to
// the root come first.
func (a *automaton) link() {
	if len(a.nodes) == 0 {
		a.nodes = append(a.nodes, node{})
	}
	queue := []int32{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for to := a.nodes[at].first; to != 0; to = a.nodes[to].next {
			queue = append(queue, to)
			n := &a.nodes[to]
			if at != 0 {
				n.fail = a.step(a.nodes[at].fail, n.char)
			}
			if f := a.nodes[n.fail]; n.match == 0 {
				n.match, n.value = f.match, f.value
			}
		}
	}
}

// step is the node after one more character.
func (a *automaton) step(at int32, c byte) int32 {
	for at != 0 {
		if to := a.child(at, c); to != 0 {
			return to
		}
		at = a.nodes[at].fail
	}
	return a.root[c]
}
