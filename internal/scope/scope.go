// Package scope decides, from names and modes alone, what a run may touch. Its decisions are pure:
// it reads no file, asks nobody, and never weakens a rule because a name is spelled unusually.
package scope

import (
	"fmt"
	"strings"
)

// Path is one entry of the diff from the recorded base to the exact head.
type Path struct {
	Old     string // name at the base; "" where the entry is added or copied
	New     string // name at the head; "" where the entry is deleted
	OldMode string // six octal digits as git prints them
	NewMode string
}

// Finding is one reason why a diff may not be delivered as it is.
type Finding struct {
	Path string // the offending name, exactly as git has it; escape it before showing it
	Rule string // a short name of the rule, for instance "ci"
	Text string // for a person; safe to print
}

// The rules that no allow entry lifts.
const (
	RulePath    = "path"    // a name that leaves the work tree, or that is no name
	RuleGitDir  = "git"     // a name that some file system takes for .git
	RuleGitlink = "gitlink" // a submodule: a commit of another repository
)

const modeGitlink = "160000"

// Check returns what in changes is not allowed, in their order. Entries of allow come from
// ParseAllow; they lift the protection of what they name and nothing else. It takes time linear in
// the length of the names.
func Check(changes []Path, allow []string) []Finding {
	allowed := newTrie(allow)
	var found []Finding
	for _, c := range changes {
		found = checkOne(found, c, allowed)
	}
	return found
}

func checkOne(found []Finding, c Path, allowed *trie) []Finding {
	if c.Old == "" && c.New == "" {
		return append(found, Finding{Rule: RulePath, Text: "a change without a name"})
	}
	if c.NewMode == modeGitlink {
		found = append(found, Finding{Path: c.New, Rule: RuleGitlink,
			Text: fmt.Sprintf("%q would pin a commit of another repository (a submodule), which nobody here has checked", c.New)})
	}
	if c.New != "" {
		found = checkName(found, c.New, allowed)
	}
	if c.Old != "" && c.Old != c.New {
		found = checkName(found, c.Old, allowed)
	}
	return found
}

func checkName(found []Finding, name string, allowed *trie) []Finding {
	f := fold(name)
	if rule, text := f.malformed(name); rule != "" {
		return append(found, Finding{Path: name, Rule: rule, Text: fmt.Sprintf("%q %s", name, text)})
	}
	r := f.protectedBy()
	if r == nil || allowed.covers(name) {
		return found
	}
	return append(found, Finding{Path: name, Rule: r.rule, Text: fmt.Sprintf("%q is protected: %s", name, reasons[r.rule])})
}

// Protected reports whether a change of path needs the operator's word, and by which rule. Names
// that some file system would take for a protected one count too: other letter cases, invisible
// characters, trailing dots and spaces, streams and short names of NTFS, backslashes.
func Protected(path string) (rule string, protected bool) {
	f := fold(path)
	if rule, _ := f.malformed(path); rule != "" {
		return rule, true
	}
	if r := f.protectedBy(); r != nil {
		return r.rule, true
	}
	return "", false
}

// ParseAllow checks entries that lift protection: exact paths, or directories that end in "/" and
// stand for all that is in them. An entry that matches nothing is no error.
func ParseAllow(entries []string) ([]string, error) {
	var out []string
	for _, e := range entries {
		if why := badEntry(e); why != "" {
			return nil, fmt.Errorf("allowed path %q: %s", e, why)
		}
		out = append(out, e)
	}
	return out, nil
}

func badEntry(e string) string {
	name := strings.TrimSuffix(e, "/")
	switch {
	case name == "" && e != "":
		return "the whole repository cannot be allowed; name a path or a directory in it"
	case name == "":
		return "is empty"
	case strings.ContainsRune(name, 0):
		return "holds a NUL"
	case strings.ContainsRune(name, '*'):
		return "patterns are not known here; name a path, or a directory with a / at its end"
	}
	switch rule, text := fold(name).malformed(name); rule {
	case RulePath, RuleGitDir:
		return text + "; it is never allowed"
	}
	return ""
}

// trie holds allow entries by component, so that a look-up reads a name once.
type trie struct {
	next map[string]*trie
	leaf bool // an exact path ends here
	dir  bool // everything below is allowed
}

func newTrie(entries []string) *trie {
	root := &trie{}
	for _, e := range entries {
		name, dir := strings.CutSuffix(e, "/")
		t := root
		for c := range strings.SplitSeq(name, "/") {
			if t.next == nil {
				t.next = map[string]*trie{}
			}
			if t.next[c] == nil {
				t.next[c] = &trie{}
			}
			t = t.next[c]
		}
		if dir {
			t.dir = true
		} else {
			t.leaf = true
		}
	}
	return root
}

func (t *trie) covers(name string) bool {
	for c := range strings.SplitSeq(name, "/") {
		if t.dir {
			return true
		}
		if t = t.next[c]; t == nil {
			return false
		}
	}
	return t.leaf
}
