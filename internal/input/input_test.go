package input_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"interlock/internal/input"
)

func source(inline, file, stdin string) input.Source {
	return input.Source{Flag: "body", Inline: inline, File: file, Stdin: strings.NewReader(stdin), Open: func(name string) (io.ReadCloser, error) {
		switch name {
		case "notes":
			return io.NopCloser(strings.NewReader("from a file")), nil
		case "broken":
			return io.NopCloser(io.MultiReader(strings.NewReader("x"), broken{})), nil
		}
		return nil, os.ErrNotExist
	}}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("it broke") }

func TestText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", input.Most+1)
	for _, c := range []struct{ name, inline, file, stdin, want, err string }{
		{"nothing", "", "", "unread", "", ""},
		{"inline", "said", "", "", "said", ""},
		{"a file", "", "notes", "", "from a file", ""},
		{"stdin", "", "-", "piped\n", "piped\n", ""},
		{"both", "said", "notes", "", "", "--body and --body-file exclude each other"},
		{"no file", "", "nosuch", "", "", "--body-file: file does not exist"},
		{"a file that breaks", "", "broken", "", "", "--body-file: it broke"},
		{"too long", long, "", "", "", "at most 256 KiB"},
		{"too long a file", "", "-", long, "", "at most 256 KiB"},
		{"not UTF-8", "\xff", "", "", "", "UTF-8"},
		{"a file that is not", "", "-", "\xff", "", "UTF-8"},
	} {
		got, err := source(c.inline, c.file, c.stdin).Text()
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v; want %q, %q", c.name, got, err, c.want, c.err)
		}
	}
}

func TestIssue(t *testing.T) {
	t.Parallel()
	none := source("", "", "")
	for _, c := range []struct {
		name        string
		title       string
		body, whole input.Source
		want        [2]string
		err         string
	}{
		{"apart", "T", source("B", "", ""), none, [2]string{"T", "B"}, ""},
		{"one text", "", none, source("", "-", "\n  The title \nfirst\n\nsecond\n"), [2]string{"The title", "first\n\nsecond"}, ""},
		{"a title alone", "", none, source("Only this", "", ""), [2]string{"Only this", ""}, ""},
		{"both ways", "T", none, source("x", "", ""), [2]string{}, "takes the place"},
		{"both bodies", "", source("B", "", ""), source("x", "", ""), [2]string{}, "takes the place"},
		{"an empty text", "", none, source("", "-", " \n\n"), [2]string{}, "it is empty"},
		{"no title", "", none, none, [2]string{}, "--title is missing"},
		{"two lines", "a\nb", none, none, [2]string{}, "one line"},
	} {
		title, body, err := input.Issue(c.title, c.body, c.whole)
		if err == nil && c.err == "" {
			if got := [2]string{title, body}; got != c.want {
				t.Errorf("%s: %q, want %q", c.name, got, c.want)
			}
		} else if err == nil || c.err == "" || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", c.name, err, c.err)
		}
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	if err := input.Labels("label", []string{"bug", "good first issue"}); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", " x", "a,b", "a\nb", strings.Repeat("x", 101), "\xff"} {
		if err := input.Labels("add", []string{"bug", bad}); err == nil || !strings.Contains(err.Error(), "--add ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestRepository: what names a place on this machine becomes its path; what names another machine is
// refused, and nothing of it is repeated.
func TestRepository(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "odd:name"), 0o700); err != nil {
		t.Fatal(err)
	}
	for named, want := range map[string]string{
		".": dir, "sub/../r": filepath.Join(dir, "r"), "/a/b/": "/a/b", "file:///a/b": "/a/b", "FILE://localhost/a%20b/": "/a b",
		"odd:name": filepath.Join(dir, "odd:name"), "./x:y": filepath.Join(dir, "x:y"), "a b": filepath.Join(dir, "a b"),
		"file:///a%2520b": "/a%20b", "/a/u@h:p": "/a/u@h:p",
	} {
		if got, err := input.Repository(dir, named); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", named, got, err, want)
		}
	}
	for _, named := range []string{
		"https://user:s3cret@example.org/r.git", "http://example.org/s3cret", "ssh://git@example.org/s3cret", "git://example.org/s3cret",
		"git+ssh://x:s3cret@h/r", "git@example.org:s3cret/r.git", "example.org:s3cret", "file://s3cret@/a", "file://s3cret/a", "file:///a?s3cret", "file:///a#s3cret",
		"file:s3cret", "file://%zz/s3cret", "ext::s3cret", "file:///a%00s3cret", "", "a\x00s3cret",
	} {
		got, err := input.Repository(dir, named)
		if err == nil {
			t.Errorf("%q is taken for %q", named, got)
		} else if strings.Contains(err.Error(), "s3cret") || !strings.HasPrefix(err.Error(), "--repo") {
			t.Errorf("%q: the refusal repeats it, or does not name the flag: %v", named, err)
		}
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	given := []string{"run", "--repo", "https://u:p@h/r", "--repo=u@h:p", "--repo", "r", "--title", "https://u:p@h/r", "--repo"}
	want := []string{"run", "--repo", "PATH", "--repo=PATH", "--repo", "r", "--title", "https://u:p@h/r", "--repo"}
	if diff := cmp.Diff(want, input.Printable("/", given)); diff != "" {
		t.Errorf("printable (-want +got):\n%s", diff)
	}
	if given[2] != "https://u:p@h/r" {
		t.Error("the command line itself was changed")
	}
}
