package interlock_test

import (
	"fmt"
	"go/ast"
	"slices"
	"testing"
)

// The budgets. What is longer holds more than one idea.
const (
	fileLines    = 500  // every file, tests too
	packageLines = 2000 // of code: without tests, comments and blank lines
	functionMax  = 80   // no function, tests too
	functionP90  = 40   // nine of ten functions, without tests
	methodsMax   = 10   // of an interface
)

// exceptions are the things that may be over a budget, each with its reason. The number is the
// most it may be: an exception has a budget too.
var exceptions = map[string]exception{
	"lines of package internal/cli": {3130, "one file for each command, and there are many; they wire and print, and decide nothing"},
}

type exception struct {
	most   int
	reason string
}

// over reports a thing that is over its budget, and an exception that is no longer needed.
func over(t *testing.T, thing string, is, budget int) {
	t.Helper()
	e, excepted := exceptions[thing]
	switch {
	case excepted && is <= budget:
		t.Errorf("%s has %d, within the budget of %d: take its exception away", thing, is, budget)
	case excepted && e.reason == "":
		t.Errorf("%s has an exception without a reason", thing)
	case excepted && is > e.most:
		t.Errorf("%s has %d, more than its exception of %d (%s)", thing, is, e.most, e.reason)
	case !excepted && is > budget:
		t.Errorf("%s has %d, the budget is %d: split it by idea", thing, is, budget)
	}
}

func TestFileBudget(t *testing.T) {
	files, _ := sources(t)
	sum := map[string]int{}
	for _, s := range files {
		over(t, "lines of "+s.name, s.lines, fileLines)
		if !s.test {
			sum[s.dir] += s.code
		}
	}
	for dir, n := range sum {
		over(t, "lines of package "+dir, n, packageLines)
	}
}

func TestFunctionBudget(t *testing.T) {
	files, set := sources(t)
	var lengths []int
	for _, s := range files {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			n := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1
			over(t, fmt.Sprintf("lines of %s in %s", f.Name.Name, s.name), n, functionMax)
			if !s.test {
				lengths = append(lengths, n)
			}
		}
	}
	slices.Sort(lengths)
	over(t, "lines of nine of ten functions", lengths[len(lengths)*9/10], functionP90)
}

func TestInterfaceBudget(t *testing.T) {
	files, set := sources(t)
	for _, s := range files {
		ast.Inspect(s.file, func(n ast.Node) bool {
			i, ok := n.(*ast.InterfaceType)
			if !ok {
				return true
			}
			where := fmt.Sprintf("methods of the interface at %s:%d", s.name, set.Position(i.Pos()).Line)
			methods := 0
			for _, f := range i.Methods.List {
				methods += max(1, len(f.Names))
			}
			over(t, where, methods, methodsMax)
			return true
		})
	}
}
