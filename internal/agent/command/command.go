// Package command is the runtime for any agent that can be started by a shell line. It finds and
// hashes the file the line begins with and says how the line is to be started; it starts nothing,
// and never changes anything but the first word of the line.
package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"interlock/internal/agent"
	"interlock/internal/sandbox"
	"interlock/internal/shell"
)

// Inside is the directory of the sandbox in which the operator's agent file is found.
const Inside = "/interlock/agent"

// executable is X_OK of access(2), which the syscall package does not name.
const executable = 1

// Runtime starts one shell line as the agent. Line is the operator's and is trusted.
type Runtime struct {
	Line string
	// Path is the operator's PATH. A bare first word that is not in it is reported at once;
	// with "" it is left to the shell, which ends with 127.
	Path string
	// Home is the operator's home, for a first word that begins with "~/".
	Home string
}

// New returns the runtime for a shell line.
func New(line string) *Runtime { return &Runtime{Line: line} }

// Name implements agent.Runtime.
func (r *Runtime) Name() string { return "command" }

// Prepare implements agent.Runtime. If the first word of the line names a file of the operator's
// (it holds a slash), that one file is hashed and, at level full, bound read-only under Inside.
// Programs of the system (under /usr, /bin, /sbin) are there anyway and stay where they are. A
// first word that only the shell understands is left to the shell, and so is one whose quoting
// leaves doubt.
func (r *Runtime) Prepare(ctx context.Context, dir string, level sandbox.Level) (agent.Launch, error) {
	if err := ctx.Err(); err != nil {
		return agent.Launch{}, err
	}
	if strings.TrimSpace(r.Line) == "" {
		return agent.Launch{}, fmt.Errorf("%w: the command is empty", agent.ErrMissing)
	}
	if strings.ContainsRune(r.Line, 0) {
		return agent.Launch{}, fmt.Errorf("%w: the command holds a NUL", agent.ErrMissing)
	}
	w := shell.First(r.Line)
	switch {
	case w.Kind == shell.Plain && w.Tilde && r.Home == "", w.Kind == shell.Doubtful:
		return launch(r.Line), nil
	case strings.ContainsRune(w.Text, '/'):
		return r.file(ctx, w, dir, level)
	case w.Kind == shell.Plain && r.Path != "" && !shell.Builtin(w.Text):
		return launch(r.Line), r.lookUp(w.Text, dir)
	}
	return launch(r.Line), nil
}

func launch(line string) agent.Launch {
	return agent.Launch{Argv: []string{"/bin/sh", "-c", line}}
}

// file prepares a line whose first word is a path.
func (r *Runtime) file(ctx context.Context, w shell.Word, dir string, level sandbox.Level) (agent.Launch, error) {
	path := w.Text
	if w.Tilde {
		path = filepath.Join(r.Home, strings.TrimPrefix(path, "~"))
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return agent.Launch{}, fmt.Errorf("agent %q: %w", w.Text, err)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return agent.Launch{}, missing(w.Text, path, err)
	}
	if err := runnable(w.Text, real); err != nil {
		return agent.Launch{}, err
	}
	if ofSystem(real) {
		if w.Text == path {
			return launch(r.Line), nil
		}
		return launch(replace(r.Line, w, path)), nil
	}
	digest, err := digestOf(ctx, real)
	if err != nil {
		return agent.Launch{}, err
	}
	if level == sandbox.None {
		l := launch(replace(r.Line, w, path))
		l.Digest = digest
		return l, nil
	}
	if level == sandbox.Landlock { // it stays where it is, and has to be shown there
		l := launch(replace(r.Line, w, path))
		l.Mounts, l.Digest = []sandbox.Mount{{Source: real, Target: real}}, digest
		return l, nil
	}
	inside := Inside + "/" + filepath.Base(path)
	l := launch(replace(r.Line, w, inside))
	l.Mounts = []sandbox.Mount{{Source: real, Target: inside}}
	l.Digest = digest
	return l, nil
}

func missing(word, path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w: %q was looked for at %q and is not there; name a file that is, relative to the "+
			"directory you type the command in, or absolute", agent.ErrMissing, word, path)
	}
	return fmt.Errorf("%w: %q cannot be reached: %w", agent.ErrMissing, word, err)
}

// runnable refuses what cannot be executed.
func runnable(word, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return missing(word, path, err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %q is not a regular file but %s", agent.ErrMissing, path, kindOf(info.Mode()))
	}
	if err := syscall.Access(path, executable); err != nil {
		return &agent.NotExecutableError{Path: path, Err: err}
	}
	return nil
}

// digestOf is the SHA-256 of a file, in hex.
func digestOf(ctx context.Context, path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", fmt.Errorf("%w: %q cannot be read, and what runs must be recorded by its SHA-256: %w", agent.ErrMissing, path, err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, &reader{ctx, f}); err != nil {
		return "", fmt.Errorf("hash agent file %q: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// reader ends when its context does.
type reader struct {
	ctx context.Context
	io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// ofSystem reports whether a resolved path is one that every sandbox shows at the same place.
// Such a program may look for its parts beside itself, so it is not moved.
func ofSystem(path string) bool {
	return slices.ContainsFunc([]string{"/usr/", "/bin/", "/sbin/"}, func(d string) bool { return strings.HasPrefix(path, d) })
}

// lookUp refuses a bare word that the shell would not find either.
func (r *Runtime) lookUp(name, dir string) error {
	for _, d := range filepath.SplitList(r.Path) {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		path := filepath.Join(d, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && syscall.Access(path, executable) == nil {
			return nil
		}
	}
	hint := ""
	if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
		hint = fmt.Sprintf("; for the file in %q type ./%s", dir, name)
	}
	return fmt.Errorf("%w: no program %q in PATH (%s)%s", agent.ErrMissing, name, r.Path, hint)
}

// replace returns the line with its first word replaced by a quoted path.
func replace(line string, w shell.Word, path string) string {
	return line[:w.Start] + quote(path) + line[w.End:]
}

// quote makes one word of a shell line of any text.
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
