package policy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// mostDeep is how deep a file may be nested: sections hold groups, groups hold lists.
const mostDeep = 8

// document walks through the one document of a file.
func (p *parser) document(doc *yaml.Node) {
	for _, top := range doc.Content {
		p.plain(top, 0)
		if refused(top) || nothing(top) {
			continue
		}
		if top.Kind != yaml.MappingNode {
			p.at(top, "", "the file has to hold keys with values, as in \"lane: build\"; it holds "+kindOf(top))
			continue
		}
		p.level(top, "", p.file.Whose, p.file.Values)
	}
}

func (p *parser) at(n *yaml.Node, key, what string) { p.problem(n.Line, n.Column, key, what) }

// plain tells of all that is no plain value, at each depth.
func (p *parser) plain(n *yaml.Node, deep int) {
	switch {
	case p.more:
		return
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		p.at(n, "", noAnchors)
	case n.Style&yaml.TaggedStyle != 0:
		p.at(n, "", "tags are not taken: write the plain value")
	}
	if deep > mostDeep {
		p.at(n, "", fmt.Sprintf("nested deeper than %d levels", mostDeep))
		return
	}
	if n.Kind != yaml.AliasNode {
		for _, c := range n.Content {
			p.plain(c, deep+1)
		}
	}
}

// refused reports whether plain has told all that is to be told of a node.
func refused(n *yaml.Node) bool { return n.Kind == yaml.AliasNode || n.Style&yaml.TaggedStyle != 0 }

// nothing reports whether a node is an empty value.
func nothing(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys with values"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!bool":
		return "a yes or no"
	case "!!int", "!!float":
		return "a number"
	case "!!timestamp":
		return "a date"
	}
	return "a text"
}

// pairs calls do for each key of a mapping whose name can be read and comes for the first time.
func (p *parser) pairs(m *yaml.Node, prefix string, do func(name string, key, value *yaml.Node)) {
	lines := map[string]int{}
	for i := 0; i+1 < len(m.Content) && !p.more; i += 2 {
		key, value := m.Content[i], m.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			p.at(key, prefix, "a key has to be a word, not "+kindOf(key))
			continue
		case key.ShortTag() == "!!merge":
			p.at(key, prefix, "merge keys are not taken: write the values where they belong")
			continue
		case lines[key.Value] > 0:
			p.at(key, dotted(prefix, key.Value), fmt.Sprintf("%s is set twice, first in line %d", quoted(dotted(prefix, key.Value)), lines[key.Value]))
			continue
		}
		lines[key.Value] = key.Line
		do(key.Value, key, value)
	}
}

