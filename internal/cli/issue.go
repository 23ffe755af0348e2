package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"interlock/internal/forge"
	"interlock/internal/text"
	"interlock/internal/view"
)

func (a *app) issueCommand() *cobra.Command {
	return a.group(cobra.Command{
		Use:     "issue",
		Short:   "file and read issues",
		Example: "  interlock issue new --repo . --title 'Sum is wrong for negative numbers'\n  interlock issue list",
	}, a.issueNew(), a.issueList(), a.issueShow(), a.issueClose())
}

// bodyMost is the longest body of an issue, in bytes: a task has to fit in an agent's prompt.
const bodyMost = 256 << 10

func (a *app) issueNew() *cobra.Command {
	var repo, title, body, file string
	var labels []string
	c := a.command(cobra.Command{
		Use:   "new --title TITLE",
		Short: "file an issue and print its number",
		Long:  "new files an issue in the repository's embedded forge and prints its number, alone, on stdout.",
		Example: "  interlock issue new --repo . --title 'Sum is wrong for negative numbers' --label bug\n" +
			"  interlock issue new --title 'Say what a retry does' --body-file notes.md --json",
		Args: cobra.NoArgs,
	}, func(ctx context.Context, _ []string) error {
		full, err := a.body(body, file)
		if err != nil {
			return err
		}
		if err := issueWords(title, labels); err != nil {
			return err
		}
		f, err := a.restored(ctx, repo)
		if err != nil {
			return err
		}
		is, err := f.NewIssue(ctx, title, full, labels, a.author())
		if err != nil {
			return err
		}
		if err := a.restore(ctx, f); err != nil {
			return err
		}
		if a.json {
			return text.JSON(a.env.Stdout, is)
		}
		_, err = fmt.Fprintln(a.env.Stdout, is.Number)
		return err
	})
	repoFlag(c, &repo)
	c.Flags().StringVar(&title, "title", "", "one line that says what is wrong or wanted")
	c.Flags().StringVar(&body, "body", "", "the rest of the issue")
	c.Flags().StringVar(&file, "body-file", "", "read the body from a file, - for stdin")
	c.Flags().StringArrayVar(&labels, "label", nil, "a label (can be given more than once)")
	a.jsonFlag(c, "print the issue as one JSON object")
	return c
}

// issueWords refuses a title and labels that no list could show.
func issueWords(title string, labels []string) error {
	example := "interlock issue new --repo . --title 'Sum is wrong for negative numbers'"
	switch {
	case strings.TrimSpace(title) == "":
		return &usageError{"--title is missing: an issue needs one line that says what is wrong or wanted", example}
	case strings.ContainsAny(title, "\r\n"), len(title) > 400, !utf8.ValidString(title):
		return &usageError{"--title has to be one line of UTF-8 of at most 400 bytes", example}
	}
	for _, l := range labels {
		if strings.TrimSpace(l) != l || l == "" || strings.ContainsAny(l, "\r\n,") || len(l) > 100 || !utf8.ValidString(l) {
			return &usageError{fmt.Sprintf("--label %s: a label is one line of at most 100 bytes without commas", text.Quote(l)), example}
		}
	}
	return nil
}

// body returns the body of a new issue.
func (a *app) body(body, file string) (string, error) {
	example := "interlock issue new --title TITLE --body-file FILE"
	if file == "" {
		if len(body) > bodyMost || !utf8.ValidString(body) {
			return "", &usageError{"--body has to be UTF-8 of at most 256 KiB", example}
		}
		return body, nil
	}
	if body != "" {
		return "", &usageError{"--body and --body-file exclude each other", example}
	}
	in := a.env.Stdin
	if file != "-" {
		f, err := os.Open(a.path(file))
		if err != nil {
			return "", &usageError{"--body-file: " + err.Error(), example}
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, bodyMost+1))
	if err != nil {
		return "", &usageError{"--body-file: " + err.Error(), example}
	}
	if len(data) > bodyMost || !utf8.Valid(data) {
		return "", &usageError{"--body-file " + text.Quote(file) + ": a body is UTF-8 of at most 256 KiB", example}
	}
	return string(data), nil
}

