package policy

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"interlock/internal/scope"
	"interlock/internal/secret"
	"interlock/internal/shell"
	"interlock/internal/text"
)

// read turns one value, or one entry of a list, into what its key holds. The error says what is
// wrong and what is allowed, and never repeats what might be a secret.
func (k *Key) read(s string) (any, error) {
	switch k.Kind {
	case Word, Dir:
		return k.readWord(s)
	case Line, Lines:
		return s, badLine(s)
	case Names:
		return s, badName(s)
	case Paths:
		return readPath(s)
	case Secrets:
		return readSecret(s)
	case Count:
		return k.readCount(s)
	case Span:
		return k.readSpan(s)
	case Memory:
		if _, err := Bytes(s); err != nil {
			return nil, fmt.Errorf("%s: %w", cut(s), err)
		}
		return s, nil
	case Size:
		if _, err := SizeBytes(s); err != nil {
			return nil, fmt.Errorf("%s: %w", cut(s), err)
		}
		return s, nil
	case Switch:
		if s != "true" && s != "false" {
			return nil, fmt.Errorf("%s: %s", cut(s), text.Known(s, "true", "false"))
		}
		return s == "true", nil
	}
	panic("a kind without a reader")
}

func readPath(s string) (any, error) {
	if _, err := scope.ParseAllow([]string{s}); err != nil {
		return nil, fmt.Errorf("%s; wanted is a path inside the repository, from its root", strings.TrimPrefix(err.Error(), "allowed path "))
	}
	return s, nil
}

func readSecret(s string) (any, error) {
	if _, err := secret.ParseAllow([]string{s}); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "allowed secret "))
	}
	return s, nil
}

func (k *Key) readWord(s string) (any, error) {
	switch {
	case len(s) > maxWord:
		return nil, fmt.Errorf("has %d bytes: at most %d are taken", len(s), maxWord)
	case strings.TrimSpace(s) == "" || strings.ContainsFunc(s, hidden) || k.Kind == Word && strings.ContainsFunc(s, deceptive):
		return nil, errors.New("is empty, or holds characters that cannot be seen")
	case len(k.Words) > 0 && !slices.Contains(k.Words, s):
		return nil, fmt.Errorf("%s: %s", cut(s), text.Known(s, slices.Sorted(slices.Values(k.Words))...))
	case k.Kind == Dir && !filepath.IsAbs(s) && !strings.HasPrefix(s, "~/"):
		return nil, fmt.Errorf("%s: wanted is an absolute path, or one that begins with ~/", cut(s))
	}
	return s, nil
}

// all names words as a sentence does.

// hidden reports whether a character cannot be seen or changes the direction of text: what is
// shown would not be what is used (Unicode UAX #44, general categories and default ignorables).
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
}

// deceptive reports whether a character looks like another one or like none; names have no use for
// it, while a line may print it.
func deceptive(r rune) bool {
	return r != ' ' && unicode.In(r, unicode.Zs, unicode.Variation_Selector)
}

func badLine(s string) error {
	switch {
	case len(s) > maxLine:
		return fmt.Errorf("is a shell line of %d bytes: at most %d are taken; put it into a script and name that", len(s), maxLine)
	case strings.TrimSpace(s) == "":
		return errors.New("is a shell line, and empty")
	case strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && r != '\t' && hidden(r) }):
		return errors.New("is a shell line, and holds characters that cannot be seen")
	}
	return nil
}

// most is how many entries a list may have.
func (k *Key) most() int {
	if k.Kind == Lines {
		return maxLines
	}
	return mostEntries
}

