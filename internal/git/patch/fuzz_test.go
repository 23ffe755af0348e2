package patch_test

import (
	"fmt"
	"strings"
	"testing"

	"interlock/internal/git/patch"
)

const hash = "0123456789abcdef0123456789abcdef01234567"

// told is all that a visitor is told, with parts of one piece put together.
type told struct{ strings.Builder }

func (s *told) File(commit, path string) { fmt.Fprintf(s, "\x00file %s %q", commit, path) }
func (s *told) Lines(from int)           { fmt.Fprintf(s, "\x00lines %d ", from) }
func (s *told) Text(part []byte)         { s.Write(part) }

// FuzzDiffs: whatever git prints, nothing breaks, and in two pieces the same is told as in one.
func FuzzDiffs(f *testing.F) {
	for _, s := range []string{
		hash + "\ndiff --git a/x b/x\nnew file mode 100644\nindex 0000..1111\n--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n",
		hash + "\ndiff --cc \"a\\tb\"\nindex 1,2..3\n@@@ -1 -1,2 +1,3 @@@ f\n++x\n +y\n- z\n--w\n",
		"diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", "index 1..2\nBinary files a/x and b/x differ\n",
		"@@", "@@ -1", "@@ -1 +1 @@", "@@@@ -1 +1 @@", "@@ -1,x +1 @@\n", "@@ -1,-1 +1 @@\n", "@@ +1 -1 @@\n", "@@ - + @@\n",
	} {
		f.Add([]byte(s), 9)
	}
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		cut = max(0, min(cut, len(text)))
		var whole, pieces told
		err, perr := patch.ParseDiffs(text, len(text), &whole), patch.ParseDiffs(text, cut, &pieces)
		if (err == nil) != (perr == nil) || err == nil && whole.String() != pieces.String() {
			t.Fatalf("%q, %v in one piece; %q, %v in two", whole.String(), err, pieces.String(), perr)
		}
	})
}

// FuzzObjects: the same for whole objects.
func FuzzObjects(f *testing.F) {
	for _, s := range []string{hash + " blob 3\nabc\n", hash + " blob 0\n\n" + hash + " commit 1\nx\n", hash + " missing\n", hash + " blob -1\n", hash + " blob 9\nabc"} {
		f.Add([]byte(s), 4, 1)
	}
	f.Fuzz(func(t *testing.T, text []byte, cut, n int) {
		hashes := make([]string, max(0, min(n, 4)))
		for i := range hashes {
			hashes[i] = hash
		}
		cut = max(0, min(cut, len(text)))
		var whole, pieces told
		err, perr := patch.ParseObjects(text, len(text), hashes, &whole), patch.ParseObjects(text, cut, hashes, &pieces)
		if (err == nil) != (perr == nil) || err == nil && whole.String() != pieces.String() {
			t.Fatalf("%q, %v in one piece; %q, %v in two", whole.String(), err, pieces.String(), perr)
		}
	})
}
