package git

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Everything that Interlock commits has this author: no identity of the operator is needed.
const (
	authorName  = "Interlock"
	authorEmail = "interlock@localhost"
)

// CommitSpec is a commit to be written.
type CommitSpec struct {
	Files   map[string][]byte // a flat tree: names without "/"; nil for the empty tree
	Parents []string          // full hashes of commits that are there
	Message string
	When    time.Time // zero: now
}

// WriteCommit writes a commit with all that it holds and returns its hash. No ref is moved. One
// call of git does it: the objects are made here and handed over as a pack, which git checks
// (format, names and that the parents are there) before it stores anything.
func (p *Plumb) WriteCommit(ctx context.Context, spec CommitSpec) (string, error) {
	pack, hash, err := packCommit(spec)
	if err != nil {
		return "", err
	}
	_, err = p.Run(ctx, Command{Args: []string{"unpack-objects", "-q", "--strict"}, Stdin: pack})
	if err != nil {
		return "", fmt.Errorf("write a commit: %w", err)
	}
	return hash, nil
}

// object kinds of the pack format.
const (
	packedCommit = 1
	packedTree   = 2
	packedBlob   = 3
)

var kindNames = map[byte]string{packedCommit: "commit", packedTree: "tree", packedBlob: "blob"}

// packer collects objects in the pack format, version 2 (gitformat-pack).
type packer struct {
	body  bytes.Buffer
	count uint32
}

// add appends one object and returns its name.
func (k *packer) add(kind byte, data []byte) ([]byte, error) {
	size := len(data)
	first := kind<<4 | byte(size&0x0f)
	for size >>= 4; size > 0; size >>= 7 {
		k.body.WriteByte(first | 0x80)
		first = byte(size & 0x7f)
	}
	k.body.WriteByte(first)
	z := zlib.NewWriter(&k.body)
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	k.count++
	sum := sha1.New()
	fmt.Fprintf(sum, "%s %d\x00", kindNames[kind], len(data))
	sum.Write(data)
	return sum.Sum(nil), nil
}

func (k *packer) bytes() []byte {
	out := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), k.count)
	out = append(out, k.body.Bytes()...)
	sum := sha1.Sum(out)
	return append(out, sum[:]...)
}

func packCommit(spec CommitSpec) (pack []byte, hash string, err error) {
	var k packer
	var tree bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(spec.Files)) {
		if !validEntry(name) {
			return nil, "", fmt.Errorf("%w: %q cannot be the name of a file in a tree", ErrInvalid, Escape(name))
		}
		blob, err := k.add(packedBlob, spec.Files[name])
		if err != nil {
			return nil, "", err
		}
		tree.WriteString("100644 " + name + "\x00")
		tree.Write(blob)
	}
	root, err := k.add(packedTree, tree.Bytes())
	if err != nil {
		return nil, "", err
	}
	if strings.Contains(spec.Message, "\x00") {
		return nil, "", fmt.Errorf("%w: a NUL in a commit message", ErrInvalid)
	}
	var c strings.Builder
	c.WriteString("tree " + hex.EncodeToString(root) + "\n")
	for _, parent := range spec.Parents {
		if err := checkHash(parent); err != nil {
			return nil, "", err
		}
		c.WriteString("parent " + parent + "\n")
	}
	when := spec.When
	if when.IsZero() {
		when = time.Now()
	}
	for _, role := range []string{"author", "committer"} {
		fmt.Fprintf(&c, "%s %s <%s> %d +0000\n", role, authorName, authorEmail, max(when.Unix(), 0))
	}
	c.WriteString("\n" + strings.TrimRight(spec.Message, "\n") + "\n")
	sum, err := k.add(packedCommit, []byte(c.String()))
	if err != nil {
		return nil, "", err
	}
	return k.bytes(), hex.EncodeToString(sum), nil
}

// validEntry reports whether name can be one entry of a flat tree on any filesystem; what git
// would read as ".git" is left to git's own strict check.
func validEntry(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}
