package interlock_test

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layer is one row of the table in DESIGN.md, section "Layers". The standard library is allowed
// everywhere but in a row that says otherwise; lower never imports higher.
type layer struct {
	level  int
	family string   // drivers of one contract; they never import each other and only cli names them
	suite  bool     // a conformance suite: only tests import it
	may    []string // packages of this module without "internal/", and other modules by their path
}

// layers is the one place where it is written down who may import whom.
var layers = map[string]layer{
	"internal/run":           {level: 0},
	"internal/git":           {level: 0, may: []string{"git/inode"}},
	"internal/scope":         {level: 0},
	"internal/scope/command": {level: 0, may: []string{"mvdan.cc/sh/v3"}}, // a part of scope
	"internal/text":          {level: 0},
	"internal/statedir":      {level: 0, may: []string{"golang.org/x/sys"}},
	"internal/sandbox":       {level: 0, may: []string{"sandbox/process", "sandbox/confine", "sandbox/confine/seccomp", "sandbox/cgroup", "golang.org/x/sys"}},
	"internal/git/inode":     {level: 0}, // a part of git
	"internal/git/traits":    {level: 1, may: []string{"git"}},
	"internal/secret":        {level: 0},
	"internal/git/patch":     {level: 1, may: []string{"git"}},
	"internal/filetree":      {level: 0},
	// Parts of the sandbox.
	"internal/sandbox/confine":         {level: 0, may: []string{"sandbox/confine/seccomp", "golang.org/x/sys", "github.com/landlock-lsm/go-landlock"}},
	"internal/sandbox/confine/seccomp": {level: 0, may: []string{"golang.org/x/sys"}},
	"internal/sandbox/process":         {level: 0, may: []string{"golang.org/x/sys"}}, // for whoever has to know that a holder is dead
	"internal/sandbox/cgroup":          {level: 0, may: []string{"golang.org/x/sys"}},

	"internal/boottime":  {level: 0, may: []string{"golang.org/x/sys"}},
	"internal/failpoint": {level: 0},
	"internal/shell":     {level: 0},
	"internal/detect":    {level: 0},
	"internal/covered":   {level: 0, suite: true}, // has children of tests counted
	"internal/testcount": {level: 0},
	"internal/wire":      {level: 0},
	"internal/testdiff":  {level: 0},

	"internal/input":     {level: 1, may: []string{"text"}},
	"internal/store":     {level: 1, may: []string{"run"}},
	"internal/forge":     {level: 1, may: []string{"run", "git", "failpoint"}},
	"internal/agent":     {level: 1, may: []string{"run", "sandbox"}},
	"internal/toolchain": {level: 1, may: []string{"sandbox", "sandbox/confine"}},
	"internal/policy":    {level: 1, may: []string{"run", "scope", "secret", "shell", "text", "go.yaml.in/yaml/v4", "github.com/google/jsonschema-go"}},
	"internal/demo":      {level: 1, may: []string{"git"}},

	"internal/store/sqlite/statement": {level: 0}, // a part of the driver
	"internal/store/sqlite":           {level: 2, family: "store", may: []string{"store", "store/sqlite/statement", "boottime", "run", "statedir", "failpoint", "golang.org/x/sys", "modernc.org/sqlite"}},
	"internal/forge/local":            {level: 2, family: "forge", may: []string{"forge", "git", "git/traits", "run", "failpoint"}},
	"internal/agent/command":          {level: 2, family: "agent", may: []string{"agent", "sandbox", "shell", "run"}},

	"internal/lease":            {level: 2, may: []string{"run", "sandbox/process", "store", "failpoint"}},
	"internal/snapshot":         {level: 2, may: []string{"run", "git"}},
	"internal/scriptmodel":      {level: 2},
	"internal/broker":           {level: 3, may: []string{"wire"}},
	"internal/failpoint/writes": {level: 2, may: []string{"failpoint", "store", "forge", "run"}},

	"internal/storetest": {level: 2, suite: true, may: []string{"store", "run", "covered", "github.com/google/go-cmp", "pgregory.net/rapid"}},
	"internal/forgetest": {level: 2, suite: true, may: []string{"forge", "run", "git", "github.com/google/go-cmp"}},

	"internal/lineartest": {level: 2, suite: true, may: []string{"golang.org/x/sys", "github.com/anishathalye/porcupine"}},

	"internal/check":     {level: 3, may: []string{"run", "git", "sandbox", "toolchain", "testcount", "testdiff", "filetree"}},
	"internal/workspace": {level: 3, may: []string{"run", "git", "sandbox", "toolchain", "store", "snapshot", "filetree", "statedir"}},
	"internal/claim":     {level: 3, may: []string{"run", "git", "sandbox/process", "text", "store", "forge"}},

	"internal/outgoing": {level: 3, may: []string{"statedir", "run", "git", "git/patch", "scope", "secret", "text", "forge"}},

	"internal/engine":    {level: 4, may: []string{"outgoing", "run", "git", "git/traits", "sandbox/process", "sandbox", "toolchain", "scope", "shell", "text", "failpoint", "store", "forge", "agent", "lease", "workspace", "check", "claim", "engine/eligibility"}},
	"internal/retention": {level: 4, may: []string{"run", "git", "sandbox", "text", "filetree", "statedir", "store", "lease", "workspace", "claim", "failpoint", "golang.org/x/sys"}},

	"internal/view":     {level: 5, may: []string{"run", "store", "forge", "claim", "text", "retention", "engine"}},
	"internal/settings": {level: 5, may: []string{"git", "retention", "toolchain", "text", "detect", "forge", "policy", "github.com/spf13/pflag"}},
	"internal/doctor":   {level: 5, may: []string{"git", "sandbox", "text"}},

	"internal/cli":                {level: 6, may: []string{"run", "git", "secret", "sandbox", "text", "store", "forge", "agent", "snapshot", "lease", "demo", "policy", "settings", "check", "claim", "workspace", "retention", "engine", "view", "doctor", "failpoint/writes", "store/sqlite", "forge/local", "agent/command", "github.com/spf13/cobra", "input", "problem", "sessionlog", "reason", "progress", "follow", "manual", "completion", "github.com/spf13/pflag"}},
	"internal/engine/eligibility": {level: 4, may: []string{"run", "text", "store", "forge", "claim"}}, // a part of the engine
	"internal/reason":             {level: 5, may: []string{"run", "text", "store", "forge", "lease", "claim", "engine/eligibility"}},
	"internal/progress":           {level: 1, may: []string{"text", "golang.org/x/sys", "github.com/briandowns/spinner", "github.com/fatih/color"}},
	"internal/problem":            {level: 3, may: []string{"run", "git", "store", "forge", "agent"}},
	"internal/sessionlog":         {level: 5, may: []string{"text", "store", "check"}},
	"internal/manual":             {level: 5, may: []string{"run", "github.com/spf13/cobra", "github.com/spf13/pflag"}},
	"internal/completion":         {level: 5, may: []string{"run", "forge", "policy", "progress", "text", "github.com/spf13/cobra"}},
	"internal/follow":             {level: 5, may: []string{"run", "store", "claim"}},

	"cmd/interlock":      {level: 7, may: []string{"cli"}},
	"cmd/interlock-gate": {level: 7, may: []string{"wire"}},

	// What make bench runs; no part of the program imports any of it.
	"internal/bench":         {level: 0},
	"internal/bench/floor":   {level: 0},
	"internal/bench/rows":    {level: 6, may: []string{"bench", "bench/floor", "run", "git", "sandbox", "scope", "store", "lease", "store/sqlite", "modernc.org/sqlite"}},
	"internal/bench/measure": {level: 7, may: []string{"bench/rows"}},
	"internal/bench/empty":   {level: 7},
	"bench":                  {level: 7, may: []string{"bench", "go.etcd.io/etcd", "github.com/riverqueue/river", "modernc.org/sqlite"}}, // a module of its own
}

