// Command measure is what `make bench` runs. It is no part of the program, and nothing is built from
// it that people install.
package main

import (
	"os"

	"interlock/internal/bench/rows"
)

func main() {
	if code, handled := rows.Reenter(os.Args); handled {
		os.Exit(code)
	}
	os.Exit(rows.Main(os.Args[1:], os.Stdout, os.Stderr))
}
