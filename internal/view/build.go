package view

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Build is what this binary was built from.
type Build struct {
	Version  string `json:"version"`  // of the module, "(devel)" for a build from a work tree
	Revision string `json:"revision"` // git commit, "" when it was not recorded
	Modified bool   `json:"modified"` // the work tree had changes that were not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Built is what this binary was built from.
func Built() Build {
	v := Build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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

// Text says it to people.
func (v Build) Text() string {
	line := "interlock " + v.Version
	if v.Revision != "" {
		line += " " + v.Revision
	}
	if v.Modified {
		line += " (modified)"
	}
	return fmt.Sprintf("%s, %s, %s\n", line, v.Go, v.Platform)
}
