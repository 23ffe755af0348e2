package git

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// zeroHash stands for a ref that is not there.
const zeroHash = "0000000000000000000000000000000000000000"

// emptyTree is the hash of the tree with nothing in it.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// ValidHash reports whether s is a full SHA-1 object name: 40 lower-case hex digits.
func ValidHash(s string) bool {
	if len(s) != len(zeroHash) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// ValidRef reports whether s is a full ref name ("refs/...") by the rules of git check-ref-format.
func ValidRef(s string) bool {
	if !strings.HasPrefix(s, "refs/") || len(s) > 1024 || strings.HasSuffix(s, ".") {
		return false
	}
	if strings.Contains(s, "..") || strings.Contains(s, "@{") {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == 0x7f || strings.IndexByte(`~^:?*[\`, c) >= 0 {
			return false
		}
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

// ValidBranch reports whether s can be the short name of a branch.
func ValidBranch(s string) bool {
	return s != "" && s[0] != '-' && s != "HEAD" && ValidRef("refs/heads/"+s)
}

func checkHash(s string) error {
	if !ValidHash(s) {
		return fmt.Errorf("%w: %q is not a full object name", ErrInvalid, Escape(s))
	}
	return nil
}

func checkRef(s string) error {
	if !ValidRef(s) {
		return fmt.Errorf("%w: %q is not a full ref name", ErrInvalid, Escape(s))
	}
	return nil
}

// checkRev accepts what may stand for an object on git's command line or on one line of its
// standard input: it is never an option and never two lines.
func checkRev(s string) error {
	if s == "" || s[0] == '-' || len(s) > 4096 || strings.ContainsAny(s, "\x00\n") {
		return fmt.Errorf("%w: %q cannot name a revision", ErrInvalid, Escape(s))
	}
	return nil
}

// remoteURL turns an absolute path, or a file URL, into the one form given to git: a file URL. A
// plain path that is a regular file would be read as a bundle; a path that exists only inside a
// sandbox works as a URL as well. Nothing but local repositories is spoken to at this time.
func remoteURL(remote string) (string, error) {
	path := remote
	if rest, ok := strings.CutPrefix(remote, "file://"); ok {
		decoded, err := url.PathUnescape(rest)
		if err != nil {
			return "", fmt.Errorf("%w: remote %q: %w", ErrInvalid, Escape(remote), err)
		}
		path = decoded
	}
	if !filepath.IsAbs(path) || strings.ContainsAny(path, "\x00\n") {
		return "", fmt.Errorf("%w: remote %q is neither an absolute path nor a file URL of one", ErrInvalid, Escape(remote))
	}
	return "file://" + (&url.URL{Path: path}).EscapedPath(), nil
}

// remotePath is the path a local remote names.
func remotePath(remote string) string {
	if rest, ok := strings.CutPrefix(remote, "file://"); ok {
		if decoded, err := url.PathUnescape(rest); err == nil {
			return decoded
		}
	}
	return remote
}

// shellQuote makes s one word of a POSIX shell.
func shellQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
