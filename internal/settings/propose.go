package settings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"interlock/internal/detect"
	"interlock/internal/git"
	"interlock/internal/policy"
	"interlock/internal/text"
)

// Proposal is a new file with what was found for it.
type Proposal struct {
	File   string           `json:"file"` // where it belongs
	Base   detect.Finding   `json:"base"`
	Checks []detect.Finding `json:"checks"`
	Agents []detect.Finding `json:"agents"`
	Todo   string           `json:"todo,omitempty"` // what a person has to write first, a sentence
	Next   []string         `json:"next"`           // what to type then: commands, each as it stands
	Text   string           `json:"-"`
}

// ErrNoPlace means that there is no place for the file that is to be written.
var ErrNoPlace = errors.New("there is no place for the configuration")

// ForOperator proposes the operator's file. path is the operator's PATH.
func ForOperator(own Own, path string) (Proposal, error) {
	p := Proposal{File: own.Path, Agents: found(detect.Agents(path)), Checks: []detect.Finding{}}
	if own.Path == "" {
		return p, fmt.Errorf("%w: neither XDG_CONFIG_HOME nor HOME is set; name one with --config FILE", ErrNoPlace)
	}
	p.Todo = "Write the shell line that starts your agent into " + p.File + " (agent.command)."
	p.Next = []string{"interlock config check", "interlock config show"}
	p.Text = policy.Commented(policy.General, map[string]policy.Fill{"agent.command": {Remark: agentRemark(p.Agents)}})
	return p, nil
}

// ForRepository proposes the repository's file, from its work tree. own is where the operator's is.
func ForRepository(ctx context.Context, g *git.Git, at git.Location, own Own, path string) (Proposal, error) {
	p := Proposal{File: filepath.Join(at.Worktree, policy.Path), Agents: found(detect.Agents(path)), Checks: found(detect.Checks(at.Worktree))}
	dir := filepath.Dir(p.File)
	if info, err := os.Lstat(dir); at.Worktree == "" {
		return p, fmt.Errorf("%w: a bare repository has no work tree", ErrNoPlace)
	} else if err == nil && !info.IsDir() {
		return p, fmt.Errorf("%w: %s is no directory, and a link is not followed out of the repository", ErrNoPlace, text.Quote(dir))
	}
	plumb := g.At(at.Worktree)
	head, err := plumb.HeadBranch(ctx)
	if err != nil && !errors.Is(err, git.ErrDetached) {
		return p, err
	}
	refs, err := plumb.Refs(ctx, "refs/heads/")
	if err != nil {
		return p, err
	}
	var branches []string
	for ref := range refs {
		branches = append(branches, strings.TrimPrefix(ref, "refs/heads/"))
	}
	p.Base = detect.Base(head, branches)
	if len(p.Checks) == 0 {
		p.Todo = "No check was found: write at least one into " + p.File + " (checks)."
	}
	p.Text, p.Next = policy.Commented(policy.Repository, p.fill()), p.next(at.Worktree, own)
	return p, nil
}

// found is never nil: scripts get a list.
func found(all []detect.Finding) []detect.Finding { return append([]detect.Finding{}, all...) }

// fill is what the file says of what was found.
func (p Proposal) fill() map[string]policy.Fill {
	fill := map[string]policy.Fill{"agent.command": {Remark: agentRemark(p.Agents)}}
	if p.Base.Value != "" {
		fill["base"] = policy.Fill{Value: p.Base.Value, Remark: []string{"Found: " + p.Base.Why + "."}}
	}
	if len(p.Checks) > 0 {
		var lines, why []string
		for _, c := range p.Checks {
			lines, why = append(lines, c.Value), append(why, c.Why)
		}
		fill["checks"] = policy.Fill{Value: lines, Remark: []string{"Found by " + strings.Join(why, ", ") + "."}}
	}
	return fill
}

func (p Proposal) next(tree string, own Own) []string {
	git := "git -C " + text.Quote(tree)
	next := []string{ // a path for commit: what else is staged is not ours to commit
		"interlock config check", git + " add -- " + policy.Path, git + " commit -m 'Configure Interlock' -- " + policy.Path,
	}
	if _, err := os.Lstat(own.Path); err != nil && own.Path != "" {
		next = append(next, "interlock init --operator")
	}
	return append(next, "interlock run --next")
}

// agentRemark says which agents are here, and no more than is known of them.
func agentRemark(agents []detect.Finding) []string {
	if len(agents) == 0 {
		return []string{"No coding agent that is looked for was found in PATH."}
	}
	names := make([]string, len(agents))
	for i, g := range agents {
		names[i] = g.Value
	}
	return []string{
		"Found in PATH when this was written: " + strings.Join(names, ", ") + ". Interlock has no settings of its own for them:",
		"the line has to make the agent read its task from stdin and work without asking. A login that is kept",
		"in the home directory is not seen in the sandbox.",
	}
}

// Write puts the file in its place, whole or not at all. One that is there is written over with
// force only; else fs.ErrExist.
func (p Proposal) Write(force bool) error {
	if err := os.MkdirAll(filepath.Dir(p.File), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(p.File), ".config-*.yaml")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = io.WriteString(f, p.Text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if force {
		return os.Rename(f.Name(), p.File)
	}
	err = os.Link(f.Name(), p.File) // fails where something is there, whatever it is
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already: %w", text.Quote(p.File), fs.ErrExist)
	}
	return err
}

// Summary says what was found and written, and what to do next.
func (p Proposal) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "wrote %s\n", text.Line(p.File))
	for _, f := range slices.Concat([]detect.Finding{p.Base}, p.Checks) {
		if f.Value != "" {
			fmt.Fprintf(&b, "  found %s (%s)\n", text.Line(f.Value), text.Line(f.Why))
		}
	}
	for _, f := range p.Agents {
		fmt.Fprintf(&b, "  agent %s (%s)\n", f.Value, text.Line(f.Why))
	}
	if p.Todo != "" {
		fmt.Fprintf(&b, "%s\n", text.Line(p.Todo))
	}
	b.WriteString("next:\n")
	for _, n := range p.Next {
		fmt.Fprintf(&b, "  %s\n", text.Line(n))
	}
	return b.String()
}
