package secret

import "bytes"

const (
	window    = 64 << 10 // bytes of one line that are looked at together
	lookAhead = 4 << 10  // bytes behind the begin of a shape that decide about it
	lookBack  = 128      // bytes in front of it
)

// Stream looks for secrets in what is written to it, also for one that comes in several writes. What
// it keeps is bounded, and what it does is linear in what is written. Lines may be of any length.
type Stream struct {
	known *Known
	found func(Hit)
	line  int
	at    int32  // of the automaton
	flat  int32  // the same, without ends of lines: what is encoded is often broken into lines
	buf   []byte // the unfinished line, or the last of it
	from  int    // in buf: what begins before it was told
	wait  int    // lines in which the body of a private key may still begin
	head  int    // the line of its armour
}

// Stream returns one that calls found for each secret.
func (k *Known) Stream(found func(Hit)) *Stream { return &Stream{known: k, found: found, line: 1} }

// Begin says that what comes next begins at this line, and does not go on from what was before.
func (s *Stream) Begin(line int) {
	s.Close()
	s.line = line
}

// Write implements io.Writer; it never fails.
func (s *Stream) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		switch {
		case end < 0:
			s.part(p)
			p = nil
		case len(s.buf) == 0 && end <= window:
			s.values(p[:end+1])
			s.endLine(p[:end])
			p = p[end+1:]
		default:
			s.part(p[:end])
			s.values(p[end : end+1])
			s.endLine(s.buf)
			p = p[end+1:]
		}
	}
	return n, nil
}

// Close looks at what is left. It can be written to again.
func (s *Stream) Close() {
	if len(s.buf) > 0 {
		s.endLine(s.buf)
	}
	s.at, s.flat, s.wait = 0, 0, 0
}

// values looks for this installation's values in the next bytes, none of which but the last ends a
// line.
func (s *Stream) values(p []byte) {
	own := &s.known.own
	if len(own.nodes) == 1 {
		return
	}
	for _, c := range p {
		if s.at == 0 && s.flat == 0 && own.root[c] == 0 { // most of a text
			continue
		}
		s.at = own.step(s.at, c)
		if c != '\n' && c != '\r' {
			s.flat = own.step(s.flat, c)
		}
		n := &own.nodes[s.at]
		if n.match == 0 && c != '\n' && c != '\r' {
			n = &own.nodes[s.flat]
		}
		if n.match == 0 {
			continue
		}
		v := own.values[n.value]
		s.found(Hit{Kind: v.kind, Line: s.line, Own: true, Fingerprint: v.fingerprint})
	}
}

// part takes a part of a line.
func (s *Stream) part(p []byte) {
	s.values(p)
	for len(p) > 0 {
		n := min(len(p), window-len(s.buf))
		s.buf = append(s.buf, p[:n]...)
		if p = p[n:]; len(s.buf) < window {
			return
		}
		decided := len(s.buf) - lookAhead
		s.shapes(s.buf, decided)
		keep := decided - lookBack
		s.from = max(s.from, decided) - keep
		s.buf = append(s.buf[:0], s.buf[keep:]...)
	}
}

// shapes tells of the shapes that begin before to.
func (s *Stream) shapes(b []byte, to int) {
	for _, f := range find(b, s.from, to) {
		s.found(Hit{Kind: f.kind, Line: s.line, Fingerprint: s.known.fingerprint(b[f.from:f.to])})
		s.from = max(s.from, f.to)
	}
}

// endLine looks at the end of a line.
func (s *Stream) endLine(b []byte) {
	if !s.privateKey(b) {
		s.shapes(b, len(b))
	}
	s.buf, s.from = s.buf[:0], 0
	s.line++
}

// armouredLines is how many lines of an armour may come before the key itself.
const armouredLines = 8

// privateKey looks for the first line of a private key's body after its armour, and reports whether this
// is one. The armour alone is in many programs, and is no secret.
func (s *Stream) privateKey(b []byte) (is bool) {
	if s.wait > 0 {
		s.wait--
		switch body := keyBody(b); {
		case len(body) > 0:
			s.found(Hit{Kind: kindPrivateKey, Line: s.head, Fingerprint: s.known.fingerprint(body)})
			s.wait, is = 0, true
		case !betweenArmour(b):
			s.wait = 0
		}
	}
	if at := bytes.Index(b, []byte(armour)); at >= 0 && armourHead(b[at:]) > 0 && len(b)-at < lookBack {
		s.wait, s.head = armouredLines, s.line
	}
	return is
}
