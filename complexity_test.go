package interlock_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"testing"
)

// complexityMax is the most ways that may lead through a function: one, and one more for each
// decision in it (McCabe's cyclomatic number). Function literals count to the function they are in.
// Tests and suites are left out: what they assert are decisions too, one after the other.
const complexityMax = 15

// complexity counts the decisions of a function.
func complexity(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f.Body, func(node ast.Node) bool {
		switch d := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if d.List != nil { // default is no decision
				n++
			}
		case *ast.CommClause:
			if d.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if d.Op == token.LAND || d.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

func TestComplexityBudget(t *testing.T) {
	files, _ := sources(t)
	for _, s := range files {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && !s.test && !layers[s.dir].suite {
				over(t, fmt.Sprintf("complexity of %s in %s", f.Name.Name, s.name), complexity(f), complexityMax)
			}
		}
	}
}
