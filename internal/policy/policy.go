// Package policy turns the files of the base branch and of the operator into the settings of a
// run: it reads strictly, names every mistake at once, and says of each value where it comes from.
// A repository's file never decides what protects the operator; what it may not is refused, and
// what it may only lower is capped.
package policy

import (
	"slices"
	"strings"

	"interlock/internal/run"
)

// Path is where a repository keeps its file, from its root. It is read from the base branch only.
const Path = ".interlock/config.yaml"

// MaxBytes is the longest file that is read.
const MaxBytes = 1 << 20

// Kind says what values a key takes. Each has one Go type, which is that of Setting.Value.
type Kind int

// The kinds of value.
const (
	Word    Kind = iota // string, one of Key.Words if there are any
	Line                // string: a shell line
	Lines               // []string: shell lines
	Names               // []string: names of environment variables
	Paths               // []string: paths inside the repository
	Secrets             // []string: fingerprints of findings, and patterns of paths
	Count               // int64, from Key.Least to Key.Most
	Span                // time.Duration, from 1s, or from 0 with Key.Zero
	Memory              // string: a share of the machine's memory, or a size
	Size                // string: bytes, with a unit
	Switch              // bool
	Dir                 // string: an absolute path, or one that begins with ~/
)

// list reports whether a key of this kind holds several values.
func (k Kind) list() bool { return k == Lines || k == Names || k == Paths || k == Secrets }

// Right says who may set a key, and how far a repository's word goes.
type Right int

// The rights.
const (
	Both     Right = iota // the operator and the repository; the operator's comes first
	Lower                 // both; a repository's counts where it is lower than the operator's
	Confined              // both; a repository's is used in the sandbox only
	Operator              // the operator alone, for all repositories or for one
	Machine               // the operator alone, for all repositories
)

// Key is one setting: its one description, from which the flags, the commented files, the schemas
// and the documents come.
type Key struct {
	Name    string // in a file; a dot between group and key
	Flag    string // of interlock run, without dashes
	Kind    Kind
	Right   Right
	Words   []string // what a Word may be, any if there are none
	Least   int64    // of a Count
	Most    int64
	Any     bool     // a Count of 0 means no limit
	Zero    bool     // a Span of 0 is a value
	Default string   // as it would be written, "" where there is none
	Else    string   // what holds where nothing is set and there is no default
	Example string   // one value, as it would be written in a file
	Short   string   // one line: --help, schema
	Long    []string // more lines for the commented file
	Why     string   // why a repository may not set it, or may only lower it
	apply   func(p *run.Plan, v any) error
}

// Keys is the table, in the order in which files and documents show it.
func Keys() []*Key { return keys }

// Named returns the key with a name, nil if there is none.
func Named(name string) *Key {
	for _, k := range keys {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// Help is what --help says of the flag.
func (k *Key) Help() string {
	switch {
	case k.Kind.list():
		return k.Short + " (can be given more than once)"
	case k.Default == "" && k.Else != needed:
		return k.Short + " (default " + k.Else + ")"
	}
	return k.Short
}

// group is the part of a name before the dot, "" where there is none; last is the rest.
func (k *Key) group() (group, last string) {
	if g, l, ok := strings.Cut(k.Name, "."); ok {
		return g, l
	}
	return "", k.Name
}

// Whose says who a value comes from.
type Whose string

// The sources of a value, the strongest first.
const (
	Typed      Whose = "flag"
	Here       Whose = "operator, for this repository"
	General    Whose = "operator"
	Repository Whose = "repository"
	Builtin    Whose = "default"
)

// allows reports whether a key may be set in a file of that owner; Here is a section of the
// operator's file.
func (k *Key) allows(whose Whose) bool {
	switch whose {
	case Repository:
		return k.Right != Operator && k.Right != Machine
	case Here:
		return k.Right != Machine
	}
	return true
}

// groups lists the groups that a file of that owner may hold.
func groups(whose Whose) []string {
	var all []string
	for _, k := range keys {
		if g, _ := k.group(); g != "" && k.allows(whose) && !slices.Contains(all, g) {
			all = append(all, g)
		}
	}
	return all
}

// Found is a value as it was found: in a file, or typed.
type Found struct {
	Value any
	At    string // "FILE:LINE", or the flag with its dashes
	Lines []int  // in a file: of each entry of a list, else of the value
}

// Values are the values of one source by the names of their keys.
type Values map[string]Found
