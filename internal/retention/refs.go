package retention

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"interlock/internal/git"
)

// looseMost is how many runs may have their refs in files of their own: git opens each of them for
// whatever it is asked of all refs, as each import does.
const looseMost = 1000

// packRefs writes the refs of each of the engine's repositories that has very many into one file. None
// is changed, and none is deleted: they keep what was imported.
func (k *Keeper) packRefs(ctx context.Context) error {
	repos, err := filepath.Glob(filepath.Join(k.State, "repos", "*.git"))
	if err != nil {
		return err
	}
	for _, dir := range repos {
		loose, err := os.ReadDir(filepath.Join(dir, "refs", "interlock", "runs"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if len(loose) <= looseMost {
			continue
		}
		repo, err := k.Git.Engine(ctx, dir)
		if err == nil {
			_, err = repo.Run(ctx, git.Command{Args: []string{"pack-refs", "--all"}})
		}
		if err != nil {
			return fmt.Errorf("pack the refs of %s: %w", dir, err)
		}
	}
	return nil
}
