package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"interlock/internal/text"
)

// repoFlag adds --repo to a command.
func repoFlag(c *cobra.Command, repo *string) {
	c.Flags().StringVar(repo, "repo", ".", "the repository: any path in it, or its file:// URL")
}

// one wants exactly one argument. The example is for number 1; the number that was typed takes its place.
func one(what, example string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		next := example
		if len(args) > 0 {
			if n, err := number("issue", args[0]); err == nil {
				next = strings.Replace(example, " 1", fmt.Sprintf(" %d", n), 1)
			}
		}
		return &usageError{fmt.Sprintf("one %s is wanted, %d were given", what, len(args)), next}
	}
}

// atMost wants no more than so many arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		takes := map[int]string{0: "no arguments", 1: "one argument"}[n]
		return &usageError{fmt.Sprintf("%s is too much: %s takes %s", text.Quote(args[n]), c.CommandPath(), takes), c.CommandPath() + " --help"}
	}
}

// topics wants the words of a command, for help.
func topics(c *cobra.Command, args []string) error {
	if _, left, err := c.Root().Find(args); err != nil || len(left) > 0 {
		return &usageError{"there is no command " + text.Quote(strings.Join(args, " ")), "interlock --help"}
	}
	return nil
}

// number reads the number of an issue or a change.
func number(what, s string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimPrefix(s, "#"), 10, 64)
	if err != nil || n < 1 {
		return 0, &usageError{fmt.Sprintf("%s is not the number of %s", text.Quote(s), article(what)), "interlock " + what + " list"}
	}
	return n, nil
}

func article(what string) string {
	if strings.HasPrefix(what, "i") {
		return "an " + what
	}
	return "a " + what
}

// meantFlag says which flag was probably meant, where an error is about one that is not known.
func meantFlag(c *cobra.Command, err error) string {
	typed, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !unknown {
		return ""
	}
	var known []string
	c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	return meant(text.Nearest(typed, known...), "--")
}

// meantCommand says which command of a group was probably meant.
func meantCommand(c *cobra.Command, typed string) string {
	var known []string
	for _, sub := range c.Commands() {
		known = append(known, sub.Name())
	}
	return meant(text.Nearest(typed, known...), "")
}

func meant(word, before string) string {
	if word == "" {
		return ""
	}
	return "; did you mean " + before + word + "?"
}
