package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"interlock/internal/forge"
	"interlock/internal/forge/local"
	"interlock/internal/input"
	"interlock/internal/text"
	"interlock/internal/view"
)

func (a *app) issueCommand() *cobra.Command {
	return a.group(cobra.Command{
		Use:     "issue",
		Short:   "file, read, comment and label issues",
		Example: "  interlock issue new --repo . --title 'Sum is wrong for negative numbers'\n  interlock issue list",
	}, a.issueNew(), a.issueList(), a.issueShow(), a.issueComment(), a.issueLabel(), a.issueClose())
}

func (a *app) issueNew() *cobra.Command {
	var repo, title, body, file, one, oneFile string
	var labels []string
	c := a.command(cobra.Command{
		Use:   "new --title TITLE | --text TEXT",
		Short: "file an issue and print its number",
		Long: `new files an issue in the repository's embedded forge and prints its number, alone, on stdout. As
with gh, a title and a body are given by --title and --body, or --body-file with - for stdin. With
--text, or --text-file, they are one text: its first line is the title.`,
		Example: "  interlock issue new --repo . --title 'Sum is wrong for negative numbers' --label bug\n" +
			"  interlock issue new --title 'Say what a retry does' --body-file notes.md --json",
		Args: func(c *cobra.Command, args []string) error {
			err := atMost(0)(c, args)
			if err != nil && !c.Flags().Changed("title") { // a title that was typed as an argument
				return &usageError{err.Error(), "interlock issue new --title " + text.Quote(strings.Join(args, " "))}
			}
			return err
		},
	}, func(ctx context.Context, _ []string) error {
		title, full, err := input.Issue(title, a.text("body", body, file), a.text("text", one, oneFile))
		if err == nil {
			err = input.Labels("label", labels)
		}
		if err != nil {
			return &usageError{err.Error(), "interlock issue new --repo . --title 'Sum is wrong for negative numbers'"}
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
		return a.print(is, fmt.Sprintln(is.Number))
	})
	repoFlag(c, &repo)
	c.Flags().StringVarP(&title, "title", "t", "", "one line that says what is wrong or wanted")
	bodyFlags(c, &body, &file, "the rest of the issue")
	c.Flags().StringVar(&one, "text", "", "title and body in one: the first line is the title")
	c.Flags().StringVar(&oneFile, "text-file", "", "read them from a file, - for stdin")
	c.Flags().StringArrayVar(&labels, "label", nil, "a label (can be given more than once)")
	a.jsonFlag(c, "print the issue as one JSON object")
	return c
}

// text is a text that is given by --FLAG or --FLAG-file.
func (a *app) text(flag, inline, file string) input.Source {
	return input.Source{Flag: flag, Inline: inline, File: file, Stdin: a.env.Stdin,
		Open: func(name string) (io.ReadCloser, error) { return os.Open(a.path(name)) }}
}

// author is who files an issue: the operator's login. It is for people; nothing trusts it.
func (a *app) author() string {
	for _, name := range []string{"LOGNAME", "USER"} {
		if v := a.getenv(name); v != "" {
			return v
		}
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
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
		Args:    atMost(0),
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
		n, f, err := a.issueOf(ctx, repo, args[0])
		if err != nil {
			return err
		}
		is, err := f.Issue(ctx, n)
		if err != nil {
			return err
		}
		return a.print(is, view.Issue(is))
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
		n, f, err := a.issueOf(ctx, repo, args[0])
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
		return a.print(is, fmt.Sprintf("issue %d is closed\n", n))
	})
	repoFlag(c, &repo)
	a.jsonFlag(c, "print the issue as one JSON object")
	return c
}

// bodyFlags adds what gives a body, as gh calls it.
func bodyFlags(c *cobra.Command, body, file *string, what string) {
	c.Flags().StringVarP(body, "body", "b", "", what)
	c.Flags().StringVarP(file, "body-file", "F", "", "read it from a file, - for stdin")
}

