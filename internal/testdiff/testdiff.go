// Package testdiff looks at what a change does to tests: tests and test files that are gone, tests
// that are skipped now or assert less, configuration of test runners and scripts of checks that
// changed. It reads text by patterns, so it is best effort: it misses what is done cleverly, and
// names what is harmless. It decides nothing and reads no files itself.
package testdiff

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// File is one path that differs. Old and New are what it held before and after, nil where it was
// not there; Path is where it is now, or where it was when it is gone.
type File struct {
	OldPath  string // where it was, "" unless it was renamed
	Path     string
	Old, New []byte
	Unread   bool // too large to be looked at, or not looked at
}

// before is where the file was.
func (f File) before() string {
	if f.OldPath != "" {
		return f.OldPath
	}
	return f.Path
}

// Wanted reports whether the content of a path is needed by Look.
func Wanted(name string) bool {
	return languageOf(name) != nil || configOf(name) != nil
}

// Look returns one line for each thing that a reviewer should look at, files in their order and
// then by test. Names come from the files: quoted here, and not yet escaped. commands are the lines of the checks.
func Look(files []File, commands []string) []string {
	var out []string
	added := addedTests(files)
	for _, f := range files {
		for _, find := range []func(File) []string{
			func(f File) []string { return fileGone(f, added) },
			func(f File) []string { return testsChanged(f, added) },
			configChanged,
			func(f File) []string { return scriptChanged(f, commands) },
		} {
			out = append(out, find(f)...)
		}
	}
	return out
}

// Quote puts text that others chose between backticks, of which it cannot get out.
func Quote(s string) string {
	const most = 200
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return "`" + strings.ReplaceAll(s, "`", "'") + "`"
}

// addedTests counts the tests, by their last name, that are in a file now and were not before: a
// test that moved is not gone.
func addedTests(files []File) map[string]int {
	added := map[string]int{}
	for _, f := range files {
		before := map[string]int{}
		for _, t := range testsIn(f.before(), f.Old) {
			before[t.name]++
		}
		for _, t := range testsIn(f.Path, f.New) {
			if before[t.name]--; before[t.name] < 0 {
				added[t.name]++
			}
		}
	}
	return added
}

// fileGone names a test file that was deleted, or is none any more where it is now.
func fileGone(f File, added map[string]int) []string {
	was, before := languageOf(f.before()), testsIn(f.before(), f.Old)
	if was == nil || !was.isTest(f.before()) && len(before) == 0 {
		return nil
	}
	switch {
	case f.Old == nil && !f.Unread:
		return nil // it is new
	case f.New == nil && !f.Unread:
		gone := lost(before, nil, added)
		if len(gone) == 0 && len(before) > 0 {
			return nil // all its tests are elsewhere now
		}
		return []string{"test file deleted: " + Quote(f.before()) + listed(gone)}
	case f.OldPath != "" && was.isTest(f.OldPath) && !isTestFile(f.Path):
		return []string{fmt.Sprintf("test file renamed to what is none: %s is now %s", Quote(f.OldPath), Quote(f.Path))}
	case f.Unread && was.isTest(f.before()):
		return []string{"test file changed, and too large to be looked at: " + Quote(f.Path)}
	}
	return nil
}

// isTestFile reports whether a runner looks at a file by its name.
func isTestFile(path string) bool {
	l := languageOf(path)
	return l != nil && l.isTest(path)
}

