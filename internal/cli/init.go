package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"interlock/internal/detect"
	"interlock/internal/policy"
	"interlock/internal/run"
	"interlock/internal/text"
)

// written is the result of `init`.
type written struct {
	File   string           `json:"file"` // "" with --print
	Base   detect.Finding   `json:"base"`
	Checks []detect.Finding `json:"checks"`
	Agents []detect.Finding `json:"agents"`
	Next   []string         `json:"next"`
}

func (a *app) initCommand() *cobra.Command {
	var repo string
	var operator, force, show bool
	c := a.command(cobra.Command{
		Use:   "init",
		Short: "write a commented configuration with what is found here",
		Long: `init looks at the repository and at this machine (base branch, checks, coding agents in PATH) and
writes .interlock/config.yaml into the work tree. It counts when it is committed on the base branch.
With --operator it writes your own file instead: agent, variables, sandbox, limits. A file that is
there is left alone, unless --force is given.`,
		Example: "  interlock init\n  interlock init --print\n  interlock init --operator",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, _ []string) error {
		w, text, err := a.propose(ctx, repo, operator)
		if err != nil {
			return err
		}
		if show {
			_, err := io.WriteString(a.env.Stdout, text)
			return err
		}
		if err := place(w.File, text, force); err != nil {
			return err
		}
		return a.reportInit(w)
	})
	repoFlag(c, &repo)
	c.Flags().BoolVar(&operator, "operator", false, "write your own configuration instead of the repository's")
	c.Flags().BoolVar(&force, "force", false, "write over a file that is there")
	c.Flags().BoolVar(&show, "print", false, "print the file instead of writing it")
	a.jsonFlag(c, "print one object with what was found and written")
	return c
}

// propose makes the file, with what is found.
func (a *app) propose(ctx context.Context, repo string, operator bool) (written, string, error) {
	w := written{Agents: append([]detect.Finding{}, detect.Agents(a.getenv("PATH"))...), Checks: []detect.Finding{}}
	fill := map[string]policy.Fill{"agent.command": {Remark: agentRemark(w.Agents)}}
	if operator {
		w.File, _ = a.operatorPath()
		if w.File == "" {
			return w, "", &usageError{"neither XDG_CONFIG_HOME nor HOME is set, so there is no place for your configuration", "interlock init --operator --config FILE"}
		}
		w.Next = []string{"set agent.command in " + text.Quote(w.File), "interlock config check", "interlock config show"}
		return w, policy.Commented(policy.General, fill), nil
	}
	at, err := a.locate(ctx, repo)
	if err != nil {
		return w, "", err
	}
	if at.Worktree == "" {
		return w, "", &refusal{run.ExitRefused, "a bare repository has no work tree to write into", nothingChanged, "interlock init --help"}
	}
	dir := filepath.Join(at.Worktree, filepath.Dir(policy.Path))
	if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
		return w, "", &refusal{run.ExitRefused, text.Quote(dir) + " is no directory; a link is not followed out of the repository", nothingChanged, "ls -l " + text.Quote(dir)}
	}
	plumb := a.git.At(at.Worktree)
	head, err := plumb.HeadBranch(ctx)
	if err != nil {
		head = "" // detached: the other branches may tell
	}
	refs, err := plumb.Refs(ctx, "refs/heads/")
	if err != nil {
		return w, "", err
	}
	var branches []string
	for ref := range maps.Keys(refs) {
		branches = append(branches, strings.TrimPrefix(ref, "refs/heads/"))
	}
	if w.Base = detect.Base(head, branches); w.Base.Value != "" {
		fill["base"] = policy.Fill{Value: w.Base.Value, Remark: []string{"Found: " + w.Base.Why + "."}}
	}
	if w.Checks = append(w.Checks, detect.Checks(at.Worktree)...); len(w.Checks) > 0 {
		var lines, why []string
		for _, c := range w.Checks {
			lines, why = append(lines, c.Value), append(why, c.Why)
		}
		fill["checks"] = policy.Fill{Value: lines, Remark: []string{"Found by " + strings.Join(why, ", ") + "."}}
	}
	w.File = filepath.Join(at.Worktree, policy.Path)
	w.Next = nextAfterInit(at.Worktree, len(w.Checks) > 0)
	if own, _ := a.operatorPath(); own != "" {
		if _, err := os.Lstat(own); err != nil {
			w.Next = append(w.Next, "interlock init --operator")
		}
	}
	w.Next = append(w.Next, "interlock run --next")
	return w, policy.Commented(policy.Repository, fill), nil
}

func nextAfterInit(tree string, checks bool) []string {
	next := []string{"interlock config check"}
	if !checks {
		next = []string{"set checks in " + text.Quote(policy.Path), "interlock config check"}
	}
	dir := text.Quote(tree)
	return append(next, "git -C "+dir+" add "+policy.Path, "git -C "+dir+" commit -m 'Configure Interlock'")
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

// place writes a file whole or not at all, and never over one that is there without force.
func place(path, content string, force bool) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", text.Quote(path), err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".config-*.yaml")
	if err != nil {
		return fmt.Errorf("write %s: %w", text.Quote(path), err)
	}
	defer os.Remove(f.Name())
	_, err = io.WriteString(f, content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", text.Quote(path), err)
	}
	if force {
		err = os.Rename(f.Name(), path)
	} else {
		err = os.Link(f.Name(), path) // fails where something is there, whatever it is
	}
	if errors.Is(err, fs.ErrExist) {
		return &refusal{run.ExitRefused, text.Quote(path) + " is there already", nothingChanged, "interlock init --print, or interlock init --force to write over it"}
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", text.Quote(path), err)
	}
	return nil
}

func (a *app) reportInit(w written) error {
	for i := range w.Next {
		w.Next[i] = carry(w.Next[i], a.args)
	}
	if a.json {
		return text.JSON(a.env.Stdout, w)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "wrote %s\n", text.Line(w.File))
	for _, f := range slices.Concat([]detect.Finding{w.Base}, w.Checks) {
		if f.Value != "" {
			fmt.Fprintf(&b, "  found %s (%s)\n", text.Line(f.Value), text.Line(f.Why))
		}
	}
	for _, f := range w.Agents {
		fmt.Fprintf(&b, "  agent %s (%s)\n", f.Value, text.Line(f.Why))
	}
	b.WriteString("next:\n")
	for _, n := range w.Next {
		fmt.Fprintf(&b, "  %s\n", text.Line(n))
	}
	_, err := io.WriteString(a.env.Stdout, b.String())
	return err
}
