// Package interlock_test holds the rules of the house as tests: which package may import which,
// how long things may get, and that the documents are true. It has no code of the program.
package interlock_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// module is the name in go.mod.
const module = "interlock"

// source is one Go file as it was parsed, whatever its build tags say.
type source struct {
	name  string // slash-separated, relative to the root
	dir   string // "." for the root
	test  bool
	file  *ast.File
	lines int
	code  int // lines that are neither blank nor only a comment
}

var tree = sync.OnceValues(func() ([]source, *token.FileSet) {
	var found []source
	set := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() && name != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "bin") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(base, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		slash := filepath.ToSlash(name)
		found = append(found, source{
			name: slash, dir: path.Dir(slash), test: strings.HasSuffix(base, "_test.go"),
			file: f, lines: set.File(f.Pos()).LineCount(), code: codeLines(string(text)),
		})
		return nil
	})
	if err != nil {
		panic(err) // the tree does not parse: nothing below can say anything
	}
	return found, set
})

// codeLines counts the lines that are neither blank nor only a comment.
func codeLines(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}

// sources returns every Go file of the module.
func sources(t *testing.T) ([]source, *token.FileSet) {
	t.Helper()
	found, set := tree()
	if len(found) == 0 {
		t.Fatal("no Go file found: the test does not run at the root of the module")
	}
	return found, set
}
