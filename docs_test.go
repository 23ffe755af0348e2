package interlock_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"interlock/internal/cli"
	"interlock/internal/doctor"
	"interlock/internal/run"
	"interlock/internal/sandbox"
)

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// section returns what stands under a heading of the second level.
func section(t *testing.T, doc, heading string) string {
	t.Helper()
	_, after, ok := strings.Cut(doc, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("there is no section %q", heading)
	}
	before, _, _ := strings.Cut(after, "\n## ")
	return before
}

func TestReadmeExitCodes(t *testing.T) {
	want := "| code | meaning |\n|---|---|\n"
	for _, c := range run.ExitCodes {
		want += fmt.Sprintf("| %d | %s |\n", c.Code, c.Meaning)
	}
	if !strings.Contains(section(t, read(t, "README.md"), "Exit codes"), want) {
		t.Errorf("the table of exit codes in README.md is not that of run.ExitCodes:\n%s", want)
	}
}

var (
	fence  = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")
	inline = regexp.MustCompile("`((?:\\./bin/)?interlock [^`]+)`")
	names  = regexp.MustCompile(`^(?:\./bin/interlock|interlock|go run \./cmd/interlock)\s`)
)

// commandLines returns what a document tells its reader to type.
func commandLines(doc string) []string {
	var lines []string
	for _, block := range fence.FindAllStringSubmatch(doc, -1) {
		for line := range strings.Lines(block[1]) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	for _, m := range inline.FindAllStringSubmatch(doc, -1) {
		if !strings.Contains(m[1], "|") { // a list of commands, not a line to type
			lines = append(lines, m[1])
		}
	}
	return slices.DeleteFunc(lines, func(l string) bool { return !names.MatchString(l + " ") })
}

// TestDocumentedCommands: every command line in the documents would be understood. A command that
// is only named (`interlock run`) has to exist.
func TestDocumentedCommands(t *testing.T) {
	found := 0
	for _, name := range []string{"README.md", "DESIGN.md", "SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md"} {
		for _, line := range commandLines(read(t, name)) {
			found++
			words := words(names.ReplaceAllString(line+" ", ""))
			if err := cli.Check(words); err != nil && cli.Check(append(words, "--help")) != nil {
				t.Errorf("%s: %q would be refused: %v", name, line, err)
			} else if err != nil && slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "--") && w != "--json" }) {
				t.Errorf("%s: %q would be refused: %v", name, line, err)
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d command lines found: the test looks in the wrong place", found)
	}
}

// words splits a line as a shell does; it knows single quotes only.
func words(line string) []string {
	var all []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
			continue
		}
		all = append(all, strings.Fields(part)...)
	}
	return all
}

func TestResidualsInDesign(t *testing.T) {
	doc := section(t, read(t, "DESIGN.md"), "What remains")
	for _, r := range doctor.Residuals {
		row := fmt.Sprintf("| %s | %s | %s |\n", r.What, r.Bound, r.Tripwire)
		if !strings.Contains(doc, row) {
			t.Errorf("DESIGN.md lacks the row\n%s", row)
		}
	}
	if got, want := strings.Count(doc, "\n| ")-1, len(doctor.Residuals); got != want {
		t.Errorf("DESIGN.md has %d rows of what remains, doctor prints %d", got, want)
	}
}

// TestGapsInSecurity: the table of what level landlock does not stop is that of the code.
func TestGapsInSecurity(t *testing.T) {
	doc, rows := read(t, "SECURITY.md"), ""
	for _, g := range sandbox.Gaps {
		until := "none"
		if g.Until > 0 {
			until = fmt.Sprint(g.Until)
		}
		rows += fmt.Sprintf("| %s | %s | %s |\n", g.What, g.Bound, until)
	}
	if !strings.Contains(doc, "|---|---|---|\n"+rows+"\n") {
		t.Errorf("SECURITY.md lacks this table:\n%s", rows)
	}
}

// TestDependenciesInDesign: each direct dependency has its line, and each line its dependency.
func TestDependenciesInDesign(t *testing.T) {
	doc := section(t, read(t, "DESIGN.md"), "Dependencies")
	files, _ := sources(t)
	direct, _, _ := strings.Cut(read(t, "go.mod"), "\n)\n")
	rows := 0
	for line := range strings.Lines(direct) {
		name, _, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || !strings.HasPrefix(line, "\t") {
			continue
		}
		used := slices.ContainsFunc(files, func(s source) bool {
			for _, imp := range s.file.Imports {
				if within(strings.Trim(imp.Path.Value, `"`), name) {
					return true
				}
			}
			return false
		})
		listed := strings.Contains(doc, "| "+strings.TrimPrefix(name, "github.com/"))
		if used {
			rows++
		}
		if used != listed {
			t.Errorf("%s: used %t, has a line in DESIGN.md %t", name, used, listed)
		}
	}
	if got := strings.Count(doc, "\n| ") - 1; got != rows {
		t.Errorf("DESIGN.md lists %d dependencies, %d are used", got, rows)
	}
}

// TestLayersInDesign: each package of the table is in the document.
func TestLayersInDesign(t *testing.T) {
	doc := section(t, read(t, "DESIGN.md"), "Layers")
	for dir, l := range layers {
		name := "`" + strings.TrimPrefix(dir, "internal/") + "`"
		row := ""
		for line := range strings.Lines(doc) {
			if strings.HasPrefix(line, fmt.Sprintf("| %d |", l.level)) {
				row = line
			}
		}
		if !strings.Contains(row, name) {
			t.Errorf("DESIGN.md does not have %s on level %d", name, l.level)
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]+)\)`)

// TestLinks: what the documents point to is there.
func TestLinks(t *testing.T) {
	docs, err := filepath.Glob("*.md")
	if err != nil || len(docs) < 5 {
		t.Fatalf("documents: %v, %v", docs, err)
	}
	for _, name := range docs {
		for _, m := range link.FindAllStringSubmatch(read(t, name), -1) {
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestMakeTargets: `make help` describes every target that the documents name.
func TestMakeTargets(t *testing.T) {
	makefile := read(t, "Makefile")
	for _, name := range []string{"README.md", "DESIGN.md", "CONTRIBUTING.md"} {
		for _, m := range regexp.MustCompile("(?m)(?:^|`)make ([a-z]+)").FindAllStringSubmatch(read(t, name), -1) {
			if !regexp.MustCompile(`(?m)^` + m[1] + `:.*## `).MatchString(makefile) {
				t.Errorf("%s names make %s, which is no target with a description", name, m[1])
			}
		}
	}
}
