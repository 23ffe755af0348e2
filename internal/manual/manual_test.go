package manual_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"interlock/internal/manual"
)

// program is a small tree with text that roff could take for something else.
func program() *cobra.Command {
	do := func(*cobra.Command, []string) error { return nil }
	root := &cobra.Command{Use: "prog", Short: "a program", Long: "One line.\n  a  table\n.br is no request"}
	sub := &cobra.Command{Use: "do THING", Short: "do it", Long: "First \\fBnot bold\\fR.\n'quoted at the beginning\n\nSecond - with a hyphen.", Example: "  prog do 'a \"b\"'", RunE: do}
	sub.Flags().StringP("name", "n", "x", ".a `word` for it")
	sub.Flags().Bool("quick", false, "be quick")
	hidden := &cobra.Command{Use: "secret", Hidden: true, RunE: do}
	sub.Flags().String("internal", "", "not for people")
	if err := sub.Flags().MarkHidden("internal"); err != nil {
		panic(err)
	}
	root.PersistentFlags().String("where", "", "where it is")
	root.AddCommand(sub, hidden)
	return root
}

func TestPages(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "man")
	names, err := manual.Write(dir, program())
	if err != nil || strings.Join(names, " ") != "prog.1 prog-do.1" {
		t.Fatalf("%q, %v", names, err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "prog-do.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		".TH \"PROG\\-DO\" 1", "prog\\-do \\- do it\n", ".B prog do THING [flags]\n", "First \\efBnot bold\\efR.\n\\&'quoted at the beginning\n.PP\nSecond \\- with a hyphen.\n",
		".B \\-n, \\-\\-name word\n\\&.a word for it (default x)\n", ".B \\-\\-quick\nbe quick\n", ".SH OPTIONS OF ALL COMMANDS\n.TP\n.B \\-\\-where string\n",
		".SH EXAMPLES\n.nf\n  prog do 'a \"b\"'\n.fi\n", ".TP\n.B 130\ninterrupted\n", "\\fBprog\\fR(1)\n",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
	if strings.Contains(string(page), "internal") {
		t.Errorf("what is hidden is shown:\n%s", page)
	}
	first := manual.Page(program())
	if !strings.Contains(first, "\n\\&.br is no request\n") || !strings.Contains(first, ".B do\ndo it\n") || strings.Contains(first, "secret") {
		t.Errorf("the first page:\n%s", first)
	}
	if again := manual.Page(program()); again != first {
		t.Error("the same program makes another page")
	}
}

// TestPagesAreRoff: groff has nothing to say against a page, and prints what it says.
func TestPagesAreRoff(t *testing.T) {
	t.Parallel()
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skipf("no groff here: %v", err)
	}
	cmd := exec.Command(groff, "-man", "-Tascii", "-ww")
	cmd.Stdin = strings.NewReader(manual.Page(program().Commands()[0]))
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil || errs.Len() > 0 {
		t.Fatalf("groff: %v\n%s", err, &errs)
	}
	for _, want := range []string{`\fBnot bold\fR`, "'quoted at the beginning", "Second - with a hyphen"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

func TestNoPlaceForPages(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if names, err := manual.Write(file, program()); err == nil {
		t.Errorf("%q were written into a file", names)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "prog.1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if names, err := manual.Write(dir, program()); err == nil || strings.Join(names, " ") != "prog-do.1" {
		t.Errorf("%q, %v: one page cannot be written", names, err)
	}
}