// forbidden are package names that say nothing.
var forbidden = regexp.MustCompile(`(?i)^(pkg|utils?|helpers?|models?|types?|configs?|common|base|misc|manager|service|worker|job)$`)

func TestLayersTableIsSound(t *testing.T) {
	for dir, l := range layers {
		for _, m := range l.may {
			below, ours := layers["internal/"+m]
			if !ours {
				if !strings.Contains(m, ".") {
					t.Errorf("%s may import %s, which is no row of the table", dir, m)
				}
				continue
			}
			if below.level >= l.level && !within("internal/"+m, dir) { // but a package may have parts of its own
				t.Errorf("%s (level %d) may import %s (level %d): lower never imports higher", dir, l.level, m, below.level)
			}
			if below.family != "" && dir != "internal/cli" && dir != "internal/bench/rows" {
				t.Errorf("%s may import the driver %s: only cli names drivers, and what measures one", dir, m)
			}
		}
	}
}

func TestLayers(t *testing.T) {
	files, _ := sources(t)
	for _, s := range files {
		if s.test {
			continue
		}
		l, known := layers[s.dir]
		if !known {
			t.Errorf("%s: package %s is in no layer: give it a row in layers_test.go and in DESIGN.md", s.name, s.dir)
			continue
		}
		for _, imp := range s.file.Imports {
			name, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if why := mayNot(l, name); why != "" {
				t.Errorf("%s imports %s: %s", s.name, name, why)
			}
		}
	}
}

