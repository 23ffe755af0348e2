package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"interlock/internal/store"
)

// Examine reads the whole database and says what it is. It returns store.ErrDamaged when it is not
// what was written.
func (s *Store) Examine(ctx context.Context) (store.Report, error) {
	if err := s.Check(ctx); err != nil {
		return store.Report{}, err
	}
	r := store.Report{Path: s.path, Installation: s.installation, Copies: []string{}, Warnings: append([]string{}, s.warnings...)}
	err := s.read.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM runs), coalesce((SELECT max(fence) FROM fences), 0),
		coalesce((SELECT value FROM facts WHERE name = 'raised'), ''), epoch, base FROM ledger`).
		Scan(&r.Runs, &r.Fence, &r.Raised, &r.Epoch, &r.Above)
	if err != nil {
		return store.Report{}, fault(s.path, err)
	}
	if r.Version, err = version(ctx, s.read); err != nil {
		return store.Report{}, fault(s.path, err)
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return store.Report{}, damaged(s.path, err)
	}
	r.Bytes = info.Size()
	if info, err := os.Stat(s.path + "-wal"); err == nil {
		r.LogBytes = info.Size()
	}
	r.Copies, err = s.copies()
	return r, err
}

// copies lists the databases that were kept beside this one.
func (s *Store) copies() ([]string, error) {
	dir := filepath.Dir(s.path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	found := []string{}
	for _, e := range entries {
		if kept.MatchString(e.Name()) {
			found = append(found, filepath.Join(dir, e.Name()))
		}
	}
	return found, nil
}

var kept = regexp.MustCompile(`^` + regexp.QuoteMeta(databaseName) + `\.(before|replaced)-[0-9]+$`)

// There reports whether dir holds a state. It changes nothing.
func There(dir string) (bool, error) {
	_, err := os.Lstat(filepath.Join(dir, databaseName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%w: %w", store.ErrUnfit, err)
	}
	return true, nil
}
