package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"interlock/internal/git"
)

// CheckSource refuses a work tree whose git directory would make whoever reads it wait for ever, or
// read what is not in the tree: pipes, devices and sockets in it, and symbolic links that lead to
// one or out of the tree. It only looks; what is in files (alternates, includes) it does not read,
// that is for the confinement of the import. Hooks are not looked at, since none is run. No process
// may write the tree meanwhile. git.ErrRefused.
func CheckSource(tree string) error {
	root, err := os.OpenRoot(tree)
	if err != nil {
		return fmt.Errorf("look at the workspace: %w", err)
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".git", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("%w: %s cannot be read: %w", git.ErrRefused, git.Escape(name), cause(err))
		}
		if d.IsDir() && name == ".git/hooks" {
			return fs.SkipDir
		}
		if d.IsDir() || d.Type().IsRegular() {
			return nil
		}
		info, err := root.Stat(name) // follows links within the tree, and no other
		if d.Type()&fs.ModeSymlink == 0 || err == nil && !info.IsDir() && !info.Mode().IsRegular() {
			return fmt.Errorf("%w: %s is neither a file nor a directory, or leads to such a thing", git.ErrRefused, git.Escape(name))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %s leads out of the workspace", git.ErrRefused, git.Escape(path.Clean(name)))
		}
		return nil
	})
}

// cause takes the path off an error, which names it once more.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
