package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"interlock/internal/filetree"
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
	return filetree.Remove(context.Background(), dir, nil)
}
