package sqlite_test

import (
	"encoding/hex"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// event is one system call on a file of the state, or something that the process told.
type event struct {
	call, path, to string // names in the directory of the state; "." is the directory itself
	offset         int64
	data           []byte
	create, empty  bool // of openat
	ack            *told
}

func (e event) is(calls ...string) bool { return slices.Contains(calls, e.call) }

var (
	callLine = regexp.MustCompile(`^(\d+) +(\w+)\((.*)$`)
	fdPath   = regexp.MustCompile(`^(\d+)<([^>]*)>`)
	quoted   = regexp.MustCompile(`"((?:\\x[0-9a-f]{2})*)"`)
)

// parse reads a trace. A call that another one interrupts is written as two lines: a write counts
// and what is told count from its beginning, a sync only from its end: always the worse for us.
func parse(t *testing.T, text, dir string) []event {
	t.Helper()
	var events []event
	begun := map[string]event{} // syncs, by process
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if pid, rest, _ := strings.Cut(line, " "); strings.Contains(rest, " resumed>") {
			if e, ok := begun[pid]; ok && !strings.Contains(rest, "= -1") {
				events = append(events, e)
			}
			delete(begun, pid)
			continue
		}
		m := callLine.FindStringSubmatch(line)
		if m == nil || strings.Contains(line, " = -1 ") {
			continue
		}
		e, ok := parseCall(t, m[2], m[3], dir)
		switch {
		case !ok:
		case !e.is("write", "pwrite64", "ftruncate") && strings.Contains(line, "<unfinished"):
			begun[m[1]] = e
		default:
			events = append(events, e)
		}
	}
	return events
}

// parseCall reads one call; ok is false when it is none of a file that a power loss matters for.
func parseCall(t *testing.T, call, args, dir string) (e event, ok bool) {
	t.Helper()
	e.call = call
	var texts []string
	for _, m := range quoted.FindAllStringSubmatch(args, -1) {
		b, err := hex.DecodeString(strings.ReplaceAll(m[1], `\x`, ""))
		must(t, err)
		texts = append(texts, string(b))
	}
	if m := fdPath.FindStringSubmatch(args); m != nil && !e.is("openat", "renameat", "renameat2", "unlinkat", "linkat") {
		path := m[2]
		if strings.Contains(path, `\x`) {
			b, err := hex.DecodeString(strings.ReplaceAll(path, `\x`, ""))
			must(t, err)
			path = string(b)
		}
		if m[1] == "1" && call == "write" {
			e.ack = new(told)
			must(t, json.Unmarshal([]byte(texts[0]), e.ack))
			return e, true
		}
		e.path = path
	} else if len(texts) > 0 {
		e.path = texts[0]
	}
	if e.path, ok = inside(dir, e.path); !ok {
		return e, false
	}
	numbers := strings.FieldsFunc(quoted.ReplaceAllString(args[strings.Index(args, ",")+1:], ""), func(r rune) bool { return r == ',' || r == ' ' || r == ')' })
	number := func(n int) int64 {
		v, err := strconv.ParseInt(numbers[n], 10, 64)
		must(t, err)
		return v
	}
	switch call {
	case "pwrite64":
		e.data, e.offset = []byte(texts[0]), number(1)
	case "write":
		e.data, e.offset = []byte(texts[0]), -1
	case "ftruncate":
		e.offset = number(0)
	case "open", "openat":
		e.create, e.empty = strings.Contains(args, "O_CREAT"), strings.Contains(args, "O_TRUNC")
		return e, e.create || e.empty
	case "rename", "renameat", "renameat2", "link", "linkat":
		e.to, ok = inside(dir, texts[1])
	case "fallocate", "creat":
		t.Fatalf("the model of a disk knows no %s: %s", call, args)
	}
	return e, ok
}

