package testdiff

import (
	"path"
	"regexp"
	"strings"
	"sync"
)

// language is how tests of one language look. Group 1 of head, or the first that is set, is the
// name of a test.
type language struct {
	ends    []string // of file names
	isTest  func(name string) bool
	head    *regexp.Regexp // begins a test, on a line of its own
	above   *regexp.Regexp // a line that belongs to the test below it
	mark    *regexp.Regexp // a line above that makes a test of the function below it; nil: the name does
	closes  *regexp.Regexp // ends a test; nil: the next one does
	asserts *regexp.Regexp
	skips   *regexp.Regexp
	comment string // begins a comment that goes to the end of the line
}

// test is what was seen of one test, or of all that is outside of tests.
type test struct {
	name    string
	asserts int    // lines that look like an assertion
	skips   int    // lines that skip it, or others
	leaves  bool   // its first line returns
	build   string // the build constraint of the file
	lines   int
}

var (
	returns = regexp.MustCompile(`^\s*return\s*;?\s*$`)
	build   = regexp.MustCompile(`^//go:build (.*\S)`)
)

// languages are compiled at the first use: most processes of the program look at no test.
var languages = sync.OnceValue(func() []*language {
	return []*language{
		{
			ends: []string{".go"}, comment: "//",
			isTest: func(name string) bool {
				return strings.HasSuffix(name, "_test.go") && !hidden(name)
			},
			head:    regexp.MustCompile(`^func ((?:Test|Fuzz|Example|Benchmark)(?:[^a-z(]\w*)?)\(`),
			closes:  regexp.MustCompile(`^}`),
			asserts: regexp.MustCompile(`\bt\.(?:Error|Fatal|Fail)\w*\(|\b(?:assert|require|check|qt|is)\.\w+\(|\bmust\w*\(|\bcmp\.Diff\(|// Output:|\bExpect\(`),
			skips:   regexp.MustCompile(`\b[a-z]+\.Skip(?:f|Now)?\(`),
		},
		{
			ends: []string{".py"}, comment: "#",
			isTest: func(name string) bool {
				base := path.Base(name)
				return strings.HasPrefix(base, "test_") || strings.HasSuffix(base, "_test.py") || base == "tests.py"
			},
			head:    regexp.MustCompile(`^\s*(?:async\s+)?def (test\w*)\(`),
			above:   regexp.MustCompile(`^\s*@`),
			closes:  regexp.MustCompile(`^(?:\S|\s*(?:class|def|async def) |\s*@)`),
			asserts: regexp.MustCompile(`^\s*assert\b|\bself\.(?:assert|fail)\w*\(|\.assert_\w+\(|\bpytest\.(?:raises|fail|warns)\b`),
			skips:   regexp.MustCompile(`\b(?:pytest\.)?mark\.(?:skip|skipif|xfail)\b|\bpytest\.(?:skip|xfail|importorskip)\(|@(?:unittest\.)?(?:skip|skipIf|skipUnless|expectedFailure)\b|\bself\.skipTest\(|\bSkipTest\b`),
		},
		{
			ends: []string{".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"}, comment: "//",
			isTest: func(name string) bool {
				base := path.Base(name)
				return strings.Contains(base, ".test.") || strings.Contains(base, ".spec.") || inDir(name, "__tests__", "test", "tests", "spec", "e2e")
			},
			head:    regexp.MustCompile("(?:^|[\\s;{(])(?:[xf]?(?:it|test|specify)|t\\.test)(?:\\.\\w+)*\\(\\s*(?:'([^']*)'|\"([^\"]*)\"|`([^`]*)`)"),
			asserts: regexp.MustCompile(`\bassert\w*(?:\.\w+)*\(|\bexpect\w*\(|\bshould\b|\bt\.(?:is|ok|not|deepEqual|equal|like|true|false|throws\w*|assert)\w*\(`),
			skips:   regexp.MustCompile(`\b(?:it|test|describe|suite|specify|context|t)\.(?:skip|todo|only|fixme|failing|fails|runIf|skipIf)\b|\bx(?:it|describe|test|context)\(|\bf(?:it|describe)\(|\bthis\.skip\(|\bskip: *(?:true|'|")|\btodo: *(?:true|'|")`),
		},
		{
			ends: []string{".rs"}, comment: "//",
			isTest:  func(name string) bool { return inDir(name, "tests") },
			head:    regexp.MustCompile(`^\s*(?:pub(?:\([a-z]+\))? )?(?:async )?fn (\w+)`),
			above:   regexp.MustCompile(`^\s*#\[`),
			mark:    regexp.MustCompile(`#\[(?:\w+::)*(?:test|rstest|test_case)\b`),
			asserts: regexp.MustCompile(`\b(?:debug_)?assert\w*!|\bpanic!|\bshould_panic\b|\bunreachable!|\.unwrap\(\)|\bprop_assert`),
			skips:   regexp.MustCompile(`#\[ignore\b|#!?\[cfg\((?:any\(\)|not\(test\)|FALSE)\)|#\[cfg_attr\([^)]*ignore`),
		},
		{
			ends: []string{".java", ".kt", ".groovy", ".scala", ".cs"}, comment: "//",
			isTest: func(name string) bool {
				stem := strings.TrimSuffix(path.Base(name), path.Ext(name))
				return strings.HasSuffix(stem, "Test") || strings.HasSuffix(stem, "Tests") || strings.HasSuffix(stem, "IT") || strings.HasSuffix(stem, "Spec") || strings.Contains(name, "src/test/")
			},
			head:    regexp.MustCompile(`^\s*(?:(?:public|private|protected|internal|static|final|async|suspend|override) )*(?:void|fun|Task|def) ` + "(`[^`]*`|\\w+)" + `\s*\(`),
			above:   regexp.MustCompile(`^\s*(?:@|\[)`),
			mark:    regexp.MustCompile(`@(?:Test|ParameterizedTest|RepeatedTest|TestFactory|Property)\b|\[(?:Test|Fact|Theory|TestMethod|TestCase)\b`),
			asserts: regexp.MustCompile(`\b(?i:assert)\w*(?:\.\w+)*\s*\(|\bverify\w*\(|\bexpect\w*\(|\bfail\(|\bshould\w*\b|\bexpected *=`),
			skips:   regexp.MustCompile(`@(?:Disabled|Ignore)\w*|\[Ignore\b|\bSkip *= *"|\bassume\w*\(|\bAssume\.`),
		},
		{
			ends: []string{".rb"}, comment: "#",
			isTest: func(name string) bool {
				return strings.HasSuffix(name, "_spec.rb") || strings.HasSuffix(name, "_test.rb") || strings.HasPrefix(path.Base(name), "test_")
			},
			head:    regexp.MustCompile(`^\s*(?:def (test_\w+)|[xf]?(?:it|specify|test|scenario)\s*\(?\s*(?:'([^']*)'|"([^"]*)"))`),
			asserts: regexp.MustCompile(`\b(?:assert|refute)\w*\b|\bexpect\b|\bmust_\w+|\.should\b`),
			skips:   regexp.MustCompile(`\b(?:skip|pending)\b|\bx(?:it|describe|context|specify)\b|\bf(?:it|describe)\b`),
		},
		{
			ends: []string{".php"}, comment: "//",
			isTest:  func(name string) bool { return strings.HasSuffix(name, "Test.php") },
			head:    regexp.MustCompile(`^\s*(?:(?:public|final|static) )*function (test\w+)\(`),
			asserts: regexp.MustCompile(`\b(?:assert|expect)\w*\(`),
			skips:   regexp.MustCompile(`\bmarkTest(?:Skipped|Incomplete)\(|@requires\b`),
		},
		{
			ends: []string{".bats", ".t"}, comment: "#",
			isTest:  func(string) bool { return true },
			head:    regexp.MustCompile(`^\s*(?:@test (?:'([^']*)'|"([^"]*)")|subtest (?:'([^']*)'|"([^"]*)"))`),
			asserts: regexp.MustCompile(`\[\[? |\bassert\w*|\brefute\w*|^\s*(?:ok|is|isnt|like|unlike|is_deeply|cmp_ok|pass)\b|\bgrep -q`),
			skips:   regexp.MustCompile(`^\s*skip\b|\bskip_all\b|\bplan skip|\bSKIP:|\bTODO:`),
		},
	}
})

