package local

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"interlock/internal/forge"
	"interlock/internal/git"
)

const (
	format      = 1       // of both documents
	maxDocument = 1 << 20 // bytes
	maxNumber   = 1 << 40 // a number beyond it is nobody's issue
	maxTitle    = 255     // runes, as on other forges
	maxBody     = 256 << 10
	maxComment  = 64 << 10
	maxLabel    = 50 // runes
	maxLogin    = 64
	issueFile   = "issue.json"
	changeFile  = "change.json"

	open   = "open"
	closed = "closed"
	merged = "merged"
	// damaged is the state under which a list of all issues shows one that cannot be read.
	damaged = "damaged"
)

// issueDoc is what a commit of refs/interlock/issues/<n> holds.
type issueDoc struct {
	Format int         `json:"format"`
	Issue  forge.Issue `json:"issue"`
	Marks  []markDoc   `json:"marks,omitempty"`
}

// markDoc remembers what a mark put on an issue, and what of it was not there before: taking the
// mark off takes off only that.
type markDoc struct {
	Nonce      string `json:"nonce"`
	Login      string `json:"login,omitempty"`
	Label      string `json:"label,omitempty"`
	AddedLogin bool   `json:"added_login,omitempty"`
	AddedLabel bool   `json:"added_label,omitempty"`
}

// changeDoc is what a commit of refs/interlock/changes/<n> holds. Its HeadAt is empty: that is
// read from the branch.
type changeDoc struct {
	Format int          `json:"format"`
	Change forge.Change `json:"change"`
}

// DamagedError says that the ref of one issue or change holds what cannot be read. Others are not
// touched by it.
type DamagedError struct {
	Ref, Hash string
	Why       string
	Dir       string // the repository
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s at %.12s cannot be read: %s; nothing was changed; if it was right before: git -C %s update-ref %s %s^ %s",
		e.Ref, e.Hash, e.Why, quote(e.Dir), e.Ref, e.Hash, e.Hash)
}

// Unwrap makes it a forge.ErrDamaged.
func (e *DamagedError) Unwrap() error { return forge.ErrDamaged }

// encode returns the document as it is kept, ErrInvalid when it has grown too big.
func encode(doc any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return nil, fmt.Errorf("document: %w", err)
	}
	if b.Len() > maxDocument {
		return nil, fmt.Errorf("%w: it would grow to %d bytes, more than %d", forge.ErrInvalid, b.Len(), maxDocument)
	}
	return b.Bytes(), nil
}

// decode reads a document that anybody may have written.
func decode(data []byte, doc any) error {
	if len(data) > maxDocument {
		return fmt.Errorf("it has %d bytes, more than %d", len(data), maxDocument)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(doc); err != nil {
		return fmt.Errorf("its JSON is not right (%q)", err.Error())
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the document")
	}
	return nil
}

func decodeIssue(n int64, data []byte) (issueDoc, error) {
	var doc issueDoc
	if err := decode(data, &doc); err != nil {
		return doc, err
	}
	switch i := doc.Issue; {
	case doc.Format != format:
		return doc, fmt.Errorf("format %d is not known here", doc.Format)
	case i.Number != n:
		return doc, fmt.Errorf("it says that it is issue %d", i.Number)
	case i.State != open && i.State != closed:
		return doc, fmt.Errorf("state %q is not known here", i.State)
	case i.Title == "":
		return doc, errors.New("it has no title")
	}
	return doc, nil
}

func decodeChange(n int64, data []byte) (changeDoc, error) {
	var doc changeDoc
	if err := decode(data, &doc); err != nil {
		return doc, err
	}
	switch c := doc.Change; {
	case doc.Format != format:
		return doc, fmt.Errorf("format %d is not known here", doc.Format)
	case c.Number != n:
		return doc, fmt.Errorf("it says that it is change %d", c.Number)
	case c.State != open && c.State != closed && c.State != merged:
		return doc, fmt.Errorf("state %q is not known here", c.State)
	case !branchName(c.Head) || !branchName(c.Base):
		return doc, errors.New("its head or base is no name of a branch")
	case !git.ValidHash(c.Proposed):
		return doc, errors.New("it names no proposed commit")
	}
	return doc, nil
}

// branchName allows what git allows, as text: what is not UTF-8 would not survive the document.
func branchName(s string) bool { return len(s) <= 250 && utf8.ValidString(s) && git.ValidBranch(s) }

// headRef is the ref that stands for "this head branch has an open change". The name of the
// branch becomes one component, so that no two of them get in each other's way as directories.
func headRef(branch string) string {
	var b strings.Builder
	for i := range len(branch) {
		switch c := branch[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if b.Len() > 200 { // a file name has 255 bytes at most; "%sha" is no escape
		return headPrefix + "%sha256-" + forge.TaskDigest(branch, "")
	}
	return headPrefix + b.String()
}

// number reads the number a ref ends in; only its one canonical form counts.
func number(ref, prefix string) (int64, bool) {
	text, ok := strings.CutPrefix(ref, prefix)
	n, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil || n <= 0 || n > maxNumber || strconv.FormatInt(n, 10) != text {
		return 0, false
	}
	return n, true
}

func refOf(prefix string, n int64) string { return prefix + strconv.FormatInt(n, 10) }

// quote makes one shell word of s, for commands that are shown to be typed.
func quote(s string) string {
	plain := strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,") == ""
	if plain && s != "" {
		return s
	}
	if !printable(s) {
		var b strings.Builder
		for i := range len(s) {
			if c := s[i]; c < ' ' || c > '~' || c == '\'' || c == '\\' {
				fmt.Fprintf(&b, `\x%02x`, c)
			} else {
				b.WriteByte(c)
			}
		}
		return "$'" + b.String() + "'"
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
