package cli

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"interlock/internal/text"
)

// version is what this binary was built from.
type version struct {
	Version  string `json:"version"`  // of the module, "(devel)" for a build from a work tree
	Revision string `json:"revision"` // git commit, "" when it was not recorded
	Modified bool   `json:"modified"` // the work tree had changes that were not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func built() version {
	v := version{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (a *app) versionCommand() *cobra.Command {
	c := a.command(cobra.Command{
		Use:     "version",
		Short:   "say what this binary was built from",
		Example: "  interlock version\n  interlock version --json",
		Args:    cobra.NoArgs,
	}, func(context.Context, []string) error {
		v := built()
		if a.json {
			return text.JSON(a.env.Stdout, v)
		}
		line := "interlock " + v.Version
		if v.Revision != "" {
			line += " " + v.Revision
		}
		if v.Modified {
			line += " (modified)"
		}
		_, err := fmt.Fprintf(a.env.Stdout, "%s, %s, %s\n", line, v.Go, v.Platform)
		return err
	})
	a.jsonFlag(c, "print one JSON object")
	return c
}
