// Command interlock lets coding agents work the issues of a repository, unattended and safely.
// It is one call, and nothing else; all commands are in package cli.
package main

import (
	"os"

	"interlock/internal/cli"
)

func main() { os.Exit(cli.Process(os.Args[1:])) }
