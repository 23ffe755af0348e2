package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"interlock/internal/forge"
	"interlock/internal/git"
)

// checkedOut returns the work tree that has the base of a change checked out, "" if none has. A
// work tree that is gone, or is rebasing the base, is an *AcceptError: its index would not fit.
func (f *Forge) checkedOut(ctx context.Context, c forge.Change) (string, error) {
	out, err := f.run(ctx, "", "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return "", fmt.Errorf("list work trees: %w", err)
	}
	tree := treeOf(string(out.Stdout), branchPrefix+c.Base)
	if tree != "" {
		if _, err := os.Stat(tree); err != nil {
			return "", &AcceptError{Change: c.Number, Why: fmt.Sprintf("%s is checked out in %s, which cannot be reached (%v). If it was removed for good, forget it, then accept again",
				git.Escape(c.Base), git.Escape(tree), err), Command: "git -C " + quote(f.dir) + " worktree prune -v"}
		}
		return tree, nil
	}
	if where := f.rebasing(branchPrefix + c.Base); where != "" {
		return "", &AcceptError{Change: c.Number, Why: fmt.Sprintf("%s is being rebased (%s). Finish or abort the rebase, then accept again",
			git.Escape(c.Base), git.Escape(where)), Command: "git -C " + quote(f.dir) + " worktree list"}
	}
	return "", nil
}

// treeOf finds a branch in the output of git worktree list --porcelain -z.
func treeOf(listing, ref string) string {
	tree := ""
	for line := range strings.SplitSeq(listing, "\x00") {
		if path, ok := strings.CutPrefix(line, "worktree "); ok {
			tree = path
		} else if line == "branch "+ref {
			return tree
		}
	}
	return ""
}

// rebasing returns the file that says that a branch is being rebased in some work tree: HEAD is
// detached there meanwhile, so that the listing does not show it.
func (f *Forge) rebasing(ref string) string {
	for _, pattern := range []string{"rebase-*/head-name", "worktrees/*/rebase-*/head-name"} {
		files, _ := filepath.Glob(filepath.Join(globEscape(f.at.CommonDir), pattern)) // the pattern is well formed
		for _, file := range files {
			if data, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(data)) == ref {
				return file
			}
		}
	}
	return ""
}

func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
