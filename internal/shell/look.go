package shell

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Found is what is known of the program that a line begins with.
type Found int

// What can be known without a shell.
const (
	There    Found = iota // the program is there, or the shell runs the word itself
	Missing               // no such program: the shell would end with 127
	Relative              // a path below the directory that the line is run in
	Unproved              // only the shell can tell
)

// executable is X_OK of access(2), which the syscall package does not name.
const executable = 1

// Look says whether the program that a line begins with is there: a bare name in the directories
// of path (as $PATH has them), an absolute path on this machine. word is the first word, "" where
// only the shell can tell. A relative directory of path proves nothing.
func Look(line, path string) (word string, found Found) {
	w := First(line)
	switch {
	case w.Kind == Doubtful || w.Tilde || w.Text == "":
		return "", Unproved
	case filepath.IsAbs(w.Text):
		if !program(w.Text) {
			return w.Text, Missing
		}
		return w.Text, There
	case strings.ContainsRune(w.Text, '/'):
		return w.Text, Relative
	case Builtin(w.Text):
		return w.Text, There
	}
	if path == "" {
		return w.Text, Unproved
	}
	missing := Missing
	for _, dir := range filepath.SplitList(path) {
		switch {
		case !filepath.IsAbs(dir):
			missing = Unproved
		case program(filepath.Join(dir, w.Text)):
			return w.Text, There
		}
	}
	return w.Text, missing
}

// program reports whether a path leads to a file that this process may execute.
func program(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && syscall.Access(path, executable) == nil
}
