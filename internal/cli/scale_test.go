package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"interlock/internal/lease"
	"interlock/internal/run"
	"interlock/internal/store/sqlite"
)

// many is how many of something there are in these tests: a size that fits, or what the environment
// says; make scale sets the large ones.
func many(t *testing.T, name string, fits int) int {
	t.Helper()
	text := os.Getenv("INTERLOCK_" + name)
	if text == "" {
		return fits
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestScaleFiles: a repository of many files. The engine is killed in the midst of making the
// workspace; the next command makes it whole, and all of the files are in what is published.
func TestScaleFiles(t *testing.T) {
	t.Parallel()
	p := newProject(t, "#!/bin/sh\nset -e\ntest $(find . -name 'f*' | wc -l) = $(cat count)\necho fixed > answer\nmv d0 moved\n", "x")
	n := many(t, "FILES", 3000)
	for i := range n {
		dir := filepath.Join(p.repo, fmt.Sprint("d", i%50))
		if i < 50 {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		p.write(filepath.Join(dir, fmt.Sprint("f", i)), fmt.Sprint(i, "\n"), 0o644)
	}
	p.git("-C", p.repo, "add", "-A")
	p.commit("count", fmt.Sprint(n, "\n"))
	cmd, out := p.command(nil, p.work()...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.eventually("a workspace is being made", func() bool {
		found, err := filepath.Glob(filepath.Join(p.state, "work", "*", "1", "*.partial"))
		return err == nil && len(found) == 1
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if strings.Contains(out.String(), "agent:") {
		t.Fatalf("it was killed too late for this test\n%s", out)
	}
	p.must(0, p.work()...)
	p.once()
	if got := strings.Count(p.git("-C", p.repo, "ls-tree", "-r", "--name-only", "interlock/issue-1")+"\n", "\n"); got != n+2 {
		t.Errorf("%d files were published, want %d", got, n+2)
	}
	if left, err := filepath.Glob(filepath.Join(p.state, "work", "*", "*", "*.partial")); err != nil || len(left) > 1 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// fastImport feeds git fast-import: the way to very many commits, branches and odd names.
func (p *project) fastImport(stream func(w *strings.Builder)) {
	p.t.Helper()
	var b strings.Builder
	stream(&b)
	p.gitFrom(strings.NewReader(b.String()), "-C", p.repo, "fast-import", "--quiet", "--force")
	p.git("-C", p.repo, "reset", "-q", "--hard")
}

const importer = "committer T <t@localhost> 1700000000 +0000\n"

// TestScaleCommits: a base of very many commits. What is pushed is on top of all of them, and the change
// shows the one that the agent made.
func TestScaleCommits(t *testing.T) {
	t.Parallel()
	p := newProject(t, fixes, "x")
	n := many(t, "COMMITS", 1000)
	p.fastImport(func(w *strings.Builder) {
		for i := range n {
			fmt.Fprintf(w, "commit refs/heads/main\nmark :%d\n%sdata 1\nc\n", i+1, importer)
			if i == 0 {
				w.WriteString("from refs/heads/main^0\n")
			}
			fmt.Fprintf(w, "M 100644 inline f%d\ndata 2\n%d\n\n", i%100, i%10)
		}
	})
	p.must(0, p.work()...)
	p.once()
	if got := p.git("-C", p.repo, "rev-list", "--count", "interlock/issue-1"); got != fmt.Sprint(n+3) { // the first, the agent's, what it left
		t.Errorf("%s commits are published, want %d", got, n+3)
	}
	if got := p.git("-C", p.repo, "rev-list", "--count", "main..interlock/issue-1"); got != "2" {
		t.Errorf("%s commits are new", got)
	}
	if out := p.must(0, "change", "show", "1", "--repo", p.repo); !strings.Contains(out, "+fixed") || strings.Contains(out, "diff --git a/f") {
		t.Errorf("the change shows more than was made:\n%.2000s", out)
	}
}

// TestScaleBranches: very many branches, of which none has anything to do with the run. None is moved,
// and none comes into the engine's repository.
func TestScaleBranches(t *testing.T) {
	t.Parallel()
	p := newProject(t, fixes, "x")
	n := many(t, "BRANCHES", 500)
	p.fastImport(func(w *strings.Builder) {
		fmt.Fprintf(w, "commit refs/heads/side\nmark :1\n%sdata 1\ns\nfrom refs/heads/main^0\nM 100644 inline side\ndata 1\ns\n", importer)
		for i := range n {
			fmt.Fprintf(w, "reset refs/heads/team/%d/feature-%d\nfrom :1\n\n", i%20, i)
		}
	})
	side := p.git("-C", p.repo, "rev-parse", "side")
	before := p.git("-C", p.repo, "for-each-ref", "refs/heads/team/")
	p.must(0, p.work()...)
	p.once()
	if after := p.git("-C", p.repo, "for-each-ref", "refs/heads/team/"); after != before || strings.Count(after, "\n") != n-1 {
		t.Error("branches of others were changed")
	}
	engines, err := filepath.Glob(filepath.Join(p.state, "repos", "*.git"))
	if err != nil || len(engines) != 1 {
		t.Fatal(engines, err)
	}
	if exec.Command("git", "--git-dir", engines[0], "cat-file", "-e", side).Run() == nil {
		t.Error("what no run needs came into the engine's repository")
	}
	p.must(0, "change", "accept", "1", "--repo", p.repo)
}

// TestScaleNames: names with newlines and bytes that are no UTF-8, names that differ by case alone, and
// lines that end in CRLF come through byte for byte, in the base and in what the agent makes.
func TestScaleNames(t *testing.T) {
	t.Parallel()
	p := newProject(t, "#!/bin/sh\nset -e\necho fixed > answer\n"+
		"test \"$(cat \"$(printf 'new\\nline')\")\" = one; test \"$(cat README)$(cat readme)\" = upperlower; test \"$(od -An -c crlf | tr -d ' \\n')\" = 'a\\r\\nb\\r\\n'\n"+
		"printf 'a\\r\\nc\\r\\n' > crlf; printf two > \"$(printf 'new\\nline')\"; printf x > \"$(printf 'bytes\\377\\376')\"; printf Z > ReadMe; mv readme \"$(printf 'moved\\n\\001')\"\n", "x")
	p.fastImport(func(w *strings.Builder) {
		fmt.Fprintf(w, "commit refs/heads/main\n%sdata 1\nn\nfrom refs/heads/main^0\n", importer)
		for name, text := range map[string]string{`"new\nline"`: "one", "README": "upper", "readme": "lower", "crlf": "a\r\nb\r\n", `"b\303\050"`: "no UTF-8",
			".gitattributes": "* text=auto\n"} {
			fmt.Fprintf(w, "M 100644 inline %s\ndata %d\n%s\n", name, len(text), text)
		}
	})
	p.must(0, p.work()...)
	p.once()
	names := strings.Split(strings.TrimSuffix(p.git("-C", p.repo, "ls-tree", "-r", "-z", "--name-only", "interlock/issue-1"), "\x00"), "\x00")
	want := []string{".gitattributes", "README", "ReadMe", "answer", "bytes\xff\xfe", "b\xc3\x28", "crlf", "moved\n\x01", "new\nline"}
	if fmt.Sprintf("%q", names) != fmt.Sprintf("%q", want) {
		t.Errorf("published %q\nwant      %q", names, want)
	}
	for name, text := range map[string]string{"new\nline": "two", "ReadMe": "Z", "README": "upper", "moved\n\x01": "lower", "bytes\xff\xfe": "x"} {
		if got := p.git("-C", p.repo, "show", "interlock/issue-1:"+name); got != text {
			t.Errorf("%q holds %q, want %q", name, got, text)
		}
	}
	out := p.must(0, "change", "show", "1", "--repo", p.repo)
	if strings.ContainsAny(out, "\x01\xff\xfe") || !strings.Contains(out, "ReadMe") {
		t.Errorf("the change is shown as %q", out)
	}
	dir := filepath.Join(t.TempDir(), "out")
	p.must(0, "workspace", "export", "1", dir, "--repo", p.repo)
	if got := p.git("-C", dir, "status", "--porcelain"); got != "" {
		t.Errorf("exported otherwise than it was: %q", got)
	}
	p.must(0, "workspace", "drop", "1", "--repo", p.repo)
}

// TestScaleBlob: a large file that cannot be made smaller. Up to the bound of a pack it is taken in as it
// is; what has more is refused, with the bound, and kept.
func TestScaleBlob(t *testing.T) {
	t.Parallel()
	n := many(t, "BLOB", 8) // MB
	p := newProject(t, fmt.Sprintf("#!/bin/sh\nset -e\necho fixed > answer\nhead -c %d000000 /dev/urandom > blob\ngit add -A\ngit commit -qm blob\n", n), "x")
	began := time.Now()
	p.must(0, p.work()...)
	p.once()
	if got := p.git("-C", p.repo, "cat-file", "-s", "interlock/issue-1:blob"); got != fmt.Sprintf("%d000000", n) {
		t.Errorf("the blob has %s bytes", got)
	}
	t.Logf("%d MB: %s", n, time.Since(began).Round(time.Second))
	p.must(0, "change", "accept", "1", "--repo", p.repo)
	p.must(0, "issue", "new", "--repo", p.repo, "--title", "On a base with the blob")
	p.must(0, "run", "2", "--repo", p.repo, "--sandbox", p.level, "--command", "test $(wc -c < blob) = "+fmt.Sprint(n)+"000000 && echo two > two", "--checks", "test -s blob")
	if os.Getenv("INTERLOCK_BLOB") == "" {
		return // TestImportBoundsThePack tries the bound at sizes that fit
	}
	p.must(0, "issue", "new", "--repo", p.repo, "--title", "Too much")
	out := p.must(8, "run", "3", "--repo", p.repo, "--sandbox", p.level, "--attempts", "1", "--checks", "true", "--allow-no-tests",
		"--command", "head -c 600000000 /dev/urandom > more && git add -A && git commit -qm more")
	if !strings.Contains(out, "its pack has more than 536870912 bytes") {
		t.Errorf("refused without its reason:\n%s", out)
	}
	if out := p.must(1, "workspace", "drop", "3", "--repo", p.repo); !strings.Contains(out, "may hold work that is nowhere else") {
		t.Error(out)
	}
}

// TestScaleState: a state of very many past runs, which were made and came to rest one by one. What is
// asked of it is answered, the newest first, and the next issue is worked. The plans of all that the
// store is asked are looked at by TestScalePlans.
func TestScaleState(t *testing.T) {
	t.Parallel()
	p := newProject(t, fixes, "x")
	n := many(t, "RUNS", 500)
	s, err := sqlite.Open(t.Context(), p.state, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	self, err := lease.Self(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	next := make(chan int)
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for i := range next {
				r := run.Run{ID: fmt.Sprintf("%d-past", i), Repo: "local:past", RepoPath: "/past", Issue: int64(i), State: run.Queued,
					Task: run.Task{Title: "Past issue"}, Created: time.Now(), Updated: time.Now()}
				l, r, err := s.Claim(t.Context(), self, r, time.Minute)
				if err == nil {
					r.State, r.Reason = run.Done, "long ago"
					_, err = s.Save(t.Context(), l, r, run.Accepted{Head: "x"})
				}
				if err == nil {
					err = s.Release(t.Context(), l)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range n {
		next <- i + 1
	}
	close(next)
	all.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	timed := func(code int, args ...string) string {
		began := time.Now()
		out := p.must(code, args...)
		t.Logf("%d past runs: interlock %s: %s", n, strings.Join(args[:1], " "), time.Since(began).Round(time.Millisecond))
		return out
	}
	if out := timed(0, "runs"); strings.Count(out, "\n") != 51 || !strings.Contains(out, "long ago") {
		t.Errorf("runs:\n%s", out)
	}
	if out := timed(0, "show", "7-past"); !strings.Contains(out, "run 7-past: issue 7, Past issue") {
		t.Error(out)
	}
	timed(0, p.work()...)
	if out := timed(0, "runs", "--limit", "1"); !strings.Contains(out, "in review") {
		t.Error(out)
	}
	if out := timed(0, "runs", "--repo", p.repo); strings.Count(out, "\n") != 2 {
		t.Errorf("runs of the repository:\n%s", out)
	}
	timed(0, "workspace", "list")
	timed(0, "workspace", "sweep")
	timed(0, "state", "check")
}
