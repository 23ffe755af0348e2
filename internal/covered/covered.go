// Package covered has the children of tests counted: a test binary that was started again, to be the
// program itself, writes at its exit which statements it ran. It is for tests only, and does nothing
// where no coverage is measured. A child that is killed, or becomes another program, is not counted.
package covered

import (
	"flag"
	"os"
)

// Children has the children of this process counted with it. TestMain calls it, in the process that
// runs the tests. Go's own variable leads the children to the directory for what they cover; go test
// itself sets it to a place that it removes, whatever -test.gocoverdir says.
func Children() {
	flag.Parse()
	if f := flag.Lookup("test.gocoverdir"); f != nil && f.Value.String() != "" {
		if err := os.Setenv("GOCOVERDIR", f.Value.String()); err != nil {
			panic(err) // the name of a variable that is always fine
		}
	}
}