// inside returns the name of a file in dir. The lock file and the shared index of the log hold
// nothing that outlives a boot.
func inside(dir, path string) (string, bool) {
	name, err := filepath.Rel(dir, path)
	if err != nil || strings.HasPrefix(name, "..") || strings.HasSuffix(name, "-shm") || name == "state.lock" {
		return "", false
	}
	return name, true
}

// disk is what a filesystem has been told, and what of it is safe. It promises as little as POSIX
// does: a file's content is safe when it was synced, its name when the directory was.
type disk struct {
	names   map[string]*file // as processes see them
	safe    map[string]*file // as they are after a power loss at worst
	pending []event          // changes of names since the directory was synced
	made    map[int]*file    // the file that pending[i] made or moved
}

type file struct {
	safe    []byte
	pending []event
}

func newDisk() *disk {
	return &disk{names: map[string]*file{}, safe: map[string]*file{}, made: map[int]*file{}}
}

// change applies one write or truncation to a content.
func change(b []byte, e event) []byte {
	switch {
	case e.is("ftruncate", "open", "openat"):
		if n := e.offset; n <= int64(len(b)) {
			return b[:n:n]
		}
		return append(slices.Clone(b), make([]byte, e.offset-int64(len(b)))...)
	case e.offset < 0:
		e.offset = int64(len(b))
	}
	b = slices.Clone(b)
	if end := e.offset + int64(len(e.data)); end > int64(len(b)) {
		b = append(b, make([]byte, end-int64(len(b)))...)
	}
	copy(b[e.offset:], e.data)
	return b
}

func (d *disk) name(e event, f *file) {
	d.made[len(d.pending)] = f
	d.pending = append(d.pending, e)
	rename(d.names, e, f)
}

func rename(names map[string]*file, e event, f *file) {
	switch {
	case e.is("unlink", "unlinkat"):
		delete(names, e.path)
	case e.is("link", "linkat"):
		names[e.to] = f
	case e.is("rename", "renameat", "renameat2"):
		delete(names, e.path)
		names[e.to] = f
	default:
		names[e.path] = f
	}
}

// apply does one event.
func (d *disk) apply(t *testing.T, e event) {
	t.Helper()
	if e.path == "." {
		d.safe, d.pending, d.made = maps.Clone(d.names), nil, map[int]*file{}
		return
	}
	f := d.names[e.path]
	switch {
	case e.is("open", "openat") && f == nil && e.create:
		d.name(e, &file{})
	case e.is("open", "openat"):
		if e.empty && f != nil {
			f.pending = append(f.pending, e)
		}
	case f == nil:
		if !strings.Contains(e.path, "(deleted)") {
			t.Fatalf("%s of %s, which is not there", e.call, e.path)
		}
	case e.is("fsync", "fdatasync"):
		for _, w := range f.pending {
			f.safe = change(f.safe, w)
		}
		f.pending = nil
	case e.is("pwrite64", "write", "ftruncate"):
		f.pending = append(f.pending, e)
	default:
		d.name(e, f)
	}
}

// fail is what is on the disk after a power loss now: what was not synced is "lost", "kept", or
// "mixed": some of it, and of some writes only a part. Names change in the order in which they were
// changed, as journals keep them.
func (d *disk) fail(how string, rng *rand.Rand) map[string][]byte {
	names := maps.Clone(d.safe)
	last := map[string]int{"lost": 0, "kept": len(d.pending), "mixed": rng.IntN(len(d.pending) + 1)}[how]
	for i, e := range d.pending[:last] {
		rename(names, e, d.made[i])
	}
	files := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		content := names[name].safe
		for _, w := range names[name].pending {
			switch {
			case how == "lost" || how == "mixed" && rng.IntN(2) == 0:
				continue
			case how == "mixed" && len(w.data) > 512 && rng.IntN(3) == 0:
				w.data = w.data[:512*(1+rng.IntN(len(w.data)/512))]
			}
			content = change(content, w)
		}
		files[name] = content
	}
	return files
}