// tooMany says that a list of n entries is too long, nil if it is not.
func (k *Key) tooMany(n int) error {
	if n <= k.most() {
		return nil
	}
	return fmt.Errorf("holds %d entries: at most %d are taken", n, k.most())
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// credentials are variables that would let an agent act on a forge in the operator's name, and
// the ways to such variables. An agent never gets them: the engine pushes, agents only commit.
var credentials = regexp.MustCompile(`^(?:(?:GH|GITHUB|GITEA|FORGEJO|GITLAB|CODEBERG|FJ|TEA|GLAB|BITBUCKET|HUB)_(?:.*_)?(?:TOKEN|PAT|PASSWORD|SECRET|KEY)` +
	`|CI_JOB_TOKEN|ACTIONS_(?:RUNTIME|ID_TOKEN_REQUEST)_TOKEN|(?:GIT|SSH)_ASKPASS|SSH_AUTH_SOCK|SSH_AGENT_PID|GIT_.*|NETRC)$`)

func badName(s string) error {
	name, _, pair := strings.Cut(s, "=")
	switch {
	case pair:
		return fmt.Errorf("%s is to be the name of a variable alone: a value would be seen by others", cut(name))
	case !envName.MatchString(s):
		return fmt.Errorf("%s is not the name of a variable", cut(s))
	case credentials.MatchString(strings.ToUpper(s)):
		return fmt.Errorf("%s is refused: no forge credential, and nothing that steers git, is handed to an agent", cut(s))
	case strings.HasPrefix(strings.ToUpper(s), "LD_"):
		return fmt.Errorf("%s is refused: it would be loaded into the program that confines the agent", cut(s))
	}
	return nil
}

// number is a whole number as it is read everywhere: no octal, no underscores.
var number = regexp.MustCompile(`^-?(?:0|[1-9][0-9]*)$`)

func (k *Key) readCount(s string) (any, error) {
	wanted := fmt.Sprintf("wanted is a whole number from %d to %d", k.Least, k.Most)
	if k.Any {
		wanted += ", or 0 for no limit"
	}
	if !number.MatchString(s) {
		return nil, fmt.Errorf("%s: %s", cut(s), wanted)
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || (n < k.Least || n > k.Most) && (n != 0 || !k.Any) {
		return nil, fmt.Errorf("%s: %s", cut(s), wanted)
	}
	return n, nil
}

func (k *Key) readSpan(s string) (any, error) {
	least, wanted := shortest, "from 1s to 720h"
	if k.Zero {
		least, wanted = 0, "from 0s to 720h"
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil && number.MatchString(s):
		return nil, fmt.Errorf("%s: a duration needs a unit, as in 30m, 90s or 2h", cut(s))
	case err != nil:
		return nil, fmt.Errorf("%s: wanted is a duration, as in 30m, 90s or 2h", cut(s))
	case d < least || d > longest:
		return nil, fmt.Errorf("%s: wanted is a duration %s", cut(s), wanted)
	}
	return d, nil
}

// bareWord is how an agent's line has to begin in a repository's file.
var bareWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*(?:[ \t\n]|$)`)

// inFile is what a value has to keep besides where it stands in a file.
func (k *Key) inFile(whose Whose, v any) error {
	if k.Kind != Line {
		return nil
	}
	line := v.(string)
	w := shell.First(line)
	switch {
	case whose == Repository && !bareWord.MatchString(line):
		return errors.New("begins with more than the bare name of a program: a repository's file does not choose files of the operator's")
	case whose != Repository && !w.Tilde && strings.ContainsRune(w.Text, '/') && !filepath.IsAbs(w.Text):
		return fmt.Errorf("%s is relative, and a file is not typed in a directory: name it by an absolute path, or by one that begins with ~/", cut(w.Text))
	}
	return nil
}

// rank orders the values of a key that can be lowered; no limit is above all.
func (k *Key) rank(v any) int64 {
	var n int64
	switch v := v.(type) {
	case int64:
		n = v
	case time.Duration:
		return int64(v)
	case string:
		n, _ = Bytes(v) // it was read before
	}
	if n == 0 {
		return math.MaxInt64
	}
	return n
}

// Show is a value as it would be written.
func Show(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case time.Duration:
		return short(v)
	case []string:
		quoted := make([]string, len(v))
		for i, s := range v {
			quoted[i] = scalar(s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	return fmt.Sprint(v)
}

// short is a duration without units that are nothing.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// simple are texts that YAML reads as themselves.
var simple = regexp.MustCompile(`^[A-Za-z_./~][A-Za-z0-9_./~-]*$`)

// scalar writes a text so that YAML reads it back as a text.
func scalar(s string) string {
	words := []string{"true", "false", "yes", "no", "on", "off", "null", "y", "n", "~"}
	if simple.MatchString(s) && !slices.Contains(words, strings.ToLower(s)) && strings.Trim(s, ".") != "" && strings.ToLower(strings.TrimLeft(s, ".")) != "inf" && strings.ToLower(strings.TrimLeft(s, ".")) != "nan" {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
