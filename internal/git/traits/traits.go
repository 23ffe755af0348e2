// Package traits finds what a commit needs beside its own objects: submodules, and large files that
// are kept elsewhere. It never fetches any of them.
package traits

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"interlock/internal/git"
)

// Traits are what a commit needs beside its own objects to be complete in a work tree.
type Traits struct {
	Submodules []string // paths
	LFS        []string // patterns with filter=lfs, with the directory of their file in front
}

const (
	maxAttributes = 1 << 20 // bytes of one .gitattributes; git itself stops at 100 MiB
	hashLength    = 40      // digits of an object name
)

// Of finds submodules and patterns of large files kept elsewhere. ErrNoCommit.
func Of(ctx context.Context, p *git.Plumb, commit string) (Traits, error) {
	c, err := p.Resolve(ctx, commit)
	if err != nil {
		return Traits{}, err
	}
	out, err := p.Run(ctx, git.Command{Args: []string{"ls-tree", "-r", "-z", "--full-tree", c.Hash}, MaxOutput: git.MaxListing})
	if err != nil {
		return Traits{}, err
	}
	var t Traits
	macros := map[string]bool{}
	var files []string // hash and path of each attribute file, the root's first
	for entry := range strings.SplitSeq(string(out.Stdout), "\x00") {
		meta, name, _ := strings.Cut(entry, "\t")
		f := strings.Fields(meta) // mode, type, hash
		switch {
		case len(f) != 3:
		case f[0] == git.GitlinkMode:
			t.Submodules = append(t.Submodules, name)
		case name == attributesFile:
			files = slices.Insert(files, 0, f[2]+name)
		case path.Base(name) == attributesFile && f[0] != git.LinkMode:
			files = append(files, f[2]+name)
		}
	}
	for _, file := range files {
		hash, name := file[:hashLength], file[hashLength:]
		text, err := p.Blob(ctx, hash, maxAttributes)
		if err != nil {
			return Traits{}, fmt.Errorf("%s: %w", git.Escape(name), err)
		}
		t.LFS = append(t.LFS, lfsPatterns(path.Dir(name), string(text), macros)...)
	}
	return t, nil
}

const attributesFile = ".gitattributes"

// lfsPatterns finds the patterns of one attribute file that set filter=lfs, by itself or through a
// macro; macros of the root's file are added to macros, others are none.
func lfsPatterns(dir, text string, macros map[string]bool) (patterns []string) {
	for line := range strings.Lines(text) {
		pattern, attributes := splitAttributes(strings.TrimSpace(line))
		if pattern == "" || pattern[0] == '#' {
			continue
		}
		lfs := slices.ContainsFunc(attributes, func(a string) bool { return a == "filter=lfs" || macros[a] })
		macro, isMacro := strings.CutPrefix(pattern, "[attr]")
		switch {
		case !lfs:
		case !isMacro:
			patterns = append(patterns, path.Join(dir, pattern))
		case dir == ".":
			macros[macro] = true
		}
	}
	return patterns
}

// splitAttributes splits a line into its pattern, which may be quoted as in C, and the rest.
func splitAttributes(line string) (string, []string) {
	if strings.HasPrefix(line, `"`) {
		for i := 1; i < len(line); i++ {
			switch line[i] {
			case '\\':
				i++
			case '"':
				return line[:i+1], strings.Fields(line[i+1:])
			}
		}
	}
	f := strings.Fields(line)
	if len(f) == 0 {
		return "", nil
	}
	return f[0], f[1:]
}