func hidden(name string) bool {
	for _, part := range strings.Split(name, "/") {
		if part == "testdata" || strings.HasPrefix(part, "_") || strings.HasPrefix(part, ".") {
			return true
		}
	}
	return false
}

func inDir(name string, dirs ...string) bool {
	for _, part := range strings.Split(path.Dir(name), "/") {
		for _, d := range dirs {
			if part == d {
				return true
			}
		}
	}
	return false
}

func languageOf(name string) *language {
	for _, l := range languages() {
		for _, end := range l.ends {
			if strings.HasSuffix(name, end) {
				return l
			}
		}
	}
	return nil
}

// testsIn lists the tests of a file in their order. Go and Python know a test file by its name; in
// others every file may hold tests.
func testsIn(name string, text []byte) []test {
	tests, _ := parse(name, text)
	return tests
}

func outside(name string, text []byte) test {
	_, rest := parse(name, text)
	return rest
}

func parse(name string, text []byte) (tests []test, rest test) {
	l := languageOf(name)
	if l == nil || text == nil || l.mark == nil && !l.isTest(name) {
		return nil, test{}
	}
	p := &parser{l: l}
	for line := range strings.Lines(string(text)) {
		p.line(strings.TrimRight(line, "\r\n"))
	}
	for i := range p.tests {
		p.tests[i].name = strings.Trim(p.tests[i].name, "`")
	}
	return p.tests, p.rest
}