func (a *app) issueComment() *cobra.Command {
	var repo, body, file string
	c := a.command(cobra.Command{
		Use:   "comment ISSUE --body TEXT",
		Short: "leave a comment on an issue",
		Long: `comment leaves a comment of yours. It is not part of the task that an agent is given: that is the
issue's title and body.`,
		Example: "  interlock issue comment 1 --body 'It is wrong for 0, too.'\n  interlock issue comment 1 --body-file - --json",
		Args:    one("ISSUE", "interlock issue comment 1 --body TEXT"),
	}, func(ctx context.Context, args []string) error {
		said, err := a.text("body", body, file).Text()
		if err == nil && strings.TrimSpace(said) == "" {
			err = errors.New("--body is missing: a comment has to say something")
		}
		if err != nil {
			return &usageError{err.Error(), "interlock issue comment --help"}
		}
		n, f, err := a.issueOf(ctx, repo, args[0])
		if err != nil {
			return err
		}
		comment, err := f.Say(ctx, n, said, a.author())
		if err == nil {
			err = a.restore(ctx, f)
		}
		if err != nil {
			return err
		}
		return a.print(comment, fmt.Sprintf("comment %d on issue %d\n", comment.ID, n))
	})
	repoFlag(c, &repo)
	bodyFlags(c, &body, &file, "what the comment says")
	a.jsonFlag(c, "print the comment as one JSON object")
	return c
}

// issueOf opens the forge of a repository, for an issue of it.
func (a *app) issueOf(ctx context.Context, repo, word string) (int64, *local.Forge, error) {
	return a.numbered(ctx, repo, "issue", word)
}

// numbered opens the forge of a repository, for an issue or a change of it.
func (a *app) numbered(ctx context.Context, repo, what, word string) (int64, *local.Forge, error) {
	n, err := number(what, word)
	if err != nil {
		return 0, nil, err
	}
	f, err := a.restored(ctx, repo)
	return n, f, err
}

func (a *app) issueLabel() *cobra.Command {
	var repo string
	var on, off []string
	c := a.command(cobra.Command{
		Use:   "label ISSUE --add LABEL --remove LABEL",
		Short: "put labels on an issue, and take others off",
		Long: `label puts labels on an issue and takes others off. A label that is there, or not there, already is
no mistake. Labels that begin with interlock/ say where the issue stands, and are not yours to set.`,
		Example: "  interlock issue label 1 --add bug --add urgent\n  interlock issue label 1 --remove urgent --json",
		Args:    one("ISSUE", "interlock issue label 1 --add LABEL"),
	}, func(ctx context.Context, args []string) error {
		err := errors.Join(input.Labels("add", on), input.Labels("remove", off))
		if err == nil && len(on)+len(off) == 0 {
			err = errors.New("nothing is to be done: give --add or --remove")
		}
		if err != nil {
			return &usageError{err.Error(), "interlock issue label --help"}
		}
		n, f, err := a.issueOf(ctx, repo, args[0])
		if err != nil {
			return err
		}
		is, changed, err := f.Label(ctx, n, on, off)
		if err == nil {
			err = a.restore(ctx, f)
		}
		if err != nil {
			return err
		}
		if a.json {
			return text.JSON(a.env.Stdout, is)
		}
		said := fmt.Sprintf("issue %d: %s", n, strings.Join(is.Labels, ", "))
		if len(is.Labels) == 0 {
			said = fmt.Sprintf("issue %d has no labels", n)
		}
		if !changed {
			said += " (as before)"
		}
		_, err = fmt.Fprintln(a.env.Stdout, text.Line(said))
		return err
	})
	repoFlag(c, &repo)
	c.Flags().StringArrayVar(&on, "add", nil, "a label to put on (can be given more than once)")
	c.Flags().StringArrayVar(&off, "remove", nil, "a label to take off (can be given more than once)")
	a.jsonFlag(c, "print the issue as one JSON object")
	return c
}
