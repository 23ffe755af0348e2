package check

import (
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
// its module cache. It never follows a symbolic link out of it.
func remove(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	root, openErr := os.OpenRoot(filepath.Dir(dir))
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	defer root.Close()
	name := filepath.Base(dir)
	if info, e := root.Lstat(name); e != nil || !info.IsDir() {
		return errors.Join(err, e)
	}
	if e := open(root, name); e != nil {
		return errors.Join(err, e)
	}
	return os.RemoveAll(dir)
}

// open makes a directory and all below it writable for their owner.
func open(root *os.Root, dir string) error {
	if err := root.Chmod(dir, 0o700); err != nil {
		return err
	}
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if err := open(root, path.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
