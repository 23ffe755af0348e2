package policy

import (
	"strings"

	"interlock/internal/text"
)

// nearest returns the full name of the key that was meant by a name that is not known, "" if none
// is near. The name stands in group, which may itself be unknown. The names of flags count too.
func nearest(group, name string, whose Whose) string {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	if len(name) > 64 {
		return ""
	}
	full := name
	if group != "" {
		full = group + "." + name
	}
	best, least := "", 100
	try := func(meant string, d int) {
		if d < least {
			best, least = meant, d
		}
	}
	for _, k := range keys {
		if !k.allows(whose) {
			continue
		}
		g, last := k.group()
		elsewhere := 0
		if g != group {
			elsewhere = 1 // a name in the right group comes first
		}
		try(k.Name, min(text.Distance(full, k.Name)*2, text.Distance(name, last)*2+elsewhere))
		if k.Flag != "" {
			try(k.Name, text.Distance(name, k.Flag)*2+elsewhere)
		}
	}
	for _, g := range nested(whose) {
		if group == "" {
			try(g, text.Distance(name, g)*2)
		}
	}
	if least > 2*min(3, max(1, len(name)/3))+1 {
		return ""
	}
	return best
}

// nested lists the names of the first level that hold others.
func nested(whose Whose) []string {
	all := groups(whose)
	if whose == General {
		all = append(all, sections)
	}
	return all
}
