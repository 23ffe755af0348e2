package policy

import (
	"slices"
	"strings"
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
		try(k.Name, min(distance(full, k.Name)*2, distance(name, last)*2+elsewhere))
		if k.Flag != "" {
			try(k.Name, distance(name, k.Flag)*2+elsewhere)
		}
	}
	for _, g := range nested(whose) {
		if group == "" {
			try(g, distance(name, g)*2)
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

// distance is the number of characters to put in, take out, change or swap with their neighbour to
// make one word of the other (optimal string alignment).
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := [3][]int{}
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
	}
	before, last, now := rows[0], rows[1], rows[2]
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		now[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			now[j] = slices.Min([]int{last[j] + 1, now[j-1] + 1, last[j-1] + cost})
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(y)]
}
