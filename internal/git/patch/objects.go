package patch

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// object is one that is told whole.
type object struct{ hash, commit, path string }

// objects reads what cat-file --batch prints: "HASH TYPE SIZE", newline, content, newline, in the order
// in which it was asked.
type objects struct {
	visit Visitor
	want  []object
	head  []byte
	left  int64 // bytes of the object that are still to come, and its newline
	err   error
}

func (o *objects) stdin() []byte {
	var b bytes.Buffer
	for _, w := range o.want {
		b.WriteString(w.hash + "\n")
	}
	return b.Bytes()
}

// Write implements io.Writer.
func (o *objects) Write(p []byte) (int, error) {
	for n := 0; n < len(p) && o.err == nil; {
		if o.left > 0 {
			part := p[n:min(int64(len(p)), int64(n)+o.left)]
			n += len(part)
			if o.left -= int64(len(part)); o.left == 0 {
				part = part[:len(part)-1] // the newline
			}
			if len(part) > 0 {
				o.visit.Text(part)
			}
			continue
		}
		o.head = append(o.head, p[n])
		n++
		if o.head[len(o.head)-1] == '\n' {
			o.err = o.begin(strings.TrimSpace(string(o.head)))
			o.head = o.head[:0]
		}
	}
	return len(p), o.err
}

// begin reads the line in front of an object.
func (o *objects) begin(line string) error {
	f := strings.Fields(line)
	if len(f) != 3 || len(o.want) == 0 || f[0] != o.want[0].hash {
		return notUnderstood(line)
	}
	size, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil || size < 0 {
		return notUnderstood(line)
	}
	o.visit.File(o.want[0].commit, o.want[0].path)
	o.visit.Lines(1)
	o.want, o.left = o.want[1:], size+1
	return nil
}

// end reports whether all was there.
func (o *objects) end() error {
	if o.err == nil && (o.left > 0 || len(o.want) > 0) {
		o.err = fmt.Errorf("git cat-file: it ended with %d objects to come", len(o.want))
	}
	return o.err
}