func listed(tests []test) string {
	if len(tests) == 0 {
		return ""
	}
	const most = 10
	var names []string
	for _, t := range tests[:min(most, len(tests))] {
		names = append(names, Quote(t.name))
	}
	text := ", with " + strings.Join(names, ", ")
	if more := len(tests) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// lost lists the tests of before that are neither in now nor added anywhere. What it finds added it
// takes off there.
func lost(before, now []test, added map[string]int) []test {
	there := map[string]int{}
	for _, t := range now {
		there[t.name]++
	}
	var gone []test
	for _, t := range before {
		switch {
		case there[t.name] > 0:
			there[t.name]--
		case added[t.name] > 0:
			added[t.name]--
		default:
			gone = append(gone, t)
		}
	}
	return gone
}

// testsChanged names what became of the tests of a file that is still there.
func testsChanged(f File, added map[string]int) []string {
	if f.Unread || f.Old == nil || f.New == nil {
		return nil
	}
	before, now := testsIn(f.before(), f.Old), testsIn(f.Path, f.New)
	if len(before) == 0 && (languageOf(f.Path) == nil || !languageOf(f.Path).isTest(f.Path)) {
		return nil
	}
	var out []string
	say := func(format string, args ...any) {
		out = append(out, fmt.Sprintf(format, args...)+" in "+Quote(f.Path))
	}
	for _, t := range lost(before, now, added) {
		say("test removed: %s", Quote(t.name))
	}
	kept := map[string][]test{}
	for _, t := range now {
		kept[t.name] = append(kept[t.name], t)
	}
	for _, b := range before {
		if len(kept[b.name]) == 0 {
			continue
		}
		n := kept[b.name][0]
		kept[b.name] = kept[b.name][1:]
		if weaker := b.weaker(n); weaker != "" {
			say("%s: %s", weaker, Quote(b.name))
		}
	}
	outsideChanged(f, say)
	return out
}

// outsideChanged looks at what is in a test file beside its tests: functions that they share, marks
// for the whole file.
func outsideChanged(f File, say func(string, ...any)) {
	b, n := outside(f.before(), f.Old), outside(f.Path, f.New)
	if n.skips > b.skips {
		say("tests are skipped now")
	}
	if n.asserts < b.asserts {
		say("assertions outside of tests fell from %d to %d", b.asserts, n.asserts)
	}
	if n.build != b.build && n.build != "" {
		say("build constraint now %s", Quote(n.build))
	}
}

// weaker says how a test is weaker than it was, "" if it does not look so.
func (t test) weaker(now test) string {
	switch {
	case now.skips > t.skips:
		return "test is skipped now"
	case now.leaves && !t.leaves:
		return "test returns at once now"
	case t.asserts > 0 && now.asserts == 0:
		return fmt.Sprintf("test asserts nothing any more (it had %d)", t.asserts)
	case now.asserts < t.asserts:
		return fmt.Sprintf("assertions fell from %d to %d", t.asserts, now.asserts)
	}
	return ""
}

// config is a file that says which tests run, and how.
type config struct {
	names []string // base names, or what they begin with when they end in *
	words []string // of which a changed line has to have one; empty: any change counts
}

var configs = []config{
	{names: []string{"pytest.ini", ".pytest.ini", "conftest.py", "jest.config.*", "vitest.config.*", "vitest.workspace.*", ".mocharc*", "karma.conf*",
		"playwright.config.*", "cypress.config.*", "phpunit.xml*", ".rspec", "nextest.toml", "noxfile.py", ".coveragerc", "CTestCustom.cmake", "nose2.cfg"}},
	{names: []string{"pyproject.toml", "setup.cfg", "tox.ini", "package.json", "Cargo.toml", "build.gradle*", "pom.xml", "deno.json*", "CMakeLists.txt"},
		words: []string{"test", "addopts", "deselect", "ignore", "jest", "mocha", "exclude", "filter", "skip", "commands"}},
}

func configOf(name string) *config {
	base := path.Base(name)
	for i, c := range configs {
		for _, n := range c.names {
			if prefix, open := strings.CutSuffix(n, "*"); base == n || open && strings.HasPrefix(base, prefix) {
				return &configs[i]
			}
		}
	}
	return nil
}

func configChanged(f File) []string {
	c := configOf(f.before())
	if c == nil {
		c = configOf(f.Path)
	}
	if c == nil || !f.Unread && !linesDiffer(f.Old, f.New, c.words) {
		return nil
	}
	return []string{"configuration of tests changed: " + Quote(f.Path)}
}

// linesDiffer reports whether a line with one of the words, or any line where there are none, is in one of the texts more often than
// in the other.
func linesDiffer(a, b []byte, words []string) bool {
	count := map[string]int{}
	for line := range strings.Lines(string(a)) {
		count[strings.TrimSpace(line)]++
	}
	for line := range strings.Lines(string(b)) {
		count[strings.TrimSpace(line)]--
	}
	for line, n := range count {
		low := strings.ToLower(line)
		if n != 0 && (len(words) == 0 || slices.ContainsFunc(words, func(w string) bool { return strings.Contains(low, w) })) {
			return true
		}
	}
	return false
}

// makers are programs that a check may call, with the files they take their orders from.
var makers = map[string][]string{
	"make": {"Makefile", "makefile", "GNUmakefile", "*.mk"}, "gmake": {"Makefile", "makefile", "GNUmakefile", "*.mk"},
	"npm": {"package.json"}, "pnpm": {"package.json"}, "yarn": {"package.json"}, "bun": {"package.json"},
	"just": {"justfile", "Justfile", ".justfile"}, "task": {"Taskfile.yml", "Taskfile.yaml"}, "rake": {"Rakefile"},
	"tox": {"tox.ini"}, "nox": {"noxfile.py"}, "mage": {"magefile.go"}, "deno": {"deno.json", "deno.jsonc"},
	"gradle": {"build.gradle", "build.gradle.kts"}, "mvn": {"pom.xml"}, "composer": {"composer.json"},
}

// scriptChanged names a file that a check runs, or takes its orders from, and that the change
// touches: the check is another one than at the base.
func scriptChanged(f File, commands []string) []string {
	for _, line := range commands {
		for _, word := range wordsOf(line) {
			if names(word, f.before()) || names(word, f.Path) {
				return []string{fmt.Sprintf("the check %s runs %s, which the change touches", Quote(line), Quote(f.Path))}
			}
		}
	}
	return nil
}

// wordsOf splits a shell line where words can end, quoted or not.
func wordsOf(line string) []string {
	return strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n;&|(){}<>'\"`=$", r) })
}

// names reports whether a word of a check means the file: its path, also from a directory of the
// repository, or a program that reads files of that name.
func names(word, file string) bool {
	word = path.Clean(word)
	if word == "." || word == ".." || word == "/" {
		return false
	}
	if word == file || strings.Contains(path.Base(word), ".") && strings.HasSuffix("/"+file, "/"+strings.TrimLeft(word, "./")) {
		return true
	}
	for _, pattern := range makers[path.Base(word)] {
		if ok, err := path.Match(pattern, path.Base(file)); ok && err == nil {
			return true
		}
	}
	return false
}
