package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// built is a program that was built, or why it was not.
type built struct {
	path string
	err  error
}

// Build builds the program of a directory of the source tree once, as `make build` does.
func (e *Env) Build(ctx context.Context, dir string) (string, error) {
	if b, done := e.built[dir]; done {
		return b.path, b.err
	}
	b := built{path: filepath.Join(e.Dir, "program-"+filepath.Base(dir))}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", b.path, ".")
	cmd.Dir = filepath.Join(e.Root, dir)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		b.err = fmt.Errorf("build %s: %w: %s", dir, err, LastLine(said.String()))
	}
	if e.built == nil {
		e.built = map[string]built{}
	}
	e.built[dir] = b
	return b.path, b.err
}
