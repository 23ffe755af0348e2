package policy

import (
	"fmt"
	"strings"
)

// Fill is a value for a commented file, with a remark of how it was found.
type Fill struct {
	Value  any      // nil: the key stays commented out
	Remark []string // lines
}

const repositoryHead = `# Interlock's settings for this repository.
#
# This file counts as it is on the base branch, never as it is in a work tree or on the branch of an
# agent. It never decides what protects the machine that works on the repository: where to run and
# what to hand over is said in the operator's own file, which comes first.
#   flag, operator's section for the repository, operator's file, this file, default
# interlock config check   names every mistake
# interlock config show    says where each value comes from
`

const operatorHead = `# Interlock's settings of the person who runs it, for all repositories. It comes after flags, and
# before what a repository says for itself on its base branch.
#   flag, section for the repository (below), this file, the repository's file, default
# Nobody else may be able to write to it.
# interlock config check   names every mistake
# interlock config show    says where each value comes from
`

// Commented is a file with all keys that its owner may set, each with its description. Those in
// fill have a value, the others are commented out and show their default or an example.
func Commented(whose Whose, fill map[string]Fill) string {
	var b strings.Builder
	head := operatorHead
	if whose == Repository {
		head = repositoryHead
	}
	b.WriteString(head)
	last := ""
	for _, k := range keys {
		if !k.allows(whose) {
			continue
		}
		group, name := k.group()
		b.WriteByte('\n')
		margin := ""
		if group != "" {
			margin = "  "
			if group != last {
				b.WriteString(opener(group, whose, fill) + "\n")
				if k.Right == Lower && whose == Repository {
					b.WriteString("#   These can only be lowered here; to raise them is the operator's.\n")
				}
			}
		}
		last = group
		k.comment(&b, margin, fill[k.Name].Remark)
		if v := fill[k.Name].Value; v != nil {
			k.write(&b, margin, name, v)
			continue
		}
		sample := k.Example
		if sample == "" || k.Default != "" {
			sample = k.Default
		}
		fmt.Fprintf(&b, "#%s %s: %s\n", margin, name, sample)
	}
	if whose == General {
		b.WriteString(sectionSample)
	}
	return b.String()
}

const sectionSample = `
# The same settings for one repository, by its path.
# repositories:
#   ~/src/example:
#     lane: build
`

// opener is the line that begins a group, commented out where nothing in it has a value.
func opener(group string, whose Whose, fill map[string]Fill) string {
	for name, f := range fill {
		if k := Named(name); k != nil && f.Value != nil && k.allows(whose) {
			if g, _ := k.group(); g == group {
				return group + ":"
			}
		}
	}
	return "# " + group + ":"
}

// comment writes what a key is.
func (k *Key) comment(b *strings.Builder, margin string, remark []string) {
	lines := []string{k.Short}
	if len(k.Words) == 0 {
		lines[0] = strings.ToUpper(k.Short[:1]) + k.Short[1:] + "."
	}
	lines = append(lines, k.Long...)
	switch {
	case k.Default != "" || k.Else == "":
	case k.Else == needed:
		lines = append(lines, "A run needs it.")
	default:
		lines = append(lines, "Not set: "+k.Else+".")
	}
	for _, l := range append(lines, remark...) {
		fmt.Fprintf(b, "#%s %s\n", margin, l)
	}
}

// write writes a key with a value.
func (k *Key) write(b *strings.Builder, margin, name string, v any) {
	list, ok := v.([]string)
	if !ok {
		if s, is := v.(string); is && k.Kind != Memory && k.Kind != Size {
			v = scalar(s)
		}
		fmt.Fprintf(b, "%s%s: %s\n", margin, name, Show(v))
		return
	}
	fmt.Fprintf(b, "%s%s:\n", margin, name)
	for _, s := range list {
		fmt.Fprintf(b, "%s  - %s\n", margin, scalar(s))
	}
}
