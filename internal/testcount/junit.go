package testcount

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// Limits of the files that are read.
const (
	ReportBytes = 16 << 20 // of one file
	reportDepth = 64       // of its elements
)

// ErrReport: a file is no JUnit report, or more of one than is read.
var ErrReport = errors.New("not a JUnit report that can be read")

// IsReport reports whether a path inside a tree is where a runner puts a JUnit report.
func IsReport(name string) bool {
	base := strings.ToLower(path.Base(name))
	if !strings.HasSuffix(base, ".xml") {
		return false
	}
	for _, prefix := range []string{"junit", "test-", "tests-", "xunit", "test_results", "test_detail"} {
		if strings.HasPrefix(base, prefix) {
			return true
		}
	}
	switch base {
	case "report.xml", "results.xml", "test-results.xml", "testresults.xml", "nosetests.xml", "pytest.xml":
		return true
	}
	dirs := "/" + strings.ToLower(path.Dir(name)) + "/"
	for _, dir := range []string{"/surefire-reports/", "/failsafe-reports/", "/build/test-results/", "/test-results/", "/test-reports/", "/junit/"} {
		if strings.Contains(dirs, dir) {
			return true
		}
	}
	return false
}

// Reports adds up JUnit files. A test that several files name counts as often as the file that
// names it most: a report that gathers others says nothing new.
type Reports struct {
	all   map[string]map[outcome]int
	bytes int
	cut   bool
	files int
}

type outcome uint8

const (
	passed outcome = iota
	failed
	skipped
)

// Read takes one file. An error is ErrReport or what reading gave; of a file that ends in an
// error nothing is counted.
func (r *Reports) Read(from io.Reader) error {
	limited := &io.LimitedReader{R: from, N: ReportBytes + 1}
	p := &report{cases: map[string]map[outcome]int{}}
	err := p.read(limited)
	switch {
	case limited.N <= 0:
		return fmt.Errorf("%w: it has more than %d bytes", ErrReport, ReportBytes)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrReport, err)
	case !p.root:
		return fmt.Errorf("%w: it has no test suite", ErrReport)
	}
	r.files++
	if r.all == nil {
		r.all = map[string]map[outcome]int{}
	}
	for name, counts := range p.cases {
		r.merge(name, counts)
	}
	return nil
}

func (r *Reports) merge(name string, counts map[outcome]int) {
	have := r.all[name]
	if have == nil {
		if len(r.all) >= maxNames || r.bytes+len(name) > maxBytes {
			r.cut = true
			return
		}
		have = map[outcome]int{}
		r.all[name] = have
		r.bytes += len(name)
	}
	for o, n := range counts {
		have[o] = max(have[o], n)
	}
}

// Tally is what all files said; ok is false when there was none.
func (r *Reports) Tally() (t Tally, ok bool) {
	t = Tally{Source: "JUnit files", Cut: r.cut}
	for name, counts := range r.all {
		t.add(counts[passed], counts[failed], counts[skipped])
		for range counts[passed] + counts[failed] {
			t.name(name)
		}
	}
	return t, r.files > 0
}

// report is one file while it is read.
type report struct {
	cases map[string]map[outcome]int
	root  bool
	stack []string
	name  string
	state outcome
}

// read takes the elements one by one. Entities that the file defines itself are not known to the
// decoder and end the reading; nothing outside of the file is ever looked at.
func (p *report) read(from io.Reader) error {
	d := xml.NewDecoder(from)
	d.CharsetReader = charset
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch e := token.(type) {
		case xml.StartElement:
			if len(p.stack) >= reportDepth {
				return fmt.Errorf("its elements are more than %d deep", reportDepth)
			}
			if err := p.start(e); err != nil {
				return err
			}
			p.stack = append(p.stack, e.Name.Local)
		case xml.EndElement:
			p.stack = p.stack[:len(p.stack)-1]
			if e.Name.Local == "testcase" {
				p.end()
			}
		}
	}
}

func (p *report) start(e xml.StartElement) error {
	switch {
	case len(p.stack) == 0:
		p.root = e.Name.Local == "testsuites" || e.Name.Local == "testsuite"
		if !p.root {
			return errors.New("its root is another one")
		}
	case e.Name.Local == "testcase" && p.inCase():
		return errors.New("a test case is inside another one")
	case e.Name.Local == "testcase":
		p.begin(e)
	case p.stack[len(p.stack)-1] != "testcase":
	case e.Name.Local == "failure" || e.Name.Local == "error":
		p.state = failed
	case e.Name.Local == "skipped" && p.state == passed:
		p.state = skipped
	}
	return nil
}

func (p *report) inCase() bool {
	for _, name := range p.stack {
		if name == "testcase" {
			return true
		}
	}
	return false
}

func (p *report) begin(e xml.StartElement) {
	var name, class string
	p.state = passed
	for _, a := range e.Attr {
		switch a.Name.Local {
		case "name":
			name = a.Value
		case "classname":
			class = a.Value
		case "status":
			if a.Value == "notrun" || a.Value == "disabled" || a.Value == "skipped" {
				p.state = skipped
			}
		}
	}
	p.name = strings.TrimSpace(class + " " + name)
	if len(p.name) > maxName {
		p.name = strings.ToValidUTF8(p.name[:maxName], "")
	}
}

func (p *report) end() {
	counts := p.cases[p.name]
	if counts == nil {
		counts = map[outcome]int{}
		p.cases[p.name] = counts
	}
	counts[p.state]++
}

// charset reads the encodings that runners write beside UTF-8.
func charset(name string, in io.Reader) (io.Reader, error) {
	switch strings.ToLower(name) {
	case "us-ascii", "ascii":
		return in, nil
	case "iso-8859-1", "latin1", "windows-1252":
		return &latin1{in: in}, nil
	}
	return nil, fmt.Errorf("its encoding %.40q is not known", name)
}

// latin1 turns bytes into the characters of the same number.
type latin1 struct {
	in   io.Reader
	rest []byte
}

func (l *latin1) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		var raw [512]byte
		n, err := l.in.Read(raw[:])
		for _, b := range raw[:n] {
			l.rest = append(l.rest, string(rune(b))...)
		}
		if n == 0 {
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}
