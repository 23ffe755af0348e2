package statedir

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
)

// ReadRecord reads what WriteRecord wrote into v, a pointer. found is false when there is no file.
// What is not as it was written is an error.
func ReadRecord(path string, v any) (found bool, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	body, sum, _ := bytes.Cut(b, []byte("\n"))
	if string(bytes.TrimSpace(sum)) != digest(body) {
		return false, errors.New("its digest is another one")
	}
	return true, json.Unmarshal(body, v)
}

// WriteRecord replaces a small file as a whole by v as JSON, with its digest, mode 0600. When it
// returns nil the file is on disk.
func WriteRecord(path string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := writeNew(fresh, bytes.NewReader(append(append(body, '\n'), digest(body)+"\n"...))); err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	if err := os.Rename(fresh, path); err != nil {
		return err
	}
	return SyncDirectory(filepath.Dir(path))
}

// writeNew writes a file that must not be there yet and syncs it.
func writeNew(path string, r io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Sync(), f.Close())
}

// CopyFile copies a regular file to a new one, mode 0600, and syncs it.
func CopyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", from)
	}
	return writeNew(to, in)
}

// SyncDirectory makes what was created, renamed and removed in a directory survive a power loss.
func SyncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Digest is the SHA-256, in hex, of a file of up to most bytes, "" of a larger one.
func Digest(path string, most int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, most+1))
	if err != nil || n > most {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Identity names a file by its device and inode.
func Identity(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d-%d", st.Dev, st.Ino)
}
