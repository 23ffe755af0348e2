package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// programs are what a command that is to be typed next may begin with.
var programs = []string{"interlock", "git", "chmod", "df", "quota", "kill", "apt-get"}

// prose is what no command line has: text that goes on after it, or instead of it.
var prose = regexp.MustCompile(`[;,:] |, |\b(then|or|and|with|again)\b`)

// isCommand says why a text is no command line that can be pasted, "" if it is one.
func isCommand(line string) string {
	w := words(line)
	switch {
	case len(w) == 0 || !slices.Contains(programs, w[0]):
		return "its first word is no program"
	case prose.MatchString(regexp.MustCompile(`'[^']*'`).ReplaceAllString(line, "''")):
		return "it holds prose"
	case w[0] != "interlock", len(w) > 1 && (w[1] == "X" || w[1] == "--state-dir"): // a command line that was typed
		return ""
	}
	root := (&app{dry: true}).root()
	if c, _, err := root.Find(w[1:]); err != nil || c == root && len(w) > 1 && !strings.HasPrefix(w[1], "-") {
		return "interlock has no such command"
	}
	return ""
}

// said is the text that an expression makes, with an X for what is not written down in it; ok is
// false when its beginning is not.
func said(e ast.Expr) (line string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return regexp.MustCompile(`%[.0-9]*[a-z]`).ReplaceAllString(s, "X"), err == nil && s != ""
	case *ast.BinaryExpr:
		left, ok := said(e.X)
		right, known := said(e.Y)
		if !known {
			right = "X"
		}
		return left + right, ok
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Sprintf" || ok && f.Sel.Name == "carry" {
			return said(e.Args[0])
		}
		if f, ok := e.Fun.(*ast.Ident); ok && f.Name == "carry" {
			return said(e.Args[0])
		}
	}
	return "", false
}

// nextDirs are the packages that say what is to be typed next.
var nextDirs = []string{".", "../engine", "../engine/eligibility", "../claim", "../run", "../view", "../reason", "../problem", "../forge/local"}

// nexts are the expressions in a file that say what is to be typed next.
func nexts(f *ast.File) (all []ast.Expr) {
	at := map[string]int{"usageError": 1, "refusal": 3, "told": 3, "kind": 3}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && strings.EqualFold(key.Name, "next") {
				all = append(all, n.Value)
			}
		case *ast.AssignStmt:
			for i, l := range n.Lhs {
				id, plain := l.(*ast.Ident)
				sel, field := l.(*ast.SelectorExpr)
				if n.Tok != token.ADD_ASSIGN && len(n.Rhs) == len(n.Lhs) && (plain && id.Name == "next" || field && sel.Sel.Name == "Next") {
					all = append(all, n.Rhs[i])
				}
			}
		case *ast.CompositeLit:
			name, _ := n.Type.(*ast.Ident)
			if list, ok := n.Type.(*ast.ArrayType); ok {
				if name, _ = list.Elt.(*ast.Ident); name == nil || name.Name != "kind" {
					return true
				}
				for _, row := range n.Elts {
					all = append(all, row.(*ast.CompositeLit).Elts[at["kind"]])
				}
				return true
			}
			if name == nil || len(n.Elts) == 0 {
				return true
			}
			if _, keyed := n.Elts[0].(*ast.KeyValueExpr); !keyed && at[name.Name] > 0 && at[name.Name] < len(n.Elts) {
				all = append(all, n.Elts[at[name.Name]])
			}
		}
		return true
	})
	return all
}

// TestNextIsACommand: what an error or a resting run says comes next is one command line, as it can
// be pasted, of a program that is known and a command of ours that there is.
func TestNextIsACommand(t *testing.T) {
	t.Parallel()
	found := 0
	for _, dir := range nextDirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range nexts(f) {
				line, ok := said(e)
				if !ok {
					continue // made elsewhere, where it is looked at
				}
				found++
				if why := isCommand(line); why != "" {
					t.Errorf("%s: %q is to be typed next, but %s", set.Position(e.Pos()), line, why)
				}
			}
		}
	}
	if found < 80 {
		t.Errorf("only %d of what is to be typed next were found", found)
	}
	for _, bad := range []string{"", "type the command again", "interlock logs 1, then mend the issue", "interlock frobnicate", "df -h; or go on"} {
		if isCommand(bad) == "" {
			t.Errorf("%q is taken for a command line", bad)
		}
	}
}

// NextTemplates are all command lines that are to be typed next, with an X for what is not written
// down in them.
func NextTemplates() (all []string) {
	for _, dir := range nextDirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			panic(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				panic(err)
			}
			for _, e := range nexts(f) {
				if line, ok := said(e); ok && !slices.Contains(all, line) {
					all = append(all, line)
				}
			}
		}
	}
	return all
}
