// Package filetree measures and removes directory trees that others wrote: closed ones, deep ones, and
// ones full of links. It looks at names and attributes alone, never reads what is in a file, and never
// follows a symbolic link.
package filetree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// depthMost is how deep a tree may be to be measured: each level holds a descriptor.
const depthMost = 200

// ErrDeep: directories in directories, more than can be looked through.
var ErrDeep = errors.New("its directories are too deep to be looked through")

// Survey is what a tree is.
type Survey struct {
	Files int64 // files, links and directories in it
	Bytes int64 // that they take on the disk
	// Digest is another one after any change in the tree: it is made of names, modes, sizes and
	// times, also of those times that no program can set.
	Digest string
}

// Look looks through a tree. visit, if there is one, is called with each entry's path from the top.
// A tree that is not there is fs.ErrNotExist, one that is too deep ErrDeep.
func Look(ctx context.Context, dir string, visit func(name string, d fs.FileInfo)) (Survey, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Survey{}, err
	}
	defer root.Close()
	l := &look{ctx: ctx, visit: visit, sum: sha256.New()}
	if l.visit == nil {
		l.visit = func(string, fs.FileInfo) {}
	}
	top, err := root.Lstat(".")
	if err == nil {
		l.add(".", top)
		err = l.dir(root, "")
	}
	l.Digest = hex.EncodeToString(l.sum.Sum(nil))
	return l.Survey, err
}

type look struct {
	Survey
	ctx   context.Context
	visit func(string, fs.FileInfo)
	sum   hash.Hash
}

func (l *look) dir(root *os.Root, at string) error {
	if strings.Count(at, "/") >= depthMost {
		return fmt.Errorf("%w: %.200q", ErrDeep, at)
	}
	names, err := list(root)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := context.Cause(l.ctx); err != nil {
			return err
		}
		info, err := root.Lstat(name)
		if err != nil {
			return err
		}
		l.add(name, info)
		l.visit(path.Join(at, name), info)
		if !info.IsDir() {
			continue
		}
		below, err := root.OpenRoot(name)
		if err != nil {
			return err
		}
		err = l.dir(below, path.Join(at, name))
		if err := errors.Join(err, below.Close()); err != nil {
			return err
		}
		l.sum.Write([]byte{0, 0}) // the directory ends
	}
	return nil
}

func (l *look) add(name string, info fs.FileInfo) {
	l.Files++
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	l.Bytes += st.Blocks * 512
	fmt.Fprintf(l.sum, "%s\x00%o %d %d.%d %d.%d\x00", name, st.Mode, st.Size, st.Mtim.Sec, st.Mtim.Nsec, st.Ctim.Sec, st.Ctim.Nsec)
}

// list returns the names in a directory, sorted.
func list(root *os.Root) ([]string, error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, errors.Join(err, f.Close())
}
