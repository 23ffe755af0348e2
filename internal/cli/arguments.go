package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// repoFlag adds --repo to a command.
func repoFlag(c *cobra.Command, repo *string) {
	c.Flags().StringVar(repo, "repo", ".", "the repository: any path in it")
}

// one wants exactly one argument.
func one(what, example string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return &usageError{fmt.Sprintf("one %s is wanted, %d were given", what, len(args)), example}
	}
}

// number reads the number of an issue or a change.
func number(what, s string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimPrefix(s, "#"), 10, 64)
	if err != nil || n < 1 {
		return 0, &usageError{fmt.Sprintf("%s is not the number of %s", quoteWord(s), article(what)), "interlock " + what + " list"}
	}
	return n, nil
}

func article(what string) string {
	if strings.HasPrefix(what, "i") {
		return "an " + what
	}
	return "a " + what
}

// field prints one line of a description; an empty one is left out.
func field(b *strings.Builder, name, value string) {
	if value != "" {
		fmt.Fprintf(b, "  %-9s %s\n", name, cleanLine(value))
	}
}

// day prints a time for people.
func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05") + " UTC"
}
