package seccomp

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// always closes calls whatever their arguments are.
func always(errno unix.Errno, calls map[string]uint32) []Rule {
	out := make([]Rule, 0, len(calls))
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		out = append(out, Rule{Name: name, Nr: calls[name], Errno: errno})
	}
	return out
}
