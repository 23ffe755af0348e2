package settings

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"interlock/internal/policy"
	"interlock/internal/text"
	"interlock/internal/toolchain"
)

// Report is what is wrong with configuration files. Its JSON form has no null.
type Report struct {
	Files    []Checked        `json:"files"`
	Problems []policy.Problem `json:"problems"`
	Warnings []string         `json:"warnings"`

	env []string // the operator's environment
}

// Checked is a file that was looked at.
type Checked struct {
	File  string       `json:"file"`
	Whose policy.Whose `json:"whose"`
}

// NewReport begins a report; env is the operator's environment, for the programs of lines.
func NewReport(env []string) *Report {
	return &Report{Files: []Checked{}, Problems: []policy.Problem{}, Warnings: []string{}, env: env}
}

// File looks at one file, shown under a name. An error means that it could not be read.
func (r *Report) File(ctx context.Context, path, name string, whose policy.Whose) error {
	f, err := policy.ReadFile(path, name, whose)
	return r.judge(ctx, f, name, whose, err)
}

// Operator looks at the operator's file, if there is one, and returns what it says.
func (r *Report) Operator(ctx context.Context, own Own) (*policy.File, error) {
	f, err := own.Read()
	if f != nil && f.Name == "" {
		return f, err
	}
	return f, r.judge(ctx, f, own.Path, policy.General, err)
}

// Repository looks at the file in the work tree, which counts when it is committed, and at the one
// on the base branch.
func (r *Report) Repository(ctx context.Context, repo Repository, op *policy.File) error {
	inTree := filepath.Join(repo.At.Worktree, policy.Path)
	if repo.At.Worktree != "" {
		if err := r.File(ctx, inTree, inTree, policy.Repository); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	file, err := repo.baseFile(ctx, policy.Settle(policy.Layers{General: op.Values, Here: nil}).Text("base"))
	var problems policy.Problems
	switch {
	case errors.As(err, &problems):
		r.Files = append(r.Files, Checked{problems[0].File, policy.Repository})
		for _, p := range problems {
			told := func(q policy.Problem) bool { return q.Line == p.Line && q.Column == p.Column && q.What == p.What }
			if !slices.ContainsFunc(r.Problems, told) { // in the work tree as well
				r.Problems = append(r.Problems, p)
			}
		}
		return nil
	case err != nil:
		return err
	case file == nil || file.Name == "":
		if slices.ContainsFunc(r.Files, func(c Checked) bool { return c.Whose == policy.Repository }) {
			r.Warnings = append(r.Warnings, "the repository's file is not on its base branch yet: it counts when it is committed there")
		}
		return nil
	}
	return r.judge(ctx, file, file.Name, policy.Repository, nil)
}

// Sections warns of sections of the operator's file for what is no repository.
func (r *Report) Sections(f *policy.File, home string, is func(path string) error) {
	for _, s := range f.Sections {
		if err := is(policy.Expand(s.Path, home)); err != nil {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s:%d: %s is no repository", f.Name, s.Line, text.Quote(s.Path)))
		}
	}
}

// judge takes in what was found in a file.
func (r *Report) judge(ctx context.Context, f *policy.File, name string, whose policy.Whose, err error) error {
	var problems policy.Problems
	if err != nil && !errors.As(err, &problems) {
		return err
	}
	r.Files = append(r.Files, Checked{name, whose})
	r.Problems = append(r.Problems, problems...)
	path := ""
	for _, kv := range r.env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	inside := path
	if f.Values["checks"].Value != nil {
		_, inside = toolchain.Find(ctx, r.env)
	}
	missing, warnings, err := f.Programs(ctx, inside, path)
	if err != nil {
		return err
	}
	for _, p := range missing {
		told := func(q policy.Problem) bool { return q.Line == p.Line && q.What == p.What }
		if !slices.ContainsFunc(r.Problems, told) {
			r.Problems = append(r.Problems, p)
		}
	}
	r.Warnings = append(r.Warnings, warnings...)
	return nil
}

// Text is the report of files that are sound.
func (r *Report) Text() string {
	var b strings.Builder
	for _, f := range r.Files {
		fmt.Fprintf(&b, "ok  %s (%s)\n", text.Line(f.File), f.Whose)
	}
	if len(r.Files) == 0 {
		b.WriteString("there is no configuration; interlock init writes one\n")
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", text.Line(w))
	}
	return b.String()
}
