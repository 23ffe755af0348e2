package filetree

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Remove deletes a directory and all that is in it, also what was made read-only, as Go does with its
// module cache, and directories in directories deeper than there are descriptors. It never follows a
// symbolic link out of it. told, if there is one, is called after each thing that was deleted. What was
// deleted before ctx ended stays deleted: a later call goes on. A directory that is not there is no error.
func Remove(ctx context.Context, dir string, told func()) error {
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return absent(err)
	}
	defer parent.Close()
	if told == nil {
		told = func() {}
	}
	r := &removal{ctx: ctx, told: told}
	info, err := parent.Lstat(filepath.Base(dir))
	if err != nil {
		return absent(err)
	}
	return r.entry(parent, filepath.Base(dir), info.IsDir(), 0)
}

// absent makes nothing of an error that says that something is not there.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

type removal struct {
	ctx  context.Context
	told func()
}

func (r *removal) entry(parent *os.Root, name string, isDir bool, depth int) error {
	if err := context.Cause(r.ctx); err != nil {
		return err
	}
	if isDir {
		if err := r.inside(parent, name, depth); err != nil {
			return err
		}
	}
	if err := absent(parent.Remove(name)); err != nil {
		return err
	}
	r.told()
	return nil
}

// inside deletes what is in a directory. It is opened to its owner first: what is in a closed one can
// neither be listed nor deleted.
func (r *removal) inside(parent *os.Root, name string, depth int) error {
	if err := parent.Chmod(name, 0o700); err != nil {
		return absent(err)
	}
	root, err := parent.OpenRoot(name)
	if err != nil {
		return absent(err)
	}
	defer root.Close()
	if depth >= depthMost {
		if err := flatten(root); err != nil {
			return err
		}
	}
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	for _, e := range entries {
		if err := r.entry(root, e.Name(), e.IsDir(), depth+1); err != nil {
			return err
		}
	}
	return nil
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
