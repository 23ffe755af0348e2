// Package covered lets the children of tests be counted: a test binary that was started again, to be
// the program itself, writes which statements it ran. It is for tests only, and does nothing where
// no coverage is measured. A child that is killed, or becomes another program, is not counted.
package covered

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// variable is where the children find the directory for what they cover. It is that of Go itself:
// a program that was built with -cover obeys it too.
const variable = "GOCOVERDIR"

// Children has the children of this process counted with it. TestMain calls it first.
func Children() {
	flag.Parse()
	if f := flag.Lookup("test.gocoverdir"); f != nil && f.Value.String() != "" {
		if err := os.Setenv(variable, f.Value.String()); err != nil {
			panic(err) // the name of a variable that is always fine
		}
	}
}

// Exit ends a child with a code, after what it covered was written. The one way to have a test
// binary write that is to run its tests: here none of them, with what it says about that thrown
// away. Where that fails the child ends with 125, so that it cannot go unnoticed.
func Exit(m *testing.M, code int) {
	dir := os.Getenv(variable)
	if dir == "" || testing.CoverMode() == "" {
		os.Exit(code)
	}
	stderr := os.Stderr
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err == nil {
		os.Args = []string{os.Args[0], "-test.run=^$", "-test.gocoverdir=" + dir}
		os.Stdout, os.Stderr = null, null
		if m.Run() == 0 {
			os.Exit(code)
		}
	}
	fmt.Fprintln(stderr, "what this child covered could not be written to", dir, err)
	os.Exit(125)
}
