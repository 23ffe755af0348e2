package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"interlock/internal/manual"
	"interlock/internal/text"
)

func (a *app) manCommand() *cobra.Command {
	var c *cobra.Command
	c = a.command(cobra.Command{
		Use:     "man DIR",
		Short:   "write the manual pages of all commands into a directory",
		Long:    "man writes one page for each command, for man(1), into DIR. Pages that are there are written over.",
		Example: "  interlock man ./man\n  interlock man --json ./man",
		Args:    one("DIR", "interlock man ./man"),
	}, func(_ context.Context, args []string) error {
		names, err := manual.Write(a.path(args[0]), c.Root())
		if err != nil {
			return err
		}
		return a.print(map[string]any{"dir": a.path(args[0]), "pages": names},
			fmt.Sprintf("%d pages; read the first with: man -l %s\n", len(names), text.Quote(a.path(args[0])+"/interlock.1")))
	})
	a.jsonFlag(c, "print the directory and the names of the pages as one JSON object")
	return c
}
