package patch_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"interlock/internal/git"
	"interlock/internal/git/patch"
)

// seen writes down what it is told.
type seen struct {
	lines []string
	now   string
	text  strings.Builder
	from  int
}

func (s *seen) File(commit, path string) {
	s.flush()
	s.now = path
	if path == "" {
		s.now = "commit"
	}
	s.lines = append(s.lines, s.now)
}

func (s *seen) Lines(from int) { s.flush(); s.from = from }

func (s *seen) Text(part []byte) { s.text.Write(part) }

func (s *seen) flush() {
	if s.text.Len() > 0 && s.now != "commit" {
		s.lines = append(s.lines, fmt.Sprintf("%s:%d %q", s.now, s.from, s.text.String()))
	}
	s.text.Reset()
}

// repo is a work tree in which a test commits as it likes.
type repo struct {
	t   *testing.T
	dir string
	p   *git.Plumb
}

func newRepo(t *testing.T) *repo {
	t.Helper()
	g, err := git.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := &repo{t: t, dir: t.TempDir()}
	r.git("init", "-q", "-b", "main")
	r.p = g.At(r.dir)
	return r
}

func (r *repo) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=T", "-c", "user.email=t@localhost"}, args...)...)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *repo) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repo) commit() string {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", "m")
	return r.git("rev-parse", "HEAD")
}

func (r *repo) walk(base, head string) []string {
	r.t.Helper()
	s := &seen{}
	if err := patch.Walk(r.t.Context(), r.p, base, head, time.Minute, s); err != nil {
		r.t.Fatal(err)
	}
	s.flush()
	commits := strings.Count(strings.Join(s.lines, "\n"), "commit")
	if want := strings.Count(r.git("rev-list", head, "^"+base)+"\n", "\n"); base != head && commits != want {
		r.t.Errorf("%d commits were told, there are %d", commits, want)
	}
	s.lines = slices.DeleteFunc(s.lines, func(l string) bool { return l == "commit" })
	return s.lines
}