// author is who files an issue: the operator's login. It is for people; nothing trusts it.
func (a *app) author() string {
	for _, name := range []string{"LOGNAME", "USER"} {
		if v := a.getenv(name); v != "" {
			return v
		}
	}
	return "uid " + strconv.Itoa(os.Getuid())
}

func (a *app) issueList() *cobra.Command {
	var repo, state string
	var labels []string
	c := a.command(cobra.Command{
		Use:     "list",
		Short:   "list issues",
		Example: "  interlock issue list\n  interlock issue list --repo ../other --label bug --state all --json",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, _ []string) error {
		if !slices.Contains([]string{"open", "closed", "all"}, state) {
			return &usageError{"--state " + text.Quote(state) + ": " + text.Known(state, "open", "closed", "all"), "interlock issue list --state all"}
		}
		f, err := a.restored(ctx, repo)
		if err != nil {
			return err
		}
		found, err := f.Issues(ctx, forge.Filter{State: state, Labels: labels})
		if err != nil {
			return err
		}
		if a.json {
			return text.List(a.env.Stdout, found)
		}
		return a.printIssues(found, state)
	})
	repoFlag(c, &repo)
	c.Flags().StringVar(&state, "state", "open", "open, closed or all")
	c.Flags().StringArrayVar(&labels, "label", nil, "only issues with this label (more than once: with all of them)")
	a.jsonFlag(c, "print one JSON array")
	return c
}

func (a *app) printIssues(found []forge.Issue, state string) error {
	if len(found) > 0 {
		return view.Issues(a.env.Stdout, found)
	}
	what := "no " + state + " issues"
	if state == "all" {
		what = "no issues"
	}
	_, err := fmt.Fprintln(a.env.Stderr, what+"; file one with: interlock issue new --title TITLE")
	return err
}

func (a *app) issueShow() *cobra.Command {
	var repo string
	c := a.command(cobra.Command{
		Use:     "show ISSUE",
		Short:   "show an issue and its comments",
		Example: "  interlock issue show 1\n  interlock issue show 1 --json",
		Args:    one("ISSUE", "interlock issue show 1"),
	}, func(ctx context.Context, args []string) error {
		n, err := number("issue", args[0])
		if err != nil {
			return err
		}
		f, err := a.restored(ctx, repo)
		if err != nil {
			return err
		}
		is, err := f.Issue(ctx, n)
		if err != nil {
			return err
		}
		if a.json {
			return text.JSON(a.env.Stdout, is)
		}
		_, err = io.WriteString(a.env.Stdout, view.Issue(is))
		return err
	})
	repoFlag(c, &repo)
	a.jsonFlag(c, "print the issue as one JSON object")
	return c
}

func (a *app) issueClose() *cobra.Command {
	var repo string
	c := a.command(cobra.Command{
		Use:   "close ISSUE",
		Short: "close an issue, so that it is not worked any more",
		Long: `close is how an issue is got rid of. There is no way to delete one: a ref of an issue that is
deleted by hand is taken for wiped, and put back by whoever has seen it.`,
		Example: "  interlock issue close 1",
		Args:    one("ISSUE", "interlock issue close 1"),
	}, func(ctx context.Context, args []string) error {
		n, err := number("issue", args[0])
		if err != nil {
			return err
		}
		f, err := a.restored(ctx, repo)
		if err != nil {
			return err
		}
		is, err := f.CloseIssue(ctx, n)
		if err != nil {
			return err
		}
		if err := a.restore(ctx, f); err != nil {
			return err
		}
		if a.json {
			return text.JSON(a.env.Stdout, is)
		}
		_, err = fmt.Fprintf(a.env.Stdout, "issue %d is closed\n", n)
		return err
	})
	repoFlag(c, &repo)
	a.jsonFlag(c, "print the issue as one JSON object")
	return c
}
