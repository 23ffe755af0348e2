package git_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"interlock/internal/git"
	"interlock/internal/git/traits"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	dir, _ := project(t)
	long := strings.Repeat("a line that stays\n", 30)
	write(t, filepath.Join(dir, "old name"), long)
	write(t, filepath.Join(dir, "run.sh"), "echo\n")
	write(t, filepath.Join(dir, "to-link"), "x\n")
	base := commitAll(t, dir, "base")
	must(t, os.Rename(filepath.Join(dir, "old name"), filepath.Join(dir, "new\tname\n")))
	must(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o700))
	must(t, os.Remove(filepath.Join(dir, "to-link")))
	must(t, os.Symlink("a.txt", filepath.Join(dir, "to-link")))
	must(t, os.Remove(filepath.Join(dir, "sub/b.txt")))
	write(t, filepath.Join(dir, ".gitattributes"), "* -diff\n")
	write(t, filepath.Join(dir, ".gitmodules"), "[submodule \"module\"]\n\tpath = module\n\turl = ./x\n\tignore = all\n")
	write(t, filepath.Join(dir, "\xff\""), "bytes\n")
	raw(t, dir, "add", "-A")
	raw(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+base+",module")
	raw(t, dir, "commit", "-q", "-m", "head")
	head := raw(t, dir, "rev-parse", "HEAD")
	marker := filepath.Join(t.TempDir(), "marker")
	raw(t, dir, "config", "diff.external", "touch "+marker)
	p := find(t).At(dir)
	changes, err := p.Diff(t.Context(), base, head)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		got = append(got, fmt.Sprintf("%c %s %s %q %q %t %t", c.Status, c.OldMode, c.NewMode, c.OldPath, c.Path, c.Submodule(), c.Symlink()))
	}
	slices.Sort(got)
	same(t, got, []string{
		`A 000000 100644 "" ".gitattributes" false false`,
		`A 000000 100644 "" ".gitmodules" false false`,
		`A 000000 100644 "" "\xff\"" false false`,
		`A 000000 160000 "" "module" true false`,
		`D 100644 000000 "" "sub/b.txt" false false`,
		`M 100644 100755 "" "run.sh" false false`,
		`R 100644 100644 "old name" "new\tname\n" false false`,
		`T 100644 120000 "" "to-link" false true`,
	})
	if none, err := p.Diff(t.Context(), head, head); err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
	if _, err := p.Diff(t.Context(), base, "absent"); !errors.Is(err, git.ErrNoCommit) {
		t.Error(err)
	}
	if _, _, err := p.Patch(t.Context(), base, head, 1<<20); err != nil || exists(marker) {
		t.Errorf("an external program ran: %t, %v", exists(marker), err)
	}
}

func TestPatch(t *testing.T) {
	t.Parallel()
	dir, base := project(t)
	write(t, filepath.Join(dir, "a.txt"), "one\n\x1b[31mred\u202e\n")
	head := commitAll(t, dir, "head")
	marker := filepath.Join(t.TempDir(), "marker")
	write(t, filepath.Join(dir, ".git/info/attributes"), "*.txt diff=evil\n")
	raw(t, dir, "config", "diff.evil.command", "touch "+marker+"; :")
	raw(t, dir, "config", "diff.evil.textconv", "touch "+marker+"; cat")
	p := find(t).At(dir)
	text, cut, err := p.Patch(t.Context(), base, head, 1<<20)
	if err != nil || cut || !strings.Contains(text, "\n+\\x1b[31mred\\u{202e}\n") || !strings.Contains(text, "--- a/a.txt\n") {
		t.Errorf("%q, %t, %v", text, cut, err)
	}
	if exists(marker) {
		t.Error("a program of the repository ran")
	}
	text, cut, err = p.Patch(t.Context(), base, head, 20)
	if err != nil || !cut || len(text) != 20 {
		t.Errorf("%q, %t, %v", text, cut, err)
	}
}

func TestMerges(t *testing.T) {
	t.Parallel()
	dir, base := project(t)
	branch := func(name, file, content string) string {
		raw(t, dir, "checkout", "-q", "-B", name, base)
		write(t, filepath.Join(dir, file), content)
		return commitAll(t, dir, name)
	}
	mine := branch("mine", "a.txt", "mine\n")
	theirs := branch("theirs", "a.txt", "theirs\n")
	apart := branch("apart", "new\nname", "x\n")
	odd := branch("odd", "new\nname", "y\n")
	raw(t, dir, "checkout", "-q", "--orphan", "unrelated")
	unrelated := commitAll(t, dir, "unrelated")
	p := find(t).At(dir)
	for i, c := range []struct {
		base, head string
		conflicts  []string
	}{
		{mine, apart, nil}, {base, mine, nil}, {mine, base, nil}, {mine, mine, nil},
		{mine, theirs, []string{"a.txt"}}, {apart, odd, []string{"new\nname"}},
	} {
		clean, conflicts, err := p.Merges(t.Context(), c.base, c.head)
		if err != nil || clean != (c.conflicts == nil) || !slices.Equal(conflicts, c.conflicts) {
			t.Errorf("%d: %t, %q, %v", i, clean, conflicts, err)
		}
	}
	if _, _, err := p.Merges(t.Context(), mine, unrelated); !errors.Is(err, git.ErrRefused) {
		t.Errorf("unrelated: %v", err)
	}
	if raw(t, dir, "status", "--porcelain") != "" {
		t.Error("the work tree was touched")
	}
}

func TestTraits(t *testing.T) {
	t.Parallel()
	dir, base := project(t)
	p := find(t).At(dir)
	if needs, err := traits.Of(t.Context(), p, base); err != nil || len(needs.LFS)+len(needs.Submodules) != 0 {
		t.Errorf("%+v, %v", needs, err)
	}
	write(t, filepath.Join(dir, ".gitattributes"), "# *.no filter=lfs\n[attr]large filter=lfs -text\n*.bin filter=lfs diff=lfs\n"+
		"*.big large\n\"odd name\\\"*\" text filter=lfs\n*.txt text\n*.not -filter\n*.other filter=other\n")
	write(t, filepath.Join(dir, "sub/.gitattributes"), "*.iso large\n\n*.c text\n")
	write(t, filepath.Join(dir, "sub/deep/x.gitattributes"), "*.x filter=lfs\n")
	raw(t, dir, "add", "-A")
	raw(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+base+",module\nodd")
	raw(t, dir, "commit", "-q", "-m", "traits")
	needs, err := traits.Of(t.Context(), p, "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	same(t, needs.Submodules, []string{"module\nodd"})
	same(t, needs.LFS, []string{"*.bin", "*.big", `"odd name\"*"`, "sub/*.iso"})
}
