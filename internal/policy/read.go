package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"interlock/internal/text"
)

// ErrUnsafe means that somebody else than the operator could have written the operator's file.
var ErrUnsafe = errors.New("others can change this configuration")

// OperatorPath is where the operator's file is looked for: in $XDG_CONFIG_HOME, else in ~/.config.
// "" where neither is known. Relative values are ignored, as the XDG rules say.
func OperatorPath(xdg, home string) string {
	switch {
	case filepath.IsAbs(xdg):
		return filepath.Join(xdg, "interlock", "config.yaml")
	case filepath.IsAbs(home):
		return filepath.Join(home, ".config", "interlock", "config.yaml")
	}
	return ""
}

// ReadOperator reads the operator's file, which nobody but this account and root may be able to
// change. fs.ErrNotExist where there is none, ErrUnsafe, Problems.
func ReadOperator(path string) (*File, error) {
	data, err := readFile(path, true)
	if err != nil {
		return nil, err
	}
	return Parse(path, General, data)
}

// ReadFile reads a file to check it, whoever wrote it.
func ReadFile(path, name string, whose Whose) (*File, error) {
	data, err := readFile(path, false)
	if err != nil {
		return nil, err
	}
	return Parse(name, whose, data)
}

// readFile reads one byte more than is allowed at most, so that Parse can tell.
func readFile(path string, own bool) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not make us wait
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read the configuration: %s is no regular file: %w", text.Quote(path), fs.ErrInvalid)
	}
	if own {
		if err := owned(path, info); err != nil {
			return nil, err
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return data, nil
}

// owned refuses a file that others than this account and root could have written or replaced.
func owned(path string, info fs.FileInfo) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	dir, err := os.Stat(filepath.Dir(real))
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	for _, at := range []struct {
		path string
		info fs.FileInfo
	}{{real, info}, {filepath.Dir(real), dir}} {
		name := text.Quote(at.path)
		st, ok := at.info.Sys().(*syscall.Stat_t)
		switch open := at.info.Mode().Perm() & 0o022; {
		case !ok || st.Uid != 0 && int(st.Uid) != os.Geteuid():
			return fmt.Errorf("%w: %s belongs to another account; chown it, or name a file of your own with --config FILE", ErrUnsafe, name)
		case open != 0 && !(at.info.IsDir() && at.info.Mode()&fs.ModeSticky != 0):
			return fmt.Errorf("%w: its group or everybody may write to %s; type: chmod go-w %s", ErrUnsafe, name, name)
		}
	}
	return nil
}

// Section returns what the operator's file says of one repository: that of the first section whose
// path same reports to be it.
func (f *File) Section(home string, same func(path string) bool) Values {
	for _, s := range f.Sections {
		if same(Expand(s.Path, home)) {
			return s.Values
		}
	}
	return nil
}

// Expand puts the home into a path that begins with ~/.
func Expand(path, home string) string {
	if len(path) > 1 && path[:2] == "~/" {
		return filepath.Join(home, path[2:])
	}
	return path
}
