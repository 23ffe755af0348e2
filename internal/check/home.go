package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"interlock/internal/sandbox"
)

// The bounds of the homes that are kept: each, and how many.
const (
	homeBytes = 2 << 30
	homeFiles = 200_000
	homesMost = 8
)

// errHomeTooBig: a home has more in it than is worth keeping.
var errHomeTooBig = errors.New("it is too large to be kept")

// warm begins a room's home as a copy of the one that the same check has left at the base, so that
// what it compiles and fetches is there already. Only code of the base has ever written to that one,
// so nothing that an agent wrote is read. Where there is none, or it goes while it is copied, the home
// is empty.
func (req *Request) warm(ctx context.Context, kept string, room sandbox.Room) error {
	if kept == "" {
		return nil
	}
	err := copyHome(ctx, kept, room.Home())
	if err == nil {
		now := time.Now()
		_ = os.Chtimes(kept, now, now) // only for which one is the oldest
		return nil
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		req.Progress(fmt.Sprintf("this check begins with an empty home: %.300s", err.Error()))
	}
	if err := remove(room.Home()); err != nil {
		return err
	}
	return os.Mkdir(room.Home(), 0o700)
}

// copyHome copies directories and regular files; links and all else are left out. It follows no link.
func copyHome(ctx context.Context, from, to string) error {
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer target.Close()
	return fs.WalkDir(source.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			err = context.Cause(ctx)
		}
		switch {
		case err != nil || name == ".":
			return err
		case d.IsDir():
			return target.Mkdir(name, 0o700)
		case d.Type().IsRegular():
			return copyFile(source, target, name)
		}
		return nil
	})
}

func copyFile(source, target *os.Root, name string) error {
	in, err := source.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := target.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600|info.Mode()&0o100)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// keepHome keeps the home that a check at the base has left, whole or not at all, and removes the
// oldest of too many. Its tree is gone: nothing writes to it any more.
func keepHome(home, kept string) error {
	if err := measure(home); err != nil {
		return err
	}
	dir := filepath.Dir(kept)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := remove(kept); err != nil {
		return err
	}
	if err := os.Rename(home, kept); err != nil {
		return err
	}
	return removeOldHomes(dir)
}

// measure makes what is in a home readable for its owner, and refuses too much of it.
func measure(home string) error {
	root, err := os.OpenRoot(filepath.Dir(home))
	if err != nil {
		return err
	}
	defer root.Close()
	if err := open(root, filepath.Base(home)); err != nil {
		return err
	}
	var bytes, files int64
	return filepath.WalkDir(home, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if files++; info.Mode().IsRegular() {
			bytes += info.Size()
		}
		if files > homeFiles || bytes > homeBytes {
			return errHomeTooBig
		}
		return nil
	})
}

func removeOldHomes(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	age := map[string]time.Time{}
	var names []string
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() {
			age[e.Name()] = info.ModTime()
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int { return age[a].Compare(age[b]) })
	for _, name := range names[:max(0, len(names)-homesMost)] {
		if err := remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
