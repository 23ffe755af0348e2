package secret

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// allowed is what stands before a fingerprint in an entry.
const allowed = "fingerprint:"

// Allow is what an operator has looked at and found to be no secret. Made by ParseAllow.
type Allow struct {
	fingerprints map[string]bool
	patterns     [][]string // by parts
}

// ParseAllow reads entries: "fingerprint:" and the 16 digits of a finding, or a pattern of paths. In a
// pattern * and ? stand for characters of one part of a path, ** for any number of parts, and a /
// at the end for all that is below. What would match every file is refused.
func ParseAllow(entries []string) (Allow, error) {
	a := Allow{fingerprints: map[string]bool{}}
	for _, e := range entries {
		if print, is := strings.CutPrefix(e, allowed); is {
			if len(print) != digits || strings.Trim(print, "0123456789abcdef") != "" {
				return Allow{}, fmt.Errorf("allowed secret %.60q: wanted are the %d hex digits of a finding after %q", e, digits, allowed)
			}
			a.fingerprints[print] = true
			continue
		}
		parts, err := parsePattern(e)
		if err != nil {
			return Allow{}, fmt.Errorf("allowed secret %.60q: %w", e, err)
		}
		a.patterns = append(a.patterns, parts)
	}
	return a, nil
}

func parsePattern(e string) ([]string, error) {
	if strings.HasSuffix(e, "/") {
		e += "**"
	}
	parts := strings.Split(e, "/")
	every := true
	for _, p := range parts {
		every = every && strings.Trim(p, "*?") == ""
		switch _, err := path.Match(p, ""); {
		case err != nil:
			return nil, errors.New("is no pattern that can be read")
		case p == "" || p == "." || p == "..":
			return nil, errors.New("wanted is a path from the root of the repository, or a pattern of such")
		case p != "**" && strings.Contains(p, "**"):
			return nil, errors.New("** stands for whole parts of a path, between slashes")
		}
	}
	if every {
		return nil, errors.New("would allow every file; name a directory or a kind of file")
	}
	return parts, nil
}

// Fingerprint reports whether a finding is allowed wherever it is.
func (a Allow) Fingerprint(h Hit) bool { return a.fingerprints[h.Fingerprint] }

// Covers reports whether a finding in a file is allowed. A value of this installation is by its
// fingerprint alone: a directory of test data is no place for it either.
func (a Allow) Covers(h Hit, file string) bool {
	if a.fingerprints[h.Fingerprint] {
		return true
	}
	if h.Own || file == "" {
		return false
	}
	parts := strings.Split(file, "/")
	for _, p := range a.patterns {
		if matches(p, parts) {
			return true
		}
	}
	return false
}

// matches compares a pattern with a path, in time that is the product of their parts.
func matches(pattern, parts []string) bool {
	can := make([]bool, len(parts)+1) // the pattern so far matches the first i parts
	can[0] = true
	for _, p := range pattern {
		if p == "**" {
			for i := 1; i <= len(parts); i++ {
				can[i] = can[i] || can[i-1]
			}
			continue
		}
		for i := len(parts); i > 0; i-- {
			ok, err := path.Match(p, parts[i-1])
			can[i] = can[i-1] && ok && err == nil
		}
		can[0] = false
	}
	return can[len(parts)]
}

// Entry is how a finding is allowed.
func (h Hit) Entry() string { return allowed + h.Fingerprint }