// TestWalk: what git prints for each kind of change, with lines that look like headers.
func TestWalk(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		base, change func(r *repo)
		want         []string
	}{
		"added, without a last newline": {nil, func(r *repo) { r.write("a", "one\ntwo") }, []string{"a", `a:1 "one\ntwo\n"`}},
		"pieces": {func(r *repo) { r.write("a", "1\n2\n3\n4\n5\n") }, func(r *repo) { r.write("a", "1\nx\n3\n4\n5\ny\nz\n") },
			[]string{"a", `a:2 "x\n"`, `a:6 "y\nz\n"`}},
		"lines like headers": {func(r *repo) { r.write("a", "-- a/x\n") },
			func(r *repo) {
				r.write("a", "++ b/x\n@@ -1 +1 @@\ndiff --git a/x b/x\n\\ No newline\nBinary files a and b differ\n")
			},
			[]string{"a", `a:1 "++ b/x\n@@ -1 +1 @@\ndiff --git a/x b/x\n\\ No newline\nBinary files a and b differ\n"`}},
		"taken out": {func(r *repo) { r.write("a", "1\n2\n") }, func(r *repo) { r.write("a", "2\n") }, []string{"a"}},
		"deleted":   {func(r *repo) { r.write("a", "1\n") }, func(r *repo) { r.git("rm", "-q", "a") }, []string{"a"}},
		"empty":     {nil, func(r *repo) { r.write("a", "") }, []string{"a"}},
		"mode": {func(r *repo) { r.write("a", "1\n") }, func(r *repo) {
			r.git("update-index", "--chmod=+x", "a")
			r.git("commit", "-q", "-m", "x")
			r.git("checkout", "-q", "a")
		}, []string{"a"}},
		"moved":          {func(r *repo) { r.write("a b", "1\n2\n") }, func(r *repo) { r.git("mv", "a b", "c d") }, []string{"c d"}},
		"odd names":      {nil, func(r *repo) { r.write("a b", "x\n"); r.write("n\nl", "y\n"); r.write("q\"\\é", "z\n") }, []string{"a b", `a b:1 "x\n"`, "n\nl", "n\nl:1 \"y\\n\"", "q\"\\é", "q\"\\é:1 \"z\\n\""}},
		"name as a pair": {nil, func(r *repo) { r.write("x b/x", "y\n") }, []string{"x b/x", `x b/x:1 "y\n"`}},
		"binary":         {nil, func(r *repo) { r.write("a", "x\x00y\n") }, []string{"a", "a", `a:1 "x\x00y\n"`}},
		"binary again":   {func(r *repo) { r.write("a", "x\x00y\n") }, func(r *repo) { r.write("a", "x\x00z\nb") }, []string{"a", "a", `a:1 "x\x00z\nb"`}},
		"link": {nil, func(r *repo) {
			if err := os.Symlink("to/there", filepath.Join(r.dir, "a")); err != nil {
				r.t.Fatal(err)
			}
		}, []string{"a", `a:1 "to/there\n"`}},
		"hidden by attributes": {func(r *repo) { r.write(".gitattributes", "* -diff\n") }, func(r *repo) { r.write("a", "1\n") }, []string{"a", `a:1 "1\n"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			if c.base != nil {
				c.base(r)
			}
			base := r.commit()
			c.change(r)
			got := r.walk(base, r.commit())
			if name == "hidden by attributes" { // some versions of git read them in a bare repository, then it is told whole
				got = slices.Compact(got)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestWalkSteps: what one commit adds and a later one takes back is told, a root is, and of a merge what
// is in none of its parents, also where a line has no end.
func TestWalkSteps(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a", "1\n2\n3\n4\n5\n6\n7\n8\n9")
	base := r.commit()
	if got := r.walk(base, base); got != nil {
		t.Errorf("nothing new: %q", got)
	}
	r.write("gone", "secret\n")
	r.commit()
	r.git("rm", "-q", "gone")
	head := r.commit()
	if d := cmp.Diff([]string{"gone", "gone", `gone:1 "secret\n"`}, r.walk(base, head)); d != "" {
		t.Error(d)
	}
	r.git("checkout", "-q", "-b", "side", base)
	r.write("a", "1\n2\n3\n4\n5\n6\n7\n8\nside")
	side := r.commit()
	r.git("checkout", "-q", "main")
	r.write("a", "main\n2\n3\n4\n5\n6\n7\n8\n9")
	main := r.commit()
	r.git("merge", "-q", "--no-commit", "side")
	r.write("a", "main\n2\n+both\n--\n5\n6\n7\n8\nside\n\nneither")
	r.write("new", "new\n")
	merge := r.commit()
	got := r.walk(main, merge)
	// The side's last line had no end, so that it is another one here.
	want := []string{"a", `a:3 "+both\n--\n"`, `a:9 "side\n\nneither\n"`, "new", `new:1 "new\n"`, "a", `a:9 "side\n"`}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := r.walk(side, merge); len(got) == 0 {
		t.Error("from the other side: nothing")
	}
	r.git("checkout", "-q", "--orphan", "other")
	r.write("root", "root\n")
	root := r.commit()
	if got := strings.Join(r.walk(base, root), " "); !strings.Contains(got, `root:1 "root\n"`) {
		t.Errorf("a history of its own: %s", got)
	}
}

// TestWalkBig: a file that is too big to be compared is told whole, in bounded memory; what takes more
// memory or time than there may be is ErrTooBig.
func TestWalkBig(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	base := r.commit()
	r.write("big", strings.Repeat("0123456789abcde\n", patch.BigFile/16+1)+"last\n")
	head := r.commit()
	s := &seen{}
	if err := patch.Walk(t.Context(), r.p, base, head, time.Minute, s); err != nil {
		t.Fatal(err)
	}
	s.flush()
	if got := strings.Join(s.lines, "\n"); !strings.Contains(got, `last\n"`) {
		t.Errorf("%.200s", got)
	}
	if err := patch.Walk(t.Context(), r.p, base, head, time.Nanosecond, s); !strings.Contains(fmt.Sprint(err), git.ErrTooBig.Error()) {
		t.Errorf("no time: %v", err)
	}
}
