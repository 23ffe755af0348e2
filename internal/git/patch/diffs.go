package patch

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"interlock/internal/git"
)

// longestHead is how many bytes a line of a header may have: one has the names of all parents.
const longestHead = 4 << 20

// diffs reads what diff-tree prints. What a header says of the number of lines in a hunk decides where
// it ends: no line of a file can pass for a header.
type diffs struct {
	visit   Visitor
	commit  string
	path    string
	blob    string // the file as it is now
	pending bool   // the file was not told yet
	whole   []object
	seen    map[string]bool // blobs in whole

	old     []int // lines of each parent that are still to come in the hunk
	new     int
	columns int    // of the hunk: one for each parent
	head    []byte // a line of a header, or the columns of one in a hunk, as far as it has come
	rest    rest   // what the rest of the line in the hunk is
	err     error
}

type rest byte

const (
	columns rest = iota // they are not all there yet
	added
	other
)

// Write implements io.Writer.
func (d *diffs) Write(p []byte) (int, error) {
	for n := 0; n < len(p) && d.err == nil; {
		if d.inHunk() || d.rest != columns {
			n += d.content(p[n:])
			continue
		}
		end := bytes.IndexByte(p[n:], '\n')
		if end < 0 {
			d.head = append(d.head, p[n:]...)
			if len(d.head) > longestHead {
				d.err = fmt.Errorf("git diff-tree: a header of more than %d bytes", longestHead)
			}
			break
		}
		d.head = append(d.head, p[n:n+end]...)
		n += end + 1
		d.err = d.header(string(d.head))
		d.head = d.head[:0]
	}
	return len(p), d.err
}

func (d *diffs) inHunk() bool {
	for _, n := range d.old {
		if n > 0 {
			return true
		}
	}
	return d.new > 0
}

// content takes a part of a line in a hunk and returns how long it is.
func (d *diffs) content(p []byte) (n int) {
	for d.rest == columns {
		if n == len(p) {
			return n
		}
		d.head = append(d.head, p[n])
		n++
		if d.head[0] == '\\' { // "\ No newline at end of file" is no line of it
			d.rest = other
		} else if len(d.head) == d.columns {
			d.count()
		}
	}
	end := bytes.IndexByte(p[n:], '\n') + 1
	part := p[n:]
	if end > 0 {
		part = p[n : n+end]
	}
	if d.rest == added && len(part) > 0 {
		d.visit.Text(part)
	}
	if end > 0 {
		d.rest, d.head = columns, d.head[:0]
	}
	return n + len(part)
}

// count takes a line off what is to come, and decides what it is.
func (d *diffs) count() {
	lost := bytes.IndexByte(d.head, '-') >= 0
	d.rest = other
	if !lost {
		d.new--
		if bytes.Count(d.head, []byte("+")) == d.columns {
			d.rest = added
		}
	}
	for i, c := range d.head {
		if lost == (c == '-') && c != '+' {
			d.old[i]--
		}
	}
}

// header reads one line outside of hunks.
func (d *diffs) header(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case strings.HasPrefix(line, "@@"):
		return d.hunk(line)
	case git.ValidHash(line):
		d.tell()
		d.commit = line
	case word == "diff":
		d.tell()
		d.pending, d.path, d.blob = true, named(rest), ""
	case word == "index":
		hashes, _, _ := strings.Cut(rest, " ")
		_, d.blob, _ = strings.Cut(hashes, "..")
	case strings.HasPrefix(line, "rename to "):
		d.path = unquoted(strings.TrimPrefix(line, "rename to "))
	case strings.HasPrefix(line, "+++ ") && line != "+++ /dev/null":
		// A name with a space in it has a tab at its end.
		d.path = strings.TrimPrefix(unquoted(strings.TrimSuffix(rest, "\t")), "b/")
	case strings.HasPrefix(line, "Binary files "):
		d.binary()
	}
	return nil
}

// tell begins the file, if that was not done yet.
func (d *diffs) tell() {
	if d.pending {
		d.visit.File(d.commit, d.path)
	}
	d.pending = false
}

// binary puts a file of which git shows no lines with those that are told whole.
func (d *diffs) binary() {
	d.tell()
	if strings.Trim(d.blob, "0") == "" || d.seen[d.blob] {
		return
	}
	if d.seen == nil {
		d.seen = map[string]bool{}
	}
	d.seen[d.blob] = true
	d.whole = append(d.whole, object{hash: d.blob, commit: d.commit, path: d.path})
}

// hunk reads the line in front of a hunk: "@@ -1,2 +3,4 @@", with one more @ for each further parent.
func (d *diffs) hunk(line string) error {
	d.tell()
	fields := strings.Fields(line)
	d.columns, d.old = len(fields[0])-1, d.old[:0]
	if len(fields) < d.columns+2 {
		return notUnderstood(line)
	}
	from := 0
	for i, f := range fields[1 : d.columns+2] {
		begin, count, counted := strings.Cut(f[1:], ",")
		n, err := 1, error(nil)
		if counted {
			n, err = strconv.Atoi(count)
		}
		if err != nil || n < 0 || f[0] != "-+"[i/d.columns] {
			return notUnderstood(line)
		}
		if i < d.columns {
			d.old = append(d.old, n)
			continue
		}
		if d.new = n; n > 0 {
			if from, err = strconv.Atoi(begin); err != nil {
				return notUnderstood(line)
			}
		}
	}
	d.visit.Lines(from)
	return nil
}

// end reports whether all was there.
func (d *diffs) end() error {
	d.tell()
	if d.err == nil && (d.inHunk() || len(d.head) > 0) {
		d.err = fmt.Errorf("git diff-tree: it ended within a hunk of %s", git.Escape(d.path))
	}
	return d.err
}

func notUnderstood(line string) error {
	return fmt.Errorf("git: a line that is not understood: %q", git.Escape(line[:min(len(line), 200)]))
}

// named is the name in what follows "diff": "--git a/NAME b/NAME", "--combined NAME" or "--cc NAME". Where
// the two differ, a line of its own says so later.
func named(rest string) string {
	option, names, _ := strings.Cut(rest, " ")
	if option != "--git" {
		return unquoted(names)
	}
	one := names[:len(names)/2] // both are equally long, with a space between
	return strings.TrimPrefix(unquoted(one), "a/")
}

// unquoted is a name as it is in the tree; git quotes names that are not plain as C and Go do.
func unquoted(name string) string {
	if plain, err := strconv.Unquote(name); err == nil && strings.HasPrefix(name, `"`) {
		return plain
	}
	return name
}
