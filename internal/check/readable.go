package check

import (
	"bytes"
	"io"
	"slices"
)

// heldBytes is how much of packages that print at the same time is held back to keep each together.
const heldBytes = 16 << 20

// Readable turns a log of checks into what a person reads: events of `go test -json` become what
// `go test -v` would have printed, each package in one piece; all else stays as it is. It escapes
// nothing. Close it to get the last of it.
type Readable struct {
	To   io.Writer
	line []byte
	held map[string][]byte // text of packages that are still at work
	keys []string          // these packages, in the order they began
	size int
	err  error
}

// Write implements io.Writer.
func (r *Readable) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && r.err == nil {
		at := bytes.IndexByte(p, '\n')
		if at < 0 && len(r.line)+len(p) <= lineBytes {
			r.line = append(r.line, p...)
			break
		}
		end := at + 1
		if at < 0 {
			end = len(p)
		}
		r.line = append(r.line, p[:end]...)
		r.one(r.line)
		r.line, p = r.line[:0], p[end:]
	}
	return n, r.err
}

// Close writes what is held back.
func (r *Readable) Close() error {
	if len(r.line) > 0 {
		r.one(r.line)
		r.line = nil
	}
	r.flush()
	return r.err
}

func (r *Readable) one(line []byte) {
	e, before, ok := eventIn(line)
	r.write(before)
	switch {
	case !ok:
		return
	case e.Action == "build-output":
		r.write([]byte(e.Output))
	case e.Action == "output":
		r.hold(e.Package, e.Output)
	case e.Test == "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip"):
		r.release(e.Package)
	}
}

func (r *Readable) hold(pkg, text string) {
	if r.held == nil {
		r.held = map[string][]byte{}
	}
	if _, there := r.held[pkg]; !there {
		r.keys = append(r.keys, pkg)
	}
	r.held[pkg] = append(r.held[pkg], text...)
	if r.size += len(text); r.size > heldBytes {
		r.flush()
	}
}

// release writes what a package printed, when it has ended.
func (r *Readable) release(pkg string) {
	text, there := r.held[pkg]
	if !there {
		return
	}
	r.write(text)
	r.size -= len(text)
	delete(r.held, pkg)
	r.keys = slices.DeleteFunc(r.keys, func(k string) bool { return k == pkg })
}

// flush writes what every package has printed so far.
func (r *Readable) flush() {
	for _, pkg := range slices.Clone(r.keys) {
		r.release(pkg)
	}
}

func (r *Readable) write(text []byte) {
	if r.err == nil && len(text) > 0 {
		_, r.err = r.To.Write(text)
	}
}
