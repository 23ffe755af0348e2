package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// wanderer does the work, and writes to every ref that it can think of.
const wanderer = `#!/bin/sh
set -e
echo fixed > answer
git commit -q -am answer
head=$(git rev-parse HEAD)
base=$(git rev-parse HEAD^)
git branch other
git branch -f main HEAD || git update-ref refs/heads/main HEAD
git tag v1
git tag -a -m annotated v2
git update-ref refs/interlock/claims/1 HEAD
git update-ref refs/interlock/issues/1 HEAD
git update-ref refs/interlock/changes/7 HEAD
git update-ref refs/heads/interlock/claims/1 HEAD
git update-ref refs/replace/$base $head
git notes add -f -m note HEAD
git checkout -q other
echo elsewhere > elsewhere
git add elsewhere
git commit -q -m elsewhere
git config remote.origin.url "$INTERLOCK_REPO_FOR_TEST"
git config push.default matching
git config remote.origin.mirror true
git checkout -q interlock/issue-1
`

// TestOnlyTheBranchIsPushed: whatever refs the agent makes, moves and names, and whatever the checks
// do to their tree, what is published is the verified commit on the run's own branch.
func TestOnlyTheBranchIsPushed(t *testing.T) {
	t.Parallel()
	p := newProject(t, wanderer, "wander")
	before := p.at("refs/heads/", "refs/tags/", "refs/notes/", "refs/replace/")
	mischief := `grep -qx fixed answer && echo broken > answer && git -c user.name=C -c user.email=c@localhost commit -q -am 'by the check' && git update-ref refs/heads/interlock/issue-1 HEAD`
	args := p.work("--checks", mischief)
	args = slices.DeleteFunc(args, func(s string) bool { return s == "grep -qx fixed answer" })
	args = slices.Delete(args, slices.Index(args, "--checks"), slices.Index(args, "--checks")+1)
	p.must(0, args...)
	p.once()
	head := p.runs()[0].Head.Hash
	want := append(slices.Clone(before), "refs/heads/interlock/issue-1 "+head)
	slices.Sort(want)
	if got := p.at("refs/heads/", "refs/tags/", "refs/notes/", "refs/replace/"); !slices.Equal(got, want) {
		t.Errorf("refs are\n%q\nwant\n%q", got, want)
	}
	if got := p.git("-C", p.repo, "show", "interlock/issue-1:answer"); got != "fixed" {
		t.Errorf("what was published says %q", got)
	}
	if got := p.git("-C", p.repo, "log", "--format=%s", "main..interlock/issue-1"); got != "answer" {
		t.Errorf("commits %q", got)
	}
	claim := p.git("-C", p.repo, "log", "-1", "--format=%s", "refs/interlock/claims/1")
	if claim != "interlock claim [skip ci]" || len(p.refs("refs/interlock/changes/")) != 1 {
		t.Errorf("the agent's refs came through: claim %q, changes %q", claim, p.refs("refs/interlock/changes/"))
	}
}

// TestRewrittenHistoryIsNotPushed: work that is not built on its base goes back to the agent.
func TestRewrittenHistoryIsNotPushed(t *testing.T) {
	t.Parallel()
	p := newProject(t, "#!/bin/sh\necho fixed > answer\ngit commit -q --amend -am rewritten\n", "rewrite")
	if out := p.must(8, p.work("--attempts", "1")...); !strings.Contains(out, "not built on its base") {
		t.Errorf("it does not say why:\n%s", out)
	}
	if got := p.refs("refs/heads/interlock/"); len(got) != 0 {
		t.Errorf("pushed %q", got)
	}
}

// odd makes files whose names and contents are hard on whoever reads them.
const odd = `#!/bin/sh
set -e
echo fixed > answer
printf 'a\r\nb\r\n' > crlf.txt
printf 'a\r\nb\nc\r' > mixed.txt
printf 'one\n' > "$(printf 'new\nline')"
printf 'two\n' > "$(printf 'bytes\377\376')"
printf 'three\n' > Case
printf 'four\n' > case
printf 'five\n' > "-rf"
printf 'six\n' > " leading and trailing "
printf 'seven\n' > "$(printf 'esc\033[31m')"
test -z "$COMMIT" || { git add -A; git commit -q -m odd; }
`

