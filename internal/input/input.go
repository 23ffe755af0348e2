// Package input reads the text that a person gives with a command, and where a repository is that a
// person names. It opens what was named, and nothing else; it never shows what might be a secret.
package input

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"interlock/internal/text"
)

// Most is the longest text, in bytes: a task has to fit in an agent's prompt.
const Most = 256 << 10

// Source is where a text comes from: inline, or a file, "-" being stdin.
type Source struct {
	Flag   string // the name of the flag that holds the text, without dashes
	Inline string
	File   string // as typed
	Stdin  io.Reader
	// Open opens a file that was typed.
	Open func(string) (io.ReadCloser, error)
}

// Text returns the text. Giving it in both ways is a mistake; in neither it is "".
func (s Source) Text() (string, error) {
	file := "--" + s.Flag + "-file"
	if s.File == "" {
		if len(s.Inline) > Most || !utf8.ValidString(s.Inline) {
			return "", fmt.Errorf("--%s has to be UTF-8 of at most 256 KiB", s.Flag)
		}
		return s.Inline, nil
	}
	if s.Inline != "" {
		return "", fmt.Errorf("--%s and %s exclude each other", s.Flag, file)
	}
	in := io.NopCloser(s.Stdin)
	if s.File != "-" {
		f, err := s.Open(s.File)
		if err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		in = f
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, Most+1))
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	if len(data) > Most || !utf8.Valid(data) {
		return "", fmt.Errorf("%s %s: it has to be UTF-8 of at most 256 KiB", file, text.Quote(s.File))
	}
	return string(data), nil
}

// given reports whether a text was given at all.
func (s Source) given() bool { return s.Inline+s.File != "" }

// Issue is the title and the body of a new issue: given apart, or as one text.
func Issue(title string, body, whole Source) (string, string, error) {
	if !whole.given() {
		b, err := body.Text()
		if err == nil {
			err = Title(title)
		}
		return title, b, err
	}
	if title != "" || body.given() {
		return "", "", errors.New("--text takes the place of --title and --body: its first line is the title")
	}
	all, err := whole.Text()
	if err != nil {
		return "", "", err
	}
	if title, b := Task(all); title != "" {
		return title, b, Title(title)
	}
	return "", "", errors.New("--text has to say what is wrong or wanted; it is empty")
}

// Task makes a title and a body of one text: the first line that is not empty is the title.
func Task(s string) (title, body string) {
	first, rest, _ := strings.Cut(strings.TrimLeft(s, " \t\r\n"), "\n")
	return strings.TrimSpace(first), strings.Trim(rest, "\r\n")
}

// Title refuses a title that no list could show.
func Title(title string) error {
	switch {
	case strings.TrimSpace(title) == "":
		return errors.New("--title is missing: an issue needs one line that says what is wrong or wanted")
	case strings.ContainsAny(title, "\r\n"), len(title) > 400, !utf8.ValidString(title):
		return errors.New("--title has to be one line of UTF-8 of at most 400 bytes")
	}
	return nil
}

// Labels refuses labels that no list could show.
func Labels(flag string, labels []string) error {
	for _, l := range labels {
		if strings.TrimSpace(l) != l || l == "" || strings.ContainsAny(l, "\r\n,") || len(l) > 100 || !utf8.ValidString(l) {
			return fmt.Errorf("--%s %s: a label is one line of at most 100 bytes without commas", flag, text.Quote(l))
		}
	}
	return nil
}

// scp is how ssh's older programs name a place on another machine: [user@]host:path.
var scp = regexp.MustCompile(`^(?:[^/:@]+@)?[^/:@]+:[^/]`)

// Repository returns the path of a repository that was named by a path or by a file URL. dir is what
// a relative path begins at. Others' URLs are refused, and never repeated: they may hold a password.
func Repository(dir, named string) (string, error) {
	scheme, _, isURL := strings.Cut(named, "://")
	switch {
	case isURL && strings.EqualFold(scheme, "file"):
		return fileURL(named)
	case isURL && strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz+") == "":
		return "", elsewhere("the URL of a repository on another machine (" + strings.ToLower(scheme) + "://)")
	case scp.MatchString(named):
		if _, err := os.Lstat(filepath.Join(dir, named)); err != nil || filepath.IsAbs(named) { // a path may look like that
			return "", elsewhere("a repository on another machine (HOST:PATH)")
		}
	case strings.ContainsRune(named, 0), named == "":
		return "", errors.New("--repo names no repository: it is empty, or holds a zero byte")
	}
	if !filepath.IsAbs(named) {
		named = filepath.Join(dir, named)
	}
	return filepath.Clean(named), nil
}

func elsewhere(what string) error {
	return fmt.Errorf("--repo names %s. Repositories of this machine are worked: a path, or file:///path. "+
		"Clone it, and name the clone; Gitea, Forgejo and GitHub are not there yet", what)
}

// fileURL returns the path of a file URL: an absolute one, of this machine, and nothing else.
func fileURL(named string) (string, error) {
	u, err := url.Parse(named)
	switch {
	case err != nil:
		return "", errors.New("--repo is no URL that can be read: file:///path, with %20 for a space")
	case u.User != nil, u.Host != "" && u.Host != "localhost":
		return "", errors.New("--repo: a file URL names a path of this machine, as file:///path, and nobody's name or host")
	case u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("--repo: a file URL of a repository has no ? and no #; write %3F and %23 where the path has them")
	case !filepath.IsAbs(u.Path) || strings.ContainsRune(u.Path, 0):
		return "", errors.New("--repo: a file URL names an absolute path, as file:///path")
	}
	return filepath.Clean(u.Path), nil
}

// Printable is a command line as it may be repeated: what names a repository that is refused may
// hold a password.
func Printable(dir string, args []string) []string {
	shown := slices.Clone(args)
	for i, arg := range shown {
		value, joined := strings.CutPrefix(arg, "--repo=")
		if !joined && (i == 0 || shown[i-1] != "--repo") {
			continue
		}
		if _, err := Repository(dir, value); err != nil {
			shown[i] = "PATH"
			if joined {
				shown[i] = "--repo=PATH"
			}
		}
	}
	return shown
}
