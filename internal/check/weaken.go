package check

import (
	"context"
	"fmt"

	"interlock/internal/git"
	"interlock/internal/testdiff"
)

// Bounds of what is looked at in the difference.
const (
	lookFiles = 400
	lookBytes = 1 << 20 // of one file
	warnings  = 50      // that are named
)

// look names what the change does to tests, for a reviewer.
func (req *Request) look(ctx context.Context) ([]string, error) {
	if req.Compare == nil {
		return nil, nil
	}
	changes, err := req.Repo.Diff(ctx, req.Base, req.Head.Hash)
	if err != nil {
		return nil, fmt.Errorf("compare with the base: %w", err)
	}
	var files []testdiff.File
	looked, passed := 0, 0
	for _, c := range changes {
		f := testdiff.File{Path: c.Path, OldPath: c.OldPath}
		if testdiff.Wanted(c.Path) || c.OldPath != "" && testdiff.Wanted(c.OldPath) {
			looked++
			f.Unread = looked > lookFiles
			if f.Unread {
				passed++
			} else if err := req.contents(ctx, c, &f); err != nil {
				return nil, err
			}
		}
		files = append(files, f)
	}
	found := testdiff.Look(files, req.Commands)
	for i, line := range found {
		found[i] = oneLine(line)
	}
	if more := len(found) - warnings; more > 0 {
		found = append(found[:warnings], fmt.Sprintf("and %d more of this kind", more))
	}
	if passed > 0 {
		found = append(found, fmt.Sprintf("%d more files that may hold tests changed, and were not looked at", passed))
	}
	return found, nil
}

// contents reads what a file was and is. What is no file, or too large, is left unread.
func (req *Request) contents(ctx context.Context, c git.Change, f *testdiff.File) error {
	if c.Submodule() || c.Symlink() {
		f.Unread = true
		return nil
	}
	before := c.Path
	if c.OldPath != "" {
		before = c.OldPath
	}
	var err error
	if c.Status != 'A' {
		if f.Old, err = req.Repo.Blob(ctx, req.Base+":"+before, lookBytes); err != nil {
			f.Unread = true
		}
	}
	if c.Status != 'D' {
		if f.New, err = req.Repo.Blob(ctx, req.Head.Hash+":"+c.Path, lookBytes); err != nil {
			f.Unread = true
		}
	}
	if f.Old == nil && c.Status != 'A' {
		f.Old = []byte{}
	}
	if f.New == nil && c.Status != 'D' {
		f.New = []byte{}
	}
	return context.Cause(ctx)
}
