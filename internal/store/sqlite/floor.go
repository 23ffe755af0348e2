package sqlite

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"interlock/internal/store"
)

// floorName is the file of what must not go back when the database alone is put back.
const floorName = "state.floor"

// floor is what is known of the database outside of it. It is written before the database needs
// it, and only now and then: fences are reserved in steps, and the seal is set and broken once per
// time in which any process has the state open. Read and write it in turn.
type floor struct {
	Epoch  string `json:"epoch"`  // the line of history that is in use
	Fence  int64  `json:"fence"`  // no fence above this one was ever handed out
	Writes int64  `json:"writes"` // the database had at least so many write transactions
	Mark   int64  `json:"mark"`   // store time had come at least so far
	File   string `json:"file"`   // which file the database was when it was last written to
	// Sealed: the last process has closed the database properly, and since then it has had exactly
	// Writes transactions. Digest is then the content of its file, "" when that is too large.
	Sealed bool   `json:"sealed"`
	Digest string `json:"digest"`
}

func (s *Store) floorPath() string { return filepath.Join(filepath.Dir(s.path), floorName) }

// readFloor returns false when there is none. One that cannot be read is damage: to go on without
// it would be to forget what it is there for.
func (s *Store) readFloor() (f floor, found bool, err error) {
	path := s.floorPath()
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return floor{}, false, nil
	}
	if err != nil {
		return floor{}, false, unwritable(path, err)
	}
	body, sum, _ := bytes.Cut(b, []byte("\n"))
	if err = json.Unmarshal(body, &f); err == nil && string(bytes.TrimSpace(sum)) != digest(body) {
		err = errors.New("its digest is another one")
	}
	if err != nil {
		return floor{}, false, fmt.Errorf("%w: %s, which keeps the highest fence, is not what was written; nothing was changed; "+
			"keep a copy of the directory, remove that file, and type the command again: fences then go on far above those that "+
			"the database knows: %w", store.ErrDamaged, path, err)
	}
	return f, true, nil
}

// writeFloor replaces the file as a whole; when it returns nil it is on disk.
func (s *Store) writeFloor(f floor) error {
	path := s.floorPath()
	body, err := json.Marshal(f)
	if err != nil {
		return err
	}
	text := append(append(body, '\n'), digest(body)+"\n"...)
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unwritable(fresh, err)
	}
	out, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return unwritable(fresh, err)
	}
	_, err = out.Write(text)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return errors.Join(unwritable(fresh, err), os.Remove(fresh))
	}
	if err := os.Rename(fresh, path); err != nil {
		return unwritable(path, err)
	}
	return syncDirectory(filepath.Dir(path))
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// fileDigest is the digest of a file of up to checkBytes, "" of a larger one.
func fileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, checkBytes+1))
	if err != nil || n > checkBytes {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// fileName names a file by its device and inode.
func fileName(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d-%d", st.Dev, st.Ino)
}
