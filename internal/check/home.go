package check

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"interlock/internal/filetree"
	"interlock/internal/sandbox"
)

// The bounds of the homes that are kept: each, and how many.
const (
	homeBytes = 2 << 30
	homeFiles = 200_000
	homeDepth = 64
	homesMost = 8
)

// errNotKept: a home holds what is not worth keeping, or cannot be copied as it is: then a check does
// better with an empty one.
var errNotKept = errors.New("a home with such in it is not kept")

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
	if err := filetree.Remove(context.Background(), room.Home(), nil); err != nil {
		return err
	}
	return os.Mkdir(room.Home(), 0o700)
}

// copyHome copies a home that is kept. Whoever removes one takes its name away first: what still has
// the name at the end was whole all the time.
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
	if err := (&copying{ctx: ctx}).dir(source, target, 0); err != nil {
		return err
	}
	was, err := source.Stat(".")
	if err != nil {
		return err
	}
	is, err := os.Lstat(from)
	if err == nil && !os.SameFile(was, is) {
		err = fs.ErrNotExist
	}
	return err
}

// copying walks a home, and copies it where there is a target. It follows no link, and goes from
// directory to directory, so that no path grows long.
type copying struct {
	ctx          context.Context
	bytes, files int64
}

func (c *copying) dir(source, target *os.Root, depth int) error {
	if depth > homeDepth {
		return fmt.Errorf("%w: directories in directories, more than %d", errNotKept, homeDepth)
	}
	f, err := source.Open(".")
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	for _, e := range entries {
		if err := context.Cause(c.ctx); err != nil {
			return err
		}
		if c.files++; c.files > homeFiles {
			return fmt.Errorf("%w: more than %d files", errNotKept, homeFiles)
		}
		switch {
		case e.IsDir():
			err = c.below(source, target, e.Name(), depth)
		case e.Type().IsRegular():
			err = c.file(source, target, e.Name())
		default:
			err = fmt.Errorf("%w: %q is neither file nor directory", errNotKept, e.Name())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *copying) below(source, target *os.Root, name string, depth int) error {
	from, err := source.OpenRoot(name)
	if err != nil {
		return err
	}
	defer from.Close()
	if target == nil {
		return c.dir(from, nil, depth+1)
	}
	if err := target.Mkdir(name, 0o700); err != nil {
		return err
	}
	to, err := target.OpenRoot(name)
	if err != nil {
		return err
	}
	defer to.Close()
	return c.dir(from, to, depth+1)
}

func (c *copying) file(source, target *os.Root, name string) error {
	info, err := source.Lstat(name)
	if err != nil {
		return err
	}
	if c.bytes += info.Size(); c.bytes > homeBytes {
		return fmt.Errorf("%w: more than %d bytes", errNotKept, int64(homeBytes))
	}
	in, err := source.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	if target == nil { // it can be read
		return nil
	}
	out, err := target.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600|info.Mode()&0o100)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// gone begins the names of homes that are being removed.
const gone = "gone-"

// keepHome keeps the home that a check at the base has left, if it can be copied whole, in the place of
// the one that was kept before, and removes the oldest of too many. Its tree is gone: nothing writes to
// it any more.
func keepHome(ctx context.Context, home, kept string) error {
	root, err := os.OpenRoot(home)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := (&copying{ctx: ctx}).dir(root, nil, 0); err != nil {
		return err
	}
	dir := filepath.Dir(kept)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.Rename(kept, filepath.Join(dir, gone+rand.Text())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(home, kept); err != nil && !errors.Is(err, fs.ErrExist) { // another engine's is as good
		return err
	}
	return removeOldHomes(dir)
}

// removeOldHomes removes the oldest, and what is left of earlier removals.
func removeOldHomes(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	age := map[string]time.Time{}
	var names, away []string
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil:
		case strings.HasPrefix(e.Name(), gone):
			away = append(away, e.Name())
		default:
			age[e.Name()] = info.ModTime()
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int { return age[a].Compare(age[b]) })
	for _, name := range names[:max(0, len(names)-homesMost)] {
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(dir, gone+name)); err == nil {
			away = append(away, gone+name)
		}
	}
	for _, name := range away {
		if err := filetree.Remove(context.Background(), filepath.Join(dir, name), nil); err != nil {
			return err
		}
	}
	return nil
}
