// Package manual makes manual pages of a tree of commands, one for each. It writes new files into one
// directory; it knows nothing of what the commands do, and never runs one.
package manual

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"interlock/internal/run"
)

// Write writes the pages of a command and of all below it into a directory, which is made where it
// is missing, and returns their names. A page that is there is written over.
func Write(dir string, root *cobra.Command) (names []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for _, c := range tree(root) {
		name := Name(c) + ".1"
		if werr := os.WriteFile(filepath.Join(dir, name), []byte(Page(c)), 0o644); werr != nil {
			err = errors.Join(err, werr)
			continue
		}
		names = append(names, name)
	}
	return names, err
}

// tree lists a command and all below it that people type.
func tree(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			all = append(all, tree(below)...)
		}
	}
	return all
}

// Name is what a command's page is called: interlock-issue-new.
func Name(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// Page is the manual page of one command, for man(1). It holds no date: the same program makes the
// same page.
func Page(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" interlock \"Interlock\"\n", quote(strings.ToUpper(Name(c))))
	section(&b, "NAME")
	fmt.Fprintf(&b, "%s \\- %s\n", escape(Name(c)), escape(c.Short))
	section(&b, "SYNOPSIS")
	fmt.Fprintf(&b, ".B %s\n", escape(c.UseLine()))
	section(&b, "DESCRIPTION")
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	if c.HasParent() {
		b.WriteString(paragraphs(about))
	} else { // the root's has tables, which are kept as they are
		fmt.Fprintf(&b, ".nf\n%s\n.fi\n", lines(about))
	}
	commands(&b, c)
	flags(&b, "OPTIONS", c.NonInheritedFlags())
	flags(&b, "OPTIONS OF ALL COMMANDS", c.InheritedFlags())
	if c.Example != "" {
		section(&b, "EXAMPLES")
		fmt.Fprintf(&b, ".nf\n%s\n.fi\n", lines(c.Example))
	}
	section(&b, "EXIT STATUS")
	for _, e := range run.ExitCodes {
		fmt.Fprintf(&b, ".TP\n.B %d\n%s\n", e.Code, escape(e.Meaning))
	}
	seeAlso(&b, c)
	return b.String()
}

func section(b *strings.Builder, name string) { fmt.Fprintf(b, ".SH %s\n", name) }

func commands(b *strings.Builder, c *cobra.Command) {
	if !c.HasAvailableSubCommands() {
		return
	}
	section(b, "COMMANDS")
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			fmt.Fprintf(b, ".TP\n.B %s\n%s\n", escape(below.Name()), escape(below.Short))
		}
	}
}

func flags(b *strings.Builder, name string, set *pflag.FlagSet) {
	if !set.HasAvailableFlags() {
		return
	}
	section(b, name)
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		what, usage := pflag.UnquoteUsage(f)
		names := "--" + f.Name
		if f.Shorthand != "" {
			names = "-" + f.Shorthand + ", " + names
		}
		if what != "" {
			names += " " + what
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" {
			usage += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", escape(names), escape(usage))
	})
}

func seeAlso(b *strings.Builder, c *cobra.Command) {
	var pages []string
	if c.HasParent() {
		pages = append(pages, Name(c.Parent()))
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			pages = append(pages, Name(below))
		}
	}
	if len(pages) == 0 {
		return
	}
	section(b, "SEE ALSO")
	for i, p := range pages {
		pages[i] = "\\fB" + escape(p) + "\\fR(1)"
	}
	b.WriteString(strings.Join(pages, ",\n") + "\n")
}

// paragraphs is running text: lines are filled, an empty one begins a new paragraph.
func paragraphs(s string) string {
	return strings.ReplaceAll(lines(s), "\n\n", "\n.PP\n") + "\n"
}

// lines escapes text line by line.
func lines(s string) string {
	all := strings.Split(s, "\n")
	for i, l := range all {
		all[i] = escape(l)
	}
	return strings.Join(all, "\n")
}

// escape keeps text from being taken for a request of roff: a backslash anywhere, a full stop or a
// quote at the beginning of a line; and keeps each hyphen one that can be copied.
func escape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

// quote makes one argument of a request.
func quote(s string) string { return `"` + strings.ReplaceAll(escape(s), `"`, `""`) + `"` }