// TestOddNamesAndLineEnds: a repository that converts line ends, and files that the agent left with
// odd names: what is published is byte for byte what was in the workspace, and can be accepted.
func TestOddNamesAndLineEnds(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"", "COMMIT=1\n"} {
		t.Run("committed by "+map[bool]string{true: "the engine", false: "the agent"}[how == ""], func(t *testing.T) {
			t.Parallel()
			p := newProject(t, strings.Replace(odd, "set -e\n", "set -e\n"+how, 1), "odd")
			p.git("-C", p.repo, "config", "core.autocrlf", "true")
			p.git("-C", p.repo, "config", "core.ignoreCase", "true")
			out := p.must(0, p.work()...)
			if strings.Contains(out, "\x1b") {
				t.Errorf("an escape sequence was printed: %q", out)
			}
			for name, want := range map[string]string{
				"crlf.txt": "a\r\nb\r\n", "mixed.txt": "a\r\nb\nc\r", "new\nline": "one\n", "bytes\xff\xfe": "two\n",
				"Case": "three\n", "case": "four\n", "-rf": "five\n", " leading and trailing ": "six\n", "esc\x1b[31m": "seven\n",
			} {
				cmd := exec.Command("git", "-C", p.repo, "cat-file", "blob", "interlock/issue-1:"+name)
				if got, err := cmd.Output(); err != nil || string(got) != want {
					t.Errorf("%q holds %q, %v", name, got, err)
				}
			}
			if out := p.must(0, "change", "show", "1", "--repo", p.repo); strings.Contains(out, "\x1b") {
				t.Errorf("the diff is printed raw: %q", out)
			}
			p.git("-C", p.repo, "config", "--unset", "core.ignoreCase")
			p.must(0, "change", "accept", "1", "--repo", p.repo)
			if got := p.git("-C", p.repo, "status", "--porcelain"); got != "" {
				t.Errorf("after the accept: %q", got)
			}
			if data, err := os.ReadFile(filepath.Join(p.repo, "new\nline")); err != nil || !strings.HasPrefix(string(data), "one") {
				t.Errorf("%q, %v", data, err)
			}
		})
	}
}

// TestScaleSubmodulesAndLFS: submodules and large files kept elsewhere are refused, in the base before
// anything is started, in the work before anything is published.
func TestScaleSubmodulesAndLFS(t *testing.T) {
	t.Parallel()
	lfs := "*.bin filter=lfs diff=lfs merge=lfs -text"
	t.Run("base with LFS", func(t *testing.T) {
		t.Parallel()
		p := newProject(t, quick, "x")
		p.commit(".gitattributes", lfs+"\n")
		if out := p.must(1, p.work()...); !strings.Contains(out, "Git LFS") || !strings.Contains(out, "nothing was started") {
			t.Error(out)
		}
	})
	t.Run("base with a submodule", func(t *testing.T) {
		t.Parallel()
		p := newProject(t, quick, "x")
		p.git("-C", p.repo, "update-index", "--add", "--cacheinfo", "160000,"+p.git("-C", p.repo, "rev-parse", "main")+",module")
		p.git("-C", p.repo, "-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "-q", "-m", "submodule")
		if out := p.must(1, p.work()...); !strings.Contains(out, "submodules") || !strings.Contains(out, `"module"`) {
			t.Error(out)
		}
	})
	for name, agent := range map[string]string{
		"submodule": "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),module\ngit commit -q -m module",
		"LFS":       "echo '" + lfs + "' > .gitattributes\nprintf 'version https://git-lfs.github.com/spec/v1\\noid sha256:00\\nsize 1\\n' > x.bin\ngit add -A\ngit commit -q -m lfs",
	} {
		t.Run("work with "+name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, "#!/bin/sh\necho fixed > answer\n"+agent+"\n", "x")
			code, out := p.interlock(p.work("--attempts", "1")...)
			if got := p.refs("refs/heads/interlock/"); code == 0 || len(got) != 0 || !strings.Contains(out, name) && !strings.Contains(out, "gitattributes") {
				t.Errorf("exit %d, pushed %q\n%s", code, got, out)
			}
		})
	}
}
