package sandbox

import (
	"fmt"
	"path/filepath"
)

// Exposed refuses a machine on which a private place lies in what every session is shown: below a
// system directory or a tool chain. It returns an *UnfitError; nil when none does.
func Exposed(level Level, tools []Mount, private ...string) error {
	shown := []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}
	for _, m := range tools {
		shown = append(shown, m.Source)
	}
	for _, place := range private {
		real, err := filepath.EvalSymlinks(place)
		if err != nil {
			continue // what is not there shows nothing
		}
		for _, dir := range shown {
			at, err := filepath.EvalSymlinks(dir)
			if err != nil {
				continue
			}
			if _, in := Below(at, real); in {
				return &UnfitError{
					Level:  level,
					Reason: fmt.Sprintf("%s lies in %s, which every session can read", place, dir),
					Remedy: "keep it elsewhere: another --state-dir, another HOME, another place for the repository",
				}
			}
		}
	}
	return nil
}
