package git

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// floors lists, per release line 2.<minor>, the first patch that a hostile repository cannot make
// run commands (CVE-2024-32002, 32004 and 32465, the releases of May 2024). Lines from openLine on
// had the fixes from their start.
var floors = map[int]int{39: 4, 40: 2, 41: 1, 42: 2, 43: 4, 44: 1, 45: 1}

const (
	firstLine = 39
	openLine  = 46
)

var versionText = regexp.MustCompile(`^git version (([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?[^\s]*)`)

func oldestFloor() string { return fmt.Sprintf("2.%d.%d", firstLine, floors[firstLine]) }

// checkVersion reads what `git version` prints and returns the version, or an error that wraps
// ErrUnfit and names the floor of that release line.
func checkVersion(text string) (string, error) {
	m := versionText.FindStringSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%w: its version cannot be read from %q", ErrUnfit, Escape(firstLineOf(text)))
	}
	major, _ := strconv.Atoi(m[2])
	minor, _ := strconv.Atoi(m[3])
	patch, _ := strconv.Atoi(m[4]) // "" is 0
	if major > 2 || major == 2 && minor >= openLine {
		return m[1], nil
	}
	floor, known := floors[minor]
	if major < 2 || !known {
		return "", fmt.Errorf("%w: version %s is older than %s; install a newer git", ErrUnfit, m[1], oldestFloor())
	}
	if patch < floor {
		return "", fmt.Errorf("%w: version %s is older than 2.%d.%d, the first of its line that a hostile repository cannot make run commands; update git",
			ErrUnfit, m[1], minor, floor)
	}
	return m[1], nil
}

func firstLineOf(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