// mayNot says why a package of this layer may not import name, "" if it may.
func mayNot(l layer, name string) string {
	if !strings.Contains(name, ".") && !within(name, module) {
		return "" // the standard library
	}
	short := strings.TrimPrefix(name, module+"/internal/")
	for _, m := range l.may {
		if short == m || strings.Contains(m, ".") && within(name, m) {
			return ""
		}
	}
	return fmt.Sprintf("its layer may import the standard library and %q", l.may)
}

// within reports whether the import path name is root or lies below it.
func within(name, root string) bool { return name == root || strings.HasPrefix(name, root+"/") }

// TestDriversInTests: tests may use a real driver as their store or forge, but a driver's own
// tests never another driver of its family, and suites are for tests only.
func TestDriversInTests(t *testing.T) {
	files, _ := sources(t)
	for _, s := range files {
		for _, imp := range s.file.Imports {
			name, _ := strconv.Unquote(imp.Path.Value)
			dir := strings.TrimPrefix(name, module+"/")
			to, ours := layers[dir]
			if !ours {
				continue
			}
			if from := layers[s.dir]; from.family != "" && from.family == to.family && dir != s.dir {
				t.Errorf("%s imports %s: drivers of one family never import each other", s.name, name)
			}
			if to.suite && !s.test && !layers[s.dir].suite {
				t.Errorf("%s imports %s: a conformance suite is for tests only", s.name, name)
			}
		}
	}
}

func TestNoUnusedRow(t *testing.T) {
	files, _ := sources(t)
	for _, dir := range slices.Sorted(maps.Keys(layers)) {
		if !slices.ContainsFunc(files, func(s source) bool { return s.dir == dir && !s.test }) {
			t.Errorf("the table has a row for %s, which is not there: a package appears when it is needed", dir)
		}
	}
}

func TestPackageNames(t *testing.T) {
	files, _ := sources(t)
	for _, s := range files {
		for _, part := range append(strings.Split(s.dir, "/"), strings.TrimSuffix(s.file.Name.Name, "_test")) {
			if forbidden.MatchString(part) {
				t.Errorf("%s: %q says nothing about what is in it; name the idea", s.name, part)
			}
		}
	}
}

// says: one doc comment per package that also tells what it never does.
var says = regexp.MustCompile(`(?i)\b(never|no|not|nothing|none|only)\b`)

func TestPackageComments(t *testing.T) {
	files, _ := sources(t)
	docs := map[string][]string{}
	for _, s := range files {
		if s.test {
			continue
		}
		docs[s.dir] = append(docs[s.dir], "")
		if s.file.Doc == nil {
			continue
		}
		text := s.file.Doc.Text()
		want := "Package " + s.file.Name.Name + " "
		if s.file.Name.Name == "main" {
			want = "Command " + path.Base(s.dir) + " "
		}
		if !strings.HasPrefix(text, want) {
			t.Errorf("%s: the comment above the package clause begins with %q, not with %q", s.name, firstLine(text), want)
		}
		docs[s.dir] = append(docs[s.dir], text)
	}
	for dir, texts := range docs {
		texts = slices.DeleteFunc(texts, func(s string) bool { return s == "" })
		switch {
		case len(texts) != 1:
			t.Errorf("%s has %d package comments; one says what it is for and what it never does", dir, len(texts))
		case !says.MatchString(texts[0]):
			t.Errorf("%s: the package comment does not say what it never does: %s", dir, firstLine(texts[0]))
		}
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
