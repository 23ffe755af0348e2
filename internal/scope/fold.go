package scope

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// folded is a name as the least distinguishing file system would read it, component by component.
type folded []string

// fold drops what HFS+ and ext4 ignore in names, folds letter case as they do, takes a backslash
// for a separator, and cuts what NTFS cuts: a stream after a colon, trailing dots and spaces.
func fold(name string) folded {
	var b strings.Builder
	b.Grow(len(name))
	for _, r := range name {
		switch {
		case r == '\\':
			b.WriteByte('/')
		case r < utf8.RuneSelf:
			b.WriteByte(lower(byte(r)))
		case ligatures[r] != "":
			b.WriteString(ligatures[r])
		case !ignorable(r):
			b.WriteRune(foldRune(r))
		}
	}
	parts := strings.Split(b.String(), "/")
	for i, p := range parts {
		if at := strings.IndexByte(p, ':'); at > 0 {
			p = p[:at]
		}
		parts[i] = strings.TrimRight(p, ". ")
	}
	return parts
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}

// ligatures are the characters whose full case folding is plain ASCII (Unicode CaseFolding.txt,
// status F). File systems that fold case (ext4, APFS) apply it.
var ligatures = map[rune]string{
	'ß': "ss", 'ẞ': "ss",
	'ﬀ': "ff", 'ﬁ': "fi", 'ﬂ': "fl", 'ﬃ': "ffi", 'ﬄ': "ffl", 'ﬅ': "st", 'ﬆ': "st",
}

// ignorable reports whether a file system that normalises names may drop r.
func ignorable(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// foldRune returns the lower-case ASCII letter that r folds to, if there is one, else the least
// rune of its folding orbit: the long s and the Kelvin sign are a plain s and k.
func foldRune(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	if least < utf8.RuneSelf {
		return rune(lower(byte(least)))
	}
	return least
}

// malformed says why a name is never allowed; rule is "" where it is sound.
func (f folded) malformed(name string) (rule, text string) {
	if strings.ContainsRune(name, 0) {
		return RulePath, "holds a NUL"
	}
	for _, c := range f {
		switch {
		case c == "":
			// Empty, ".", "..", or nothing but what NTFS cuts: absolute, outside, or no name.
			return RulePath, "is not a plain path inside the repository"
		case isGitDir(c):
			return RuleGitDir, "would be taken for git's own directory on some file system"
		}
	}
	if len(f[0]) > 1 || !driveLetter(name) {
		return "", ""
	}
	return RulePath, "is an absolute path on some file system"
}

func driveLetter(name string) bool {
	return len(name) >= 2 && name[1] == ':' && 'a' <= lower(name[0]) && lower(name[0]) <= 'z'
}

// isGitDir reports whether a folded component is .git or the short name NTFS gives it.
func isGitDir(c string) bool { return c == ".git" || c == "git~1" }