// parser walks through the lines of a file.
type parser struct {
	l       *language
	tests   []test
	rest    test
	pending []string // lines that belong to the function below
	in      bool     // in the last of the tests
	indent  int      // of the line that began it
}

func (p *parser) line(s string) {
	if m := build.FindStringSubmatch(s); m != nil && p.l.comment == "//" {
		p.rest.build = m[1]
	}
	code := p.l.withoutComment(s)
	if p.l.above != nil && p.l.above.MatchString(code) && p.l.head.FindStringIndex(code) == nil {
		p.pending = append(p.pending, code)
		if p.in && p.outOf(code) {
			p.in = false
		}
		return
	}
	if m := p.l.head.FindStringSubmatch(code); m != nil {
		p.begin(m, code)
		return
	}
	if p.in && p.outOf(code) {
		p.in = false
	}
	if len(p.pending) > 0 && strings.TrimSpace(code) != "" {
		for _, line := range p.pending {
			p.look(line)
		}
		p.pending = nil
	}
	p.look(code)
}

// withoutComment takes the comment off a line: a mark in one is none. "#[" of Rust and "://" stay, and
// the output that an example of Go declares.
func (l *language) withoutComment(s string) string {
	at := strings.Index(s, l.comment)
	if at < 0 || strings.Contains(s[at:], "Output:") || at > 0 && s[at-1] != ' ' && s[at-1] != '\t' {
		return s
	}
	return s[:at]
}

// outOf reports whether a line is no longer of the test that is open.
func (p *parser) outOf(code string) bool {
	return p.l.closes != nil && p.l.closes.MatchString(code) && indentOf(code) <= p.indent
}

func indentOf(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

func (p *parser) begin(m []string, code string) {
	isTest := p.l.mark == nil
	for _, line := range p.pending {
		isTest = isTest || p.l.mark != nil && p.l.mark.MatchString(line)
	}
	if p.in = isTest; isTest {
		name := ""
		for _, group := range m[1:] {
			if name == "" {
				name = group
			}
		}
		p.tests = append(p.tests, test{name: name})
		p.indent = indentOf(code)
	}
	for _, line := range p.pending {
		p.look(line)
	}
	p.pending = nil
	p.look(code)
	if p.in {
		p.tests[len(p.tests)-1].lines = 0 // its head is not its first line
	}
}

// look counts what is on a line.
func (p *parser) look(code string) {
	t := &p.rest
	if p.in {
		t = &p.tests[len(p.tests)-1]
	}
	if p.l.asserts.MatchString(code) {
		t.asserts++
	}
	if p.l.skips.MatchString(code) {
		t.skips++
	}
	if strings.TrimSpace(code) == "" {
		return
	}
	if t.lines == 0 && returns.MatchString(code) {
		t.leaves = true
	}
	t.lines++
}
