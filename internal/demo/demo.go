// Package demo makes the throwaway repository that interlock demo works on: a small Go module with a
// bug, an issue that names it, and a scripted agent that mends it. It never drives a run, and never
// touches anything outside the directory it is given.
package demo

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"interlock/internal/git"
)

// The repository and its agent. Go files end in .txt so that they are no part of this module.
//
//go:embed files
var files embed.FS

// The issue that the agent works.
const (
	Title = "Median changes its argument, and is wrong for an even number of values"
	Body  = `Median sorts the slice that it is given, so the caller's values are in another order afterwards.
For an even number of values it returns the upper of the two in the middle; it should be their mean.

The tests TestMedianEven and TestMedianLeavesItsArgument show both.`
)

// Demo is one throwaway repository with its agent.
type Demo struct{ dir string }

// Repo is the repository.
func (d Demo) Repo() string { return filepath.Join(d.dir, "stats") }

// Agent is the program that plays the agent.
func (d Demo) Agent() string { return filepath.Join(d.dir, "agent.sh") }

// Last returns the newest demo in a directory, with its number; 0 when there is none.
func Last(dir string) (Demo, int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Demo{}, 0, err
	}
	last := 0
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			last = max(last, n)
		}
	}
	return Demo{filepath.Join(dir, strconv.Itoa(last))}, last, nil
}

// Make builds the demo of a number under a passing name and gives it its own when it is whole, so
// that a demo that was killed while it was made is never gone on with. file files the issue.
func Make(ctx context.Context, g *git.Git, dir string, n int, file func(repo string) error) (Demo, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Demo{}, err
	}
	tmp, err := os.MkdirTemp(dir, "new-")
	if err != nil {
		return Demo{}, err
	}
	defer os.RemoveAll(tmp)
	if err := fill(ctx, g, Demo{tmp}); err != nil {
		return Demo{}, fmt.Errorf("make the demo: %w", err)
	}
	if err := file(Demo{tmp}.Repo()); err != nil {
		return Demo{}, fmt.Errorf("make the demo: %w", err)
	}
	d := Demo{filepath.Join(dir, strconv.Itoa(n))}
	if err := os.Rename(tmp, d.dir); err != nil {
		return Demo{}, fmt.Errorf("make the demo: %w", err)
	}
	return d, nil
}

func fill(ctx context.Context, g *git.Git, d Demo) error {
	if err := write(d); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "--all"},
		{"-c", "user.name=Interlock demo", "-c", "user.email=demo@localhost", "commit", "--quiet", "--message=A median that is wrong"},
	} {
		if _, err := g.Run(ctx, git.Command{Dir: d.Repo(), Args: args}); err != nil {
			return err
		}
	}
	return nil
}

// write writes the demo's files.
func write(d Demo) error {
	return fs.WalkDir(files, "files", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(d.dir, strings.TrimSuffix(strings.TrimPrefix(name, "files"), ".txt"))
		if e.IsDir() {
			return os.MkdirAll(to, 0o700)
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o600)
		if strings.HasSuffix(to, ".sh") {
			mode = 0o700
		}
		return os.WriteFile(to, data, mode)
	})
}
