package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"interlock/internal/forge"
	"interlock/internal/policy"
	"interlock/internal/progress"
	"interlock/internal/store"
	"interlock/internal/text"
)

// complete tells a shell what can be typed: numbers of issues and changes, runs, and the words of
// flags that have few. What cannot be read is no completion, and nothing is made for it.
func (a *app) complete(c *cobra.Command) {
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
		_ = c.RegisterFlagCompletionFunc("issue", a.completion(a.issueWords))
	}
	_, takes, _ := strings.Cut(c.Use, " ")
	switch {
	case strings.Contains(takes, "RUN|ISSUE"):
		c.ValidArgsFunction = a.completion(a.issueWords, a.runWords)
	case strings.Contains(takes, "ISSUE"):
		c.ValidArgsFunction = a.completion(a.issueWords)
	case strings.Contains(takes, "CHANGE"):
		c.ValidArgsFunction = a.completion(a.changeWords)
	}
	for _, below := range c.Commands() {
		a.complete(below)
	}
}

// completion makes what cobra asks of what a repository, or the state, has.
func (a *app) completion(all ...func(*cobra.Command, string) []cobra.Completion) cobra.CompletionFunc {
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

func (a *app) issueWords(c *cobra.Command, repo string) (words []cobra.Completion) {
	f, err := a.forge(c.Context(), repo)
	if err != nil {
		return nil
	}
	issues, err := f.Issues(c.Context(), forge.Filter{State: "all"})
	if err != nil {
		return nil
	}
	slices.SortStableFunc(issues, func(x, y forge.Issue) int { return strings.Compare(y.State, x.State) }) // open ones first
	for _, is := range issues {
		words = append(words, described(is.Number, is.State+": "+is.Title))
	}
	return words
}

func (a *app) changeWords(c *cobra.Command, repo string) (words []cobra.Completion) {
	f, err := a.forge(c.Context(), repo)
	if err != nil {
		return nil
	}
	changes, err := f.Changes(c.Context(), "")
	if err != nil {
		return nil
	}
	for _, is := range changes {
		words = append(words, described(is.Number, is.State+": "+is.Title))
	}
	return words
}

func (a *app) runWords(c *cobra.Command, _ string) (words []cobra.Completion) {
	s, err := a.openWhatIsThere(c.Context())
	if err != nil {
		return nil
	}
	defer s.Close()
	runs, err := s.List(c.Context(), store.Filter{Limit: 50})
	if err != nil {
		return nil
	}
	for _, r := range runs {
		words = append(words, described(r.ID, string(r.State)+": "+r.Task.Title))
	}
	return words
}
