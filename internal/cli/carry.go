package cli

import (
	"slices"
	"strings"

	"interlock/internal/text"
)

// carry gives a command that is to be typed next the places that the present command line named:
// without them it would look into another state directory, or another repository. A command that
// has no such flag, or has it already, stays as it is.
func carry(next string, args []string) string {
	for _, flag := range []string{"--state-dir", "--config", "--repo"} {
		words := words(next)
		value, typed := flagValue(args, flag)
		if !typed || len(words) == 0 || words[0] != "interlock" {
			continue
		}
		if _, has := flagValue(words, flag); has {
			continue
		}
		if Check(slices.Concat(words[1:], []string{flag, value})) == nil {
			next += " " + flag + " " + text.Quote(value)
		}
	}
	return next
}

// flagValue returns the value of a flag as it was typed.
func flagValue(args []string, flag string) (value string, typed bool) {
	for i, arg := range args {
		if arg == flag && i+1 < len(args) {
			return args[i+1], true
		}
		if v, ok := strings.CutPrefix(arg, flag+"="); ok {
			return v, true
		}
	}
	return "", false
}

// words splits a command line of our own as a shell does; we quote with single quotes only.
func words(line string) []string {
	var all []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
			continue
		}
		all = append(all, strings.Fields(part)...)
	}
	return all
}