func dotted(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// quoted is a name from the file, cut.
func quoted(name string) string {
	if r := []rune(name); len(r) > 64 {
		name = string(r[:64]) + "..."
	}
	return fmt.Sprintf("%q", name)
}

// level reads the keys of one level: of the file, of a group, or of a section.
func (p *parser) level(m *yaml.Node, group string, whose Whose, into Values) {
	p.pairs(m, group, func(name string, key, value *yaml.Node) {
		full := dotted(group, name)
		switch k := Named(full); {
		case k != nil && strings.Contains(name, "."):
			g, last, _ := strings.Cut(name, ".")
			p.at(key, full, fmt.Sprintf("%q is written as a group: %s: and below it, indented, %s", full, g, last))
		case k != nil && k.allows(whose):
			p.value(k, value, whose, into)
		case k != nil && whose == Here:
			p.at(key, full, fmt.Sprintf("%s is for all repositories: it stands at the top of the file", full))
		case k != nil:
			p.at(key, full, fmt.Sprintf("%s is the operator's to set, not a repository's: %s", full, k.Why))
		case group == "" && slices.Contains(groups(General), name):
			p.group(name, key, value, whose, into)
		case group == "" && name == sections && whose == General:
			p.sections(value)
		default:
			p.unknown(key, group, name, whose)
		}
	})
}

// group reads one group of keys. A group with nothing in it is none.
func (p *parser) group(name string, key, value *yaml.Node, whose Whose, into Values) {
	switch {
	case nothing(value), refused(value):
	case value.Kind != yaml.MappingNode:
		var below []string
		for _, k := range keys {
			if g, last := k.group(); g == name && k.allows(whose) {
				below = append(below, last)
			}
		}
		what := fmt.Sprintf("%s is a group and holds %s", name, kindOf(value))
		if len(below) > 0 {
			what += "; it takes " + strings.Join(below, ", ") + ", indented below it"
		} else {
			what += "; what it holds is the operator's to set"
		}
		p.at(key, name, what)
	default:
		p.level(value, name, whose, into)
	}
}

func (p *parser) unknown(key *yaml.Node, group, name string, whose Whose) {
	full := dotted(group, name)
	bad := Problem{File: p.file.Name, Line: key.Line, Column: key.Column, Key: full, What: quoted(full) + " is no key that is known"}
	if bad.Meant = nearest(group, name, whose); bad.Meant == "" {
		if theirs := nearest(group, name, General); theirs != "" {
			bad.What += fmt.Sprintf(" (%s is, but it is the operator's to set)", theirs)
		} else {
			bad.What += "; known here are " + strings.Join(p.known(group, whose), ", ")
		}
	}
	p.add(bad)
}

// known lists what a level takes.
func (p *parser) known(group string, whose Whose) []string {
	var all []string
	for _, k := range keys {
		g, last := k.group()
		switch {
		case !k.allows(whose):
		case g == group:
			all = append(all, last)
		case group == "" && !slices.Contains(all, g):
			all = append(all, g)
		}
	}
	if group == "" && whose == General {
		all = append(all, sections)
	}
	return all
}

// sections reads what the operator's file says of single repositories.
func (p *parser) sections(value *yaml.Node) {
	if nothing(value) || refused(value) {
		return
	}
	if value.Kind != yaml.MappingNode {
		p.at(value, sections, sections+" holds the path of a repository, and its settings indented below it; not "+kindOf(value))
		return
	}
	if n := len(value.Content) / 2; n > mostEntries {
		p.at(value, sections, fmt.Sprintf("%s holds %d repositories: at most %d are taken", sections, n, mostEntries))
		return
	}
	p.pairs(value, sections, func(name string, key, value *yaml.Node) {
		s := Section{Path: name, Line: key.Line, Values: Values{}}
		switch {
		case !filepath.IsAbs(name) && !strings.HasPrefix(name, "~/"):
			p.at(key, sections, quoted(name)+" is not the path of a repository: wanted is an absolute one, or one that begins with ~/")
		case nothing(value), refused(value):
		case value.Kind != yaml.MappingNode:
			p.at(value, sections, quoted(name)+" takes settings, indented below it; not "+kindOf(value))
		default:
			p.level(value, "", Here, s.Values)
		}
		p.file.Sections = append(p.file.Sections, s)
	})
}

// value reads the value of one key.
func (p *parser) value(k *Key, n *yaml.Node, whose Whose, into Values) {
	var v any
	switch {
	case refused(n):
		return
	case nothing(n):
		p.at(n, k.Name, k.Name+" is set to nothing: give it a value, or take the line out")
		return
	case k.Kind.list() && n.Kind == yaml.SequenceNode:
		v = p.list(k, n)
	case k.Kind.list():
		p.at(n, k.Name, fmt.Sprintf("%s is a list, not %s; as in %s: %s", k.Name, kindOf(n), k.Name, k.Example))
	default:
		v = p.scalar(k, n)
	}
	if v == nil {
		return
	}
	if err := k.inFile(whose, v); err != nil {
		p.at(n, k.Name, k.Name+" "+err.Error())
		return
	}
	lines := []int{n.Line}
	if k.Kind.list() {
		lines = nil
		for _, c := range n.Content {
			lines = append(lines, c.Line)
		}
	}
	into[k.Name] = Found{v, fmt.Sprintf("%s:%d", p.file.Name, n.Line), lines}
}

func (p *parser) list(k *Key, n *yaml.Node) any {
	if len(n.Content) == 0 {
		if k.Right == Confined {
			p.at(n, k.Name, k.Name+" is an empty list: at least one is needed, or take the line out")
			return nil
		}
		return []string{}
	}
	if err := k.tooMany(len(n.Content)); err != nil {
		p.at(n, k.Name, k.Name+" "+err.Error())
		return nil
	}
	all := []string{}
	for _, c := range n.Content {
		v := p.scalar(k, c)
		s, is := v.(string)
		if !is {
			continue
		}
		all = append(all, s)
	}
	if len(all) != len(n.Content) {
		return nil // told already
	}
	return all
}

// wanted are the kinds of YAML value that a kind of setting is written as.
var wanted = map[Kind][]string{
	Count: {"!!int"}, Switch: {"!!bool"}, Span: {"!!str", "!!int"}, Memory: {"!!str", "!!int"}, Size: {"!!str", "!!int"},
}

// scalar reads one value, or one entry of a list; nil where it is wrong.
func (p *parser) scalar(k *Key, n *yaml.Node) any {
	tags := wanted[k.Kind]
	if tags == nil {
		tags = []string{"!!str"}
	}
	if refused(n) {
		return nil
	}
	if n.Kind != yaml.ScalarNode {
		p.at(n, k.Name, fmt.Sprintf("%s holds %s; wanted is %s", k.Name, kindOf(n), k.form()))
		return nil
	}
	if !slices.Contains(tags, n.ShortTag()) {
		what := fmt.Sprintf("%s holds %s; wanted is %s", k.Name, kindOf(n), k.form())
		if tags[0] == "!!str" && n.Value != "" {
			what += ": write it in quotes, as in " + quoted(n.Value)
		}
		p.at(n, k.Name, what)
		return nil
	}
	v, err := k.read(n.Value)
	if err != nil {
		p.at(n, k.Name, k.Name+" "+err.Error())
		return nil
	}
	return v
}

// form says what a value looks like.
func (k *Key) form() string {
	switch k.Kind {
	case Count:
		return "a whole number, as in " + k.Default
	case Switch:
		return "true or false"
	case Span:
		return "a duration, as in 30m"
	case Memory:
		return errSize.Error()
	case Size:
		return errBytes.Error()
	}
	if len(k.Words) > 0 {
		return strings.Join(k.Words, " or ")
	}
	return "a text"
}
