package check

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
)

// clearRoom makes sure that a check begins in an empty room. What a check that died left in it is
// removed; anything else is left alone and refused.
func clearRoom(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("room: %w", err)
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil || !e.IsDir() {
			return fmt.Errorf("%w: %q is in %s", ErrRoom, e.Name(), dir)
		}
	}
	if len(entries) == 0 {
		return nil
	}
	return remove(dir)
}

// remove deletes a directory and all that is in it, also what was made read-only, as Go does with
// its module cache, and directories in directories deeper than there are descriptors. It never follows
// a symbolic link out of it.
func remove(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	parent, openErr := os.OpenRoot(filepath.Dir(dir))
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	defer parent.Close()
	name := filepath.Base(dir)
	if info, e := parent.Lstat(name); e != nil || !info.IsDir() {
		return errors.Join(err, e)
	}
	if e := parent.Chmod(name, 0o700); e != nil {
		return errors.Join(err, e)
	}
	root, openErr := parent.OpenRoot(name)
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	defer root.Close()
	if e := flatten(root); e != nil {
		return errors.Join(err, e)
	}
	return os.RemoveAll(dir)
}

// flatten removes all directories of a tree: what is in one is moved to the top, so that no path has
// more than two names, whatever the tree was like.
func flatten(root *os.Root) error {
	for {
		dirs, err := directories(root, ".")
		if err != nil || len(dirs) == 0 {
			return err
		}
		for _, dir := range dirs {
			if err := root.Chmod(dir, 0o700); err != nil {
				return err
			}
			below, err := directories(root, dir)
			if err != nil {
				return err
			}
			for _, name := range below {
				at := path.Join(dir, name)
				if err := root.Chmod(at, 0o700); err != nil { // to be moved it has to be writable itself
					return err
				}
				if err := root.Rename(at, "flat-"+rand.Text()); err != nil {
					return err
				}
			}
			if err := root.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
}

func directories(root *os.Root, dir string) (names []string, err error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	entries, err := f.ReadDir(-1)
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, errors.Join(err, f.Close())
}
