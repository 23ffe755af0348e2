package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// manyFiles is how many files a large repository has in these tests; make races sets 50,000.
func manyFiles(t *testing.T) int {
	t.Helper()
	text := os.Getenv("INTERLOCK_FILES")
	if text == "" {
		return 3000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestManyFiles: a repository of many files. The engine is killed in the midst of making the
// workspace; the next command makes it whole, and all of the files are in what is published.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	p := newProject(t, "#!/bin/sh\nset -e\ntest $(find . -name 'f*' | wc -l) = $(cat count)\necho fixed > answer\nmv d0 moved\n", "x")
	n := manyFiles(t)
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
