package retention

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"interlock/internal/filetree"
	"interlock/internal/run"
	"interlock/internal/sandbox"
	"interlock/internal/text"
	"interlock/internal/workspace"
)

// low says what the disk lacks for a session, "" if nothing. exit is the code that belongs to it.
func (k *Keeper) low(ctx context.Context) (what string, exit int, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(k.State, &st); err != nil {
		return "", 0, fmt.Errorf("look at the disk of %s: %w", k.State, err)
	}
	block := int64(st.Bsize)
	if free := int64(st.Bavail) * block; free < k.Limits.LeastFree {
		return fmt.Sprintf("the disk of %s has %s free, less than disk.least-free, %s", k.State, text.Size(free), text.Size(k.Limits.LeastFree)), run.ExitUnfit, nil
	}
	all := int64(st.Blocks-st.Bfree) * block
	if k.Limits.Most == 0 || all <= k.Limits.Most { // of which the state is a part
		return "", 0, nil
	}
	used, err := k.used(ctx)
	if err != nil || used <= k.Limits.Most {
		return "", 0, err
	}
	return fmt.Sprintf("%s takes %s, more than disk.most, %s", k.State, text.Size(used), text.Size(k.Limits.Most)), run.ExitBusy, nil
}

// used is what the state directory has on the disk. Of a tree that was imported the size is known.
func (k *Keeper) used(ctx context.Context) (int64, error) {
	sum, err := k.usedBy(ctx, "repos", "logs", "counts", "claims")
	if err != nil {
		return 0, err
	}
	entries, err := filepath.Glob(filepath.Join(k.dir("*"), "*"))
	if err != nil {
		return 0, err
	}
	for _, dir := range entries {
		room := sandbox.Room{Root: dir}
		rec, found, err := workspace.ReadImported(room)
		parts := []string{dir}
		if err == nil && found {
			sum += rec.Bytes
			parts = []string{room.Home(), room.Temp(), room.Task()}
		}
		for _, part := range parts {
			n, err := k.size(ctx, part)
			if err != nil {
				return 0, err
			}
			sum += n
		}
	}
	return sum, nil
}

func (k *Keeper) usedBy(ctx context.Context, names ...string) (sum int64, err error) {
	for _, name := range names {
		n, err := k.size(ctx, filepath.Join(k.State, name))
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// size is what a tree has on the disk, as far as it can be looked through: it changes meanwhile.
func (k *Keeper) size(ctx context.Context, dir string) (int64, error) {
	s, err := filetree.Look(ctx, dir, nil)
	if cause := context.Cause(ctx); cause != nil {
		return 0, cause
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, filetree.ErrDeep) {
		var at *fs.PathError
		if !errors.As(err, &at) { // else it is no directory
			return 0, err
		}
	}
	return s.Bytes, nil
}

// pressed bounds the sweep that a session waits for.
const pressed = time.Minute

// Ready makes sure that there is room for a session: where there is not, it removes what is safe,
// whatever its age, and refuses when that is not enough.
func (k *Keeper) Ready(ctx context.Context) error {
	what, _, err := k.low(ctx)
	if err != nil || what == "" {
		return err
	}
	k.say("%s; removing what is safe", text.Line(what))
	bounded, cancel := context.WithTimeout(ctx, pressed)
	defer cancel()
	s, err := k.Sweep(bounded, Hint{AnyAge: true, Enough: func() (bool, error) {
		what, _, err := k.low(bounded)
		return what == "", err
	}})
	var refused *RefusedError
	if err != nil && !errors.As(err, &refused) && bounded.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	what, exit, err := k.low(ctx)
	if err != nil || what == "" {
		return err
	}
	e := &RefusedError{
		Exit: exit, What: fmt.Sprintf("no session is started: %s; %d workspaces were removed for it (%s)", what, len(s.Workspaces), text.Size(s.Bytes)),
		Safe: "all work is kept; what was removed is on the forge, or was none", Next: "interlock workspace list",
		Then: "interlock workspace sweep --imported removes more; or make room, or change that setting, and type the command again",
	}
	if exit == run.ExitUnfit {
		e.Next = "interlock workspace sweep --imported"
		e.Then = "make room where that is not enough (interlock workspace list, df), and type the command again"
	}
	return e
}
