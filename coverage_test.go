package interlock_test

import (
	"bufio"
	"cmp"
	"fmt"
	"go/ast"
	"io"
	"path"
	"slices"
	"strings"
	"testing"
)

// coverageFloor is the least share of a package's statements that the tests run, in per cent; child
// processes count. The conformance suites are tests themselves, and are not measured.
const coverageFloor = 85

// uncounted are functions that run only where nothing can be counted, each with its reason and the
// most statements it may have: a list of exceptions has a budget too. What they do is tested by what
// it leads to.
var uncounted = map[string]exception{
	"internal/sandbox/confine/confine.go Main":             {24, beforeExec},
	"internal/sandbox/confine/confine.go Order.apply":      {18, beforeExec},
	"internal/sandbox/confine/confine.go Order.restrict":   {8, beforeExec},
	"internal/sandbox/confine/confine.go Order.rules":      {22, beforeExec},
	"internal/sandbox/confine/confine.go Order.run":        {12, beforeExec},
	"internal/sandbox/confine/confine.go dropCapabilities": {20, beforeExec},
	"internal/sandbox/confine/confine.go descriptor":       {7, beforeExec},
	"internal/sandbox/upload.go execMain":                  {24, beforeExec},
	"internal/sandbox/upload.go enterConfined":             {14, beforeExec},
	"internal/sandbox/bwrap.go enterDevices":               {17, beforeExec},
	"internal/failpoint/on.go Here":                        {10, killed},
	"internal/failpoint/on.go first":                       {14, killed},
	"internal/failpoint/on.go Fault":                       {4, killed},
}

// apart are packages of which the tests are no part of make test, each with the reason.
var apart = map[string]string{
	"internal/bench/rows": "to run each row once takes most of a minute: make rows does, and .ci/run with it",
}

// killed is the other reason.
const killed = "ends the process by SIGKILL, or is reached in one that is killed later: what it counted is gone with it"

// beforeExec is the reason that most have.
const beforeExec = "runs between fork and exec: the process becomes another program, and what it counted is gone with it"

// block is a run of statements that are all executed or none.
type block struct {
	file       string // relative to the root
	line, col  int    // of its begin
	statements int
	hit        bool
}

// readProfile reads a profile as go tool covdata textfmt writes it. A block that several programs
// have was hit when one of them ran it.
func readProfile(r io.Reader) ([]block, error) {
	found := map[string]block{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "mode:") {
			continue
		}
		var b block
		var toLine, toCol, count int
		place, counts, _ := strings.Cut(lines.Text(), " ")
		name, span, ok := strings.Cut(place, ":")
		if !ok || !within(name, module) {
			return nil, fmt.Errorf("a line that is not understood: %q", lines.Text())
		}
		if _, err := fmt.Sscanf(span, "%d.%d,%d.%d", &b.line, &b.col, &toLine, &toCol); err != nil {
			return nil, fmt.Errorf("%q: %w", lines.Text(), err)
		}
		if _, err := fmt.Sscanf(counts, "%d %d", &b.statements, &count); err != nil {
			return nil, fmt.Errorf("%q: %w", lines.Text(), err)
		}
		b.file, b.hit = strings.TrimPrefix(name, module+"/"), count > 0 || found[place].hit
		found[place] = b
	}
	blocks := make([]block, 0, len(found))
	for _, b := range found {
		blocks = append(blocks, b)
	}
	return blocks, lines.Err()
}

// share is how much of something is covered.
type share struct{ hit, all int }

func (s *share) add(b block) {
	s.all += b.statements
	if b.hit {
		s.hit += b.statements
	}
}

// percent is 100 where there is nothing to cover.
func (s share) percent() float64 {
	if s.all == 0 {
		return 100
	}
	return 100 * float64(s.hit) / float64(s.all)
}

// coverage is a profile by package, by file, and by function ("file name" or "file Type.name").
type coverage struct{ packages, files, functions map[string]share }

// sum sums a profile up. What is excepted counts for its function only.
func sum(t *testing.T, blocks []block, excepted map[string]exception) coverage {
	t.Helper()
	c := coverage{map[string]share{}, map[string]share{}, map[string]share{}}
	add := func(to map[string]share, name string, b block) {
		s := to[name]
		s.add(b)
		to[name] = s
	}
	names := functionAt(t)
	for _, b := range blocks {
		dir := path.Dir(b.file)
		if layers[dir].suite || apart[dir] != "" {
			continue
		}
		f := b.file + " " + names(b)
		add(c.functions, f, b)
		if _, no := excepted[f]; !no {
			add(c.packages, dir, b)
			add(c.files, b.file, b)
		}
	}
	return c
}

// functionAt returns what names the function that a block is in.
func functionAt(t *testing.T) func(block) string {
	files, set := sources(t)
	byName := map[string]source{}
	for _, s := range files {
		byName[s.name] = s
	}
	return func(b block) string {
		for _, d := range byName[b.file].file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Body != nil && set.Position(f.Pos()).Line <= b.line && b.line <= set.Position(f.End()).Line {
				return receiver(f) + f.Name.Name
			}
		}
		return "(outside of functions)"
	}
}

