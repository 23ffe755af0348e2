package cli

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"interlock/internal/manual"
	"interlock/internal/run"
	"interlock/internal/view"
)

func tree() *cobra.Command {
	return (&app{env: Env{Dir: "/", Stdout: io.Discard, Stderr: io.Discard, Now: time.Now}}).root()
}

func walk(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, below := range c.Commands() {
		walk(below, do)
	}
}

// TestEveryCommandHasAnExample: each example is a command line that would be understood.
func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	walk(tree(), func(c *cobra.Command) {
		if c.Short == "" || c.Example == "" {
			t.Errorf("%s has no short description or no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			words := words(line)
			if len(words) == 0 || words[0] != "interlock" {
				t.Errorf("%s: the example %q is not a command of interlock", c.CommandPath(), line)
				continue
			}
			if i := slices.Index(words, ">"); i > 0 {
				words = words[:i]
			}
			if err := Check(words[1:]); err != nil {
				t.Errorf("%s: the example %q would be refused: %v", c.CommandPath(), line, err)
			}
		}
	})
}

func TestHelpShowsTheTables(t *testing.T) {
	t.Parallel()
	help := view.RootHelp()
	for _, c := range run.ExitCodes {
		if !strings.Contains(help, c.Meaning) {
			t.Errorf("--help does not show %d, %s", c.Code, c.Meaning)
		}
	}
	for _, d := range run.Defaults {
		if !strings.Contains(help, d.What) || !strings.Contains(help, d.Why) {
			t.Errorf("--help does not show the default of %s with its reason", d.What)
		}
	}
	for line := range strings.Lines(help) {
		if len(line) > 140 {
			t.Errorf("--help has a line of %d bytes: %s", len(line), line)
		}
	}
}

func TestEveryFlagIsDescribed(t *testing.T) {
	t.Parallel()
	walk(tree(), func(c *cobra.Command) {
		usage := c.LocalFlags().FlagUsages()
		for line := range strings.Lines(usage) {
			if f := strings.Fields(line); len(f) < 3 && !strings.Contains(line, "   ") {
				t.Errorf("%s: flag without a description: %s", c.CommandPath(), line)
			}
		}
	})
}

// TestManualPages: each command has a page, and each of its flags and examples is on it.
func TestManualPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names, err := manual.Write(dir, tree())
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	walk(tree(), func(c *cobra.Command) {
		name := manual.Name(c) + ".1"
		if !slices.Contains(names, name) {
			t.Errorf("%s has no page", c.CommandPath())
			return
		}
		found++
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		page := strings.NewReplacer(`\-`, "-", `\e`, `\`, `\&`, "").Replace(string(data))
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(page, "--"+f.Name) {
				t.Errorf("%s does not have --%s", name, f.Name)
			}
		})
		if !strings.Contains(page, c.Example) || !strings.Contains(page, c.Short) {
			t.Errorf("%s lacks its examples, or what it is for", name)
		}
	})
	if found != len(names) || found < 35 {
		t.Errorf("%d commands, %d pages", found, len(names))
	}
}
