package git_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"interlock/internal/git"
)

// TestTouched: what one commit did and the next took back is seen, and so is what a merge of a
// history of its own brings, and what of the base is not in the head; what came in from the base by a
// merge is not. What is no commit is refused, never taken for a change of nothing.
func TestTouched(t *testing.T) {
	t.Parallel()
	g, err := git.Find(t.Context())
	must(t, err)
	r, err := g.Engine(t.Context(), t.TempDir()+"/r.git")
	must(t, err)
	commit := func(files map[string][]byte, parents ...string) string {
		hash, err := r.WriteCommit(t.Context(), git.CommitSpec{Files: files, Parents: parents, Message: "m", When: time.Unix(1, 0)})
		must(t, err)
		return hash
	}
	a := []byte("a\n")
	base := commit(map[string][]byte{"a": a})
	newBase := commit(map[string][]byte{"a": a, "ci": a}, base)
	evil := commit(map[string][]byte{"a": a, "evil": a}, base)
	back := commit(map[string][]byte{"a": a, "b\nc": a}, evil)
	merged := commit(map[string][]byte{"a": a, "b\nc": a, "ci": a}, back, newBase)
	own := commit(map[string][]byte{"foreign": a})
	all := commit(map[string][]byte{"a": a, "b\nc": a, "ci": a, "both": a}, merged, own)
	for what, c := range map[string]struct {
		base, head string
		want       []string
	}{
		"taken back":   {base, back, []string{"b\nc", "evil"}},
		"base merged":  {newBase, merged, []string{"b\nc", "evil"}},
		"own history":  {newBase, all, []string{"b\nc", "both", "evil", "foreign"}},
		"nothing new":  {base, base, nil},
		"only a merge": {back, merged, []string{"ci"}},
		"behind":       {newBase, base, []string{"ci"}},
		"beside":       {newBase, evil, []string{"ci", "evil"}},
	} {
		changes, err := r.Touched(t.Context(), c.base, c.head)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var got []string
		for _, ch := range changes {
			got = append(got, ch.Path)
		}
		slices.Sort(got)
		got = slices.Compact(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
	tree, err := r.Resolve(t.Context(), base)
	must(t, err)
	for _, none := range []string{tree.Tree, strings.Repeat("1", 40)} {
		for _, pair := range [][2]string{{base, none}, {none, base}} {
			if changes, err := r.Touched(t.Context(), pair[0], pair[1]); !errors.Is(err, git.ErrNoCommit) {
				t.Errorf("from %s to %s: %v, %v, want ErrNoCommit", pair[0], pair[1], changes, err)
			}
		}
	}
	if _, err := r.Touched(t.Context(), base, "HEAD"); !errors.Is(err, git.ErrInvalid) {
		t.Errorf("a name that is no hash: %v, want ErrInvalid", err)
	}
}
