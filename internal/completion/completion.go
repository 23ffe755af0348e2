// Package completion tells a shell what can be typed next. It asks for what is there, and makes
// nothing: what cannot be read is not offered.
package completion

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"interlock/internal/forge"
	"interlock/internal/policy"
	"interlock/internal/progress"
	"interlock/internal/run"
	"interlock/internal/text"
)

// Source is where it is asked for what is there. An error means that nothing is offered.
type Source struct {
	Issues  func(ctx context.Context, repo string) ([]forge.Issue, error) // of every state
	Changes func(ctx context.Context, repo string) ([]forge.Change, error)
	Runs    func(ctx context.Context) ([]run.Run, error) // newest first
}

// Attach has a command, and all below it, tell a shell what can be typed: numbers of issues and changes, runs, and the words of
// flags that have few. What cannot be read is no completion, and nothing is made for it.
func (s Source) Attach(c *cobra.Command) {
	words := map[string][]string{"color": progress.Known(), "lane": policy.Named("lane").Words, "sandbox": policy.Named("sandbox.level").Words}
	switch c.CommandPath() {
	case "interlock issue list":
		words["state"] = []string{"open", "closed", "all"}
	case "interlock change list":
		words["state"] = []string{"open", "merged", "closed", "all"}
	}
	for flag, known := range words {
		if c.Flags().Lookup(flag) != nil || c.PersistentFlags().Lookup(flag) != nil {
			_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp)) // there is such a flag
		}
	}
	if c.Flags().Lookup("issue") != nil {
		_ = c.RegisterFlagCompletionFunc("issue", s.completion(s.issues))
	}
	_, takes, _ := strings.Cut(c.Use, " ")
	switch {
	case strings.Contains(takes, "RUN|ISSUE"):
		c.ValidArgsFunction = s.completion(s.issues, s.runs)
	case strings.Contains(takes, "ISSUE"):
		c.ValidArgsFunction = s.completion(s.issues)
	case strings.Contains(takes, "CHANGE"):
		c.ValidArgsFunction = s.completion(s.changes)
	}
	for _, below := range c.Commands() {
		s.Attach(below)
	}
}

// completion makes what cobra asks of what a repository, or the state, has.
func (s Source) completion(all ...func(*cobra.Command, string) []cobra.Completion) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp // one was typed
		}
		repo, err := c.Flags().GetString("repo")
		if err != nil || repo == "" {
			repo = "."
		}
		for _, of := range all {
			found = append(found, of(c, repo)...)
		}
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

func described(word any, about string) cobra.Completion {
	return cobra.CompletionWithDesc(fmt.Sprint(word), text.Line(text.Short(about, 60)))
}

func (s Source) issues(c *cobra.Command, repo string) (words []cobra.Completion) {
	issues, err := s.Issues(c.Context(), repo)
	if err != nil {
		return nil
	}
	slices.SortStableFunc(issues, func(x, y forge.Issue) int { return strings.Compare(y.State, x.State) }) // open ones first
	for _, is := range issues {
		words = append(words, described(is.Number, is.State+": "+is.Title))
	}
	return words
}

func (s Source) changes(c *cobra.Command, repo string) (words []cobra.Completion) {
	changes, err := s.Changes(c.Context(), repo)
	if err != nil {
		return nil
	}
	for _, is := range changes {
		words = append(words, described(is.Number, is.State+": "+is.Title))
	}
	return words
}

func (s Source) runs(c *cobra.Command, _ string) (words []cobra.Completion) {
	runs, err := s.Runs(c.Context())
	if err != nil {
		return nil
	}
	for _, r := range runs {
		words = append(words, described(r.ID, string(r.State)+": "+r.Task.Title))
	}
	return words
}
