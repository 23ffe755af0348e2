// Package detect looks at a work tree and a machine to propose settings: the base branch, the
// checks, the coding agents that are there. It only looks; it never runs anything and decides
// nothing.
package detect

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// Finding is one proposal with what it was seen by.
type Finding struct {
	Value string `json:"value"`
	Why   string `json:"why"`
}

// mostBytes is how much of a file is looked at.
const mostBytes = 1 << 20

// read returns a file of the work tree, "" where there is no regular one. A link is not followed:
// it may lead anywhere.
func read(dir, name string) string {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	data, err := io.ReadAll(io.LimitReader(f, mostBytes))
	if err != nil {
		return ""
	}
	return string(data)
}

// there reports whether a work tree has a regular file of that name.
func there(dir, name string) bool {
	info, err := os.Lstat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular()
}

// Checks proposes shell lines that tell whether work in this tree is right: those of the languages
// it uses, else those of its makefile.
func Checks(dir string) []Finding {
	var all []Finding
	if there(dir, "go.mod") {
		all = append(all, Finding{"go test ./...", "go.mod"})
	}
	if line := node(dir); line != "" {
		all = append(all, Finding{line, "the test script of package.json"})
	}
	if there(dir, "Cargo.toml") {
		all = append(all, Finding{"cargo test", "Cargo.toml"})
	}
	if why := pytest(dir); why != "" {
		all = append(all, Finding{"python3 -m pytest", why})
	}
	if target, file := makefile(dir); target != "" && len(all) == 0 {
		all = append(all, Finding{"make " + target, "the target " + target + " of " + file})
	}
	return all
}

// node is how the tests of a JavaScript package are run in a clean tree, "" where it has none.
func node(dir string) string {
	var p struct {
		Scripts              map[string]string
		Dependencies         map[string]any
		DevDependencies      map[string]any
		OptionalDependencies map[string]any
	}
	if json.Unmarshal([]byte(read(dir, "package.json")), &p) != nil {
		return ""
	}
	test := p.Scripts["test"]
	if strings.TrimSpace(test) == "" || strings.Contains(test, "no test specified") { // what npm init writes
		return ""
	}
	for _, m := range []struct{ lock, line string }{
		{"package-lock.json", "npm ci && npm test"},
		{"npm-shrinkwrap.json", "npm ci && npm test"},
		{"pnpm-lock.yaml", "pnpm install --frozen-lockfile && pnpm test"},
		{"yarn.lock", "yarn install --frozen-lockfile && yarn test"},
	} {
		if there(dir, m.lock) {
			return m.line
		}
	}
	if len(p.Dependencies)+len(p.DevDependencies)+len(p.OptionalDependencies) > 0 {
		return "npm install && npm test"
	}
	return "npm test"
}

// pytest says by what it is seen that the tests are pytest's, "" where it is not.
func pytest(dir string) string {
	for _, f := range []struct{ name, has string }{
		{"pytest.ini", ""}, {"conftest.py", ""}, {"tests/conftest.py", ""}, {"pyproject.toml", "pytest"},
		{"setup.cfg", "[tool:pytest]"}, {"tox.ini", "[pytest]"},
	} {
		if there(dir, f.name) && strings.Contains(read(dir, f.name), f.has) {
			return f.name
		}
	}
	return ""
}

// makefile returns the target of a makefile that checks, and the makefile.
func makefile(dir string) (target, file string) {
	for _, file := range []string{"GNUmakefile", "makefile", "Makefile"} { // make's own order
		text := read(dir, file)
		for _, target := range []string{"check", "test"} {
			if regexp.MustCompile(`(?m)^` + target + `[ \t]*:(?:[^=]|$)`).MatchString(text) {
				return target, file
			}
		}
		if text != "" {
			return "", ""
		}
	}
	return "", ""
}

// Base proposes the branch to change: the one that is checked out, unless it looks like a branch
// for one piece of work while there is a main one. "" where nothing can be said.
func Base(checkedOut string, branches []string) Finding {
	mains := []string{"main", "master", "trunk"}
	if checkedOut != "" && slices.Contains(mains, checkedOut) {
		return Finding{checkedOut, "the branch that is checked out"}
	}
	for _, m := range mains {
		if slices.Contains(branches, m) {
			return Finding{m, "there is a branch of that name"}
		}
	}
	if checkedOut == "" {
		return Finding{}
	}
	return Finding{checkedOut, "the branch that is checked out"}
}

// agents are the programs of coding agents that are looked for.
var agents = []string{"claude", "codex", "opencode", "pi", "gemini"}

// Agents returns the coding agents that are in the directories of path, as $PATH has them: name
// and where. It says nothing of whether they work.
func Agents(path string) []Finding {
	var all []Finding
	for _, name := range agents {
		for _, dir := range filepath.SplitList(path) {
			at := filepath.Join(dir, name)
			info, err := os.Stat(at)
			if filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				all = append(all, Finding{name, at})
				break
			}
		}
	}
	return all
}