func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	t := f.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "."
	}
	return ""
}

// judge says what is wrong with a coverage: packages below the floor, with the files and functions
// that lack most, and exceptions that are not needed or too big.
func judge(c coverage, floor float64, excepted map[string]exception) (faults []string) {
	for dir, s := range c.packages {
		if s.percent() < floor {
			faults = append(faults, fmt.Sprintf("%s: %.1f %% of %d statements, the floor is %.0f %%; least in %s; %s",
				dir, s.percent(), s.all, floor, worst(c.files, dir+"/", 3, excepted), worst(c.functions, dir+"/", 6, excepted)))
		}
	}
	for name, e := range excepted {
		s, there := c.functions[name]
		switch {
		case !there:
			faults = append(faults, name+" is excepted, and is not there")
		case e.reason == "":
			faults = append(faults, name+" is excepted without a reason")
		case s.all > e.most:
			faults = append(faults, fmt.Sprintf("%s has %d statements, more than its exception of %d (%s)", name, s.all, e.most, e.reason))
		case s.percent() >= floor:
			faults = append(faults, fmt.Sprintf("%s is covered (%.1f %%): take its exception away", name, s.percent()))
		}
	}
	slices.Sort(faults)
	return faults
}

// worst names those whose name begins with prefix and that lack most statements.
func worst(of map[string]share, prefix string, most int, excepted map[string]exception) string {
	var names []string
	for name, s := range of {
		rest, in := strings.CutPrefix(name, prefix)
		if _, no := excepted[name]; in && !no && !strings.Contains(rest, "/") && s.hit < s.all {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(of[b].all-of[b].hit, of[a].all-of[a].hit), cmp.Compare(a, b))
	})
	var out []string
	for _, name := range names[:min(len(names), most)] {
		out = append(out, fmt.Sprintf("%s (%d of %d not run)", strings.TrimPrefix(name, prefix), of[name].all-of[name].hit, of[name].all))
	}
	return strings.Join(out, ", ")
}

// needsCoverage reports whether a file has statements that this platform and no build tag compiles.
func needsCoverage(s source) bool {
	if s.test || layers[s.dir].suite || apart[s.dir] != "" || s.file.Name.Name == "main" {
		return false
	}
	constrained := strings.Contains(strings.TrimSuffix(path.Base(s.name), ".go"), "_") // a platform's file
	for _, g := range s.file.Comments {
		for _, c := range g.List {
			constrained = constrained || strings.HasPrefix(c.Text, "//go:build ")
		}
	}
	return !constrained && slices.ContainsFunc(s.file.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && f.Body != nil && len(f.Body.List) > 0
	})
}

// TestCoverageIsCounted: blocks that several programs have count once, suites do not count, and a
// package below the floor is named with what lacks.
func TestCoverageIsCounted(t *testing.T) {
	files, set := sources(t)
	i := slices.IndexFunc(files, func(s source) bool { return s.name == "internal/text/text.go" })
	line := 0
	for _, d := range files[i].file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "Clean" {
			line = set.Position(f.Pos()).Line
		}
	}
	blocks, err := readProfile(strings.NewReader(fmt.Sprintf(`mode: set
interlock/internal/text/text.go:%[1]d.1,%[1]d.9 3 0
interlock/internal/text/text.go:%[2]d.1,%[2]d.9 1 0
interlock/internal/text/text.go:%[2]d.1,%[2]d.9 1 1
interlock/internal/text/text.go:%[2]d.1,%[2]d.9 1 0
interlock/internal/covered/covered.go:1.1,2.2 50 0
`, line, line+1)))
	if err != nil {
		t.Fatal(err)
	}
	const clean = "internal/text/text.go Clean"
	for name, c := range map[string]struct {
		excepted map[string]exception
		floor    float64
		want     string
	}{
		"below":      {nil, 26, "internal/text: 25.0 % of 4 statements, the floor is 26 %; least in text.go (3 of 4 not run); text.go Clean (3 of 4 not run)"},
		"at":         {nil, 25, ""},
		"excepted":   {map[string]exception{clean: {4, "x"}}, 85, ""},
		"too big":    {map[string]exception{clean: {3, "x"}}, 85, clean + " has 4 statements, more than its exception of 3 (x)"},
		"no reason":  {map[string]exception{clean: {4, ""}}, 85, clean + " is excepted without a reason"},
		"not needed": {map[string]exception{clean: {4, "x"}}, 25, clean + " is covered (25.0 %): take its exception away"},
		"not there":  {map[string]exception{"internal/text/text.go None": {4, "x"}}, 25, "internal/text/text.go None is excepted, and is not there"},
	} {
		got := strings.Join(judge(sum(t, blocks, c.excepted), c.floor, c.excepted), "\n")
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	for _, bad := range []string{"elsewhere/a.go:1.1,2.2 1 1", "interlock/a.go:1,2 1 1", "interlock/a.go:1.1,2.2 1", "x"} {
		if _, err := readProfile(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is taken for a line of a profile", bad)
		}
	}
}
