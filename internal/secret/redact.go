package secret

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"strings"
)

// Mark stands where a secret was.
const Mark = "[redacted]"

// span is a place in a text, from the first byte to the one after the last.
type span struct {
	from, to int
	said     bool // its mark was written already
}

// Redact returns a text with a mark in the place of each secret. Whatever is cut off a text is to be
// cut after this, never before: half a secret is not recognised.
func (k *Known) Redact(text string) string {
	b := []byte(text)
	spans := k.ownSpans(b)
	begin := 0
	for begin < len(b) {
		end := begin
		if end += bytes.IndexByte(b[begin:], '\n'); end < begin {
			end = len(b)
		}
		for _, f := range find(b[begin:end], 0, end-begin) {
			spans = append(spans, span{from: begin + f.from, to: begin + f.to})
		}
		begin = end + 1
	}
	spans = append(spans, keyBlocks(b)...)
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var out strings.Builder
	done := 0
	for i := 0; i < len(spans); {
		from, to := spans[i].from, spans[i].to
		for i++; i < len(spans) && spans[i].from < to; i++ {
			to = max(to, spans[i].to)
		}
		out.Write(b[done:from])
		out.WriteString(Mark)
		done = to
	}
	out.Write(b[done:])
	return out.String()
}

// ownSpans are the places of this installation's values.
func (k *Known) ownSpans(b []byte) (spans []span) {
	at := int32(0)
	for i, c := range b {
		at = k.own.step(at, c)
		if n := int(k.own.nodes[at].match); n > 0 {
			spans = append(spans, span{from: i + 1 - n, to: i + 1})
		}
	}
	return spans
}

// keyBlocks are the places of private keys with their armour: to the end of the block, or where there
// is none, to the last line that can be of it.
func keyBlocks(b []byte) (spans []span) {
	for i := 0; i < len(b); {
		at := bytes.Index(b[i:], []byte(armour))
		if at < 0 {
			return spans
		}
		at += i
		head := armourHead(b[at:])
		i = at + len(armour)
		if head == 0 {
			continue
		}
		end := at + head
		longest, length := 0, 0 // runs of base64
		for end < len(b) && (isBase64(b[end]) || bytes.IndexByte([]byte("=\r\n\t \\\"',:;-+#*"), b[end]) >= 0) {
			if b[end] == '-' && bytes.HasPrefix(b[end:], []byte("-----")) { // the end, or the next one
				if bytes.HasPrefix(b[end:], []byte("-----END")) {
					end += min(len(b)-end, len("-----END")+head-len("-----BEGIN"))
				}
				break
			}
			if length++; !isBase64(b[end]) {
				length = 0
			}
			longest = max(longest, length)
			end++
		}
		if longest < leastKey {
			continue
		}
		spans = append(spans, span{from: at, to: end})
		i = end
	}
	return spans
}

// Redactor passes on what is written to it, with a mark in the place of each value of this
// installation, also of one that comes in several writes. It holds back no more than what could be
// the beginning of one. Shapes it does not know. Close it to get the last of it.
type Redactor struct {
	own   *automaton
	to    io.Writer
	held  []byte // not passed on yet
	at    int32
	spans []span // in held, in order, none overlapping another
}

// Redactor returns one that writes to a writer.
func (k *Known) Redactor(to io.Writer) *Redactor { return &Redactor{own: &k.own, to: to} }

// Write implements io.Writer. All is taken; an error is that of the writer behind.
func (r *Redactor) Write(p []byte) (int, error) {
	from := len(r.held)
	r.held = append(r.held, p...)
	for i := from; i < len(r.held); i++ {
		r.at = r.own.step(r.at, r.held[i])
		if n := int(r.own.nodes[r.at].match); n > 0 {
			r.mark(span{from: i + 1 - n, to: i + 1})
		}
	}
	return len(p), r.pass(len(r.held) - int(r.own.nodes[r.at].depth))
}

// mark adds a span, which ends after all others.
func (r *Redactor) mark(s span) {
	for n := len(r.spans); n > 0 && r.spans[n-1].to > s.from; n = len(r.spans) {
		last := r.spans[n-1]
		s.from, s.said = min(s.from, last.from), s.said || last.said
		r.spans = r.spans[:n-1]
	}
	r.spans = append(r.spans, s)
}

// pass passes the first n bytes on: no value that is still to come can begin before them.
func (r *Redactor) pass(n int) error {
	var out []byte
	done := 0
	for len(r.spans) > 0 && r.spans[0].from < n {
		s := &r.spans[0]
		out = append(out, r.held[done:s.from]...)
		if !s.said {
			out = append(out, Mark...)
		}
		done = min(s.to, n)
		if s.to > n { // the rest of it is still held
			s.from, s.said = n, true
			break
		}
		r.spans = r.spans[1:]
	}
	out = append(out, r.held[done:n]...)
	r.held = append(r.held[:0], r.held[n:]...)
	for i := range r.spans {
		r.spans[i].from, r.spans[i].to = r.spans[i].from-n, r.spans[i].to-n
	}
	if len(out) == 0 {
		return nil
	}
	_, err := r.to.Write(out)
	return err
}

// Close passes on what was held back: it was no value.
func (r *Redactor) Close() error {
	r.at = 0
	return r.pass(len(r.held))
}
