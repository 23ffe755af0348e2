package git_test

import (
	"slices"
	"testing"
	"time"

	"interlock/internal/git"
)

// TestSteps: what one commit did and the next took back is seen, and so is what a merge of a
// history of its own brings; what came in from the base by a merge is not.
func TestSteps(t *testing.T) {
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
		"taken back":   {base, back, []string{"b\nc", "evil", "evil"}},
		"base merged":  {newBase, merged, []string{"b\nc", "evil", "evil"}},
		"own history":  {newBase, all, []string{"b\nc", "both", "evil", "evil", "foreign"}},
		"nothing new":  {base, base, nil},
		"only a merge": {back, merged, []string{"ci"}},
	} {
		changes, err := r.Steps(t.Context(), c.base, c.head)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var got []string
		for _, ch := range changes {
			got = append(got, ch.Path)
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
