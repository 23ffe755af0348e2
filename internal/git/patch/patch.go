// Package patch reads what commits bring, one commit after the other, as git prints it: the lines that
// each adds, the commit objects themselves, and whole files where git shows no lines. It never keeps
// more than a line's head of it, and starts no process per file or per commit.
package patch

import (
	"context"
	"fmt"
	"strings"
	"time"

	"interlock/internal/git"
)

// Visitor is told what is found, in the order in which git prints it: all lines first, then whole files
// and commits.
type Visitor interface {
	// File begins a file as a commit has it. Path is as in the tree, "" for the commit object.
	File(commit, path string)
	// Lines begins a piece of the file, which goes on from nothing that was before: this line is the first.
	Lines(from int)
	// Text is the next part of the piece. It is the caller's again afterwards.
	Text(part []byte)
}

// BigFile is the size, in bytes, from which a file is told whole, and not by the lines that are added:
// to compare it would take many times its size in memory.
const BigFile = 4 << 20

// mostParents is with how many of its parents a merge is compared. git marks lines by bits of one word, and
// prints what is not so for more parents than it has. What is left out can only make more of it new.
const mostParents = 30

// Walk tells of each commit that head has and base has not what it adds to its parents: also what a
// later one takes back. Of a merge that is what is in none of its parents. A file that moved unchanged
// adds nothing but its name. Each of the three processes that it takes may run for timeout. ErrNoCommit;
// ErrTooBig when that, or the memory that git may take, is not enough.
func Walk(ctx context.Context, p *git.Plumb, base, head string, timeout time.Duration, v Visitor) error {
	from, err := p.Resolve(ctx, base)
	if err != nil {
		return err
	}
	to, err := p.Resolve(ctx, head)
	if err != nil {
		return err
	}
	list, err := p.Run(ctx, git.Command{Args: []string{"rev-list", "--parents", to.Hash, "^" + from.Hash, "--"}, MaxOutput: git.MaxListing, Timeout: timeout})
	if err != nil || len(list.Stdout) == 0 {
		return tooLong(ctx, err)
	}
	var commits []object
	var lines strings.Builder
	for line := range strings.Lines(string(list.Stdout)) {
		names := strings.Fields(line) // the commit and its parents
		commits = append(commits, object{hash: names[0], commit: names[0]})
		if len(names) <= mostParents+1 {
			names = names[:1]
		}
		lines.WriteString(strings.Join(names[:min(len(names), mostParents+1)], " ") + "\n")
	}
	d := &diffs{visit: v}
	_, err = p.RunBounded(ctx, git.Command{Args: []string{"-c", bigFile, "diff-tree", "--stdin", "--root", "-c", "-p", "-r", "-M100%", "-U0", "-D",
		"--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", "--src-prefix=a/", "--dst-prefix=b/"},
		Stdin: []byte(lines.String()), To: d, Timeout: timeout})
	if err == nil {
		err = d.end()
	}
	if err != nil {
		return tooLong(ctx, err)
	}
	o := &objects{visit: v, want: append(d.whole, commits...)}
	_, err = p.RunBounded(ctx, git.Command{Args: []string{"-c", bigFile, "cat-file", "--batch"}, Stdin: o.stdin(), To: o, Timeout: timeout})
	if err == nil {
		err = o.end()
	}
	return tooLong(ctx, err)
}

var bigFile = fmt.Sprintf("core.bigFileThreshold=%d", BigFile)

// tooLong makes ErrTooBig of a process that did not end in its time.
func tooLong(ctx context.Context, err error) error {
	if failed, is := err.(*git.Error); is && failed.Timeout && ctx.Err() == nil {
		return fmt.Errorf("%w: git had not read it in its time: %w", git.ErrTooBig, err)
	}
	return err
}
