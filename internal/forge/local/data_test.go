package local_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"interlock/internal/forge"
	"interlock/internal/forge/local"
	"interlock/internal/git"
)

// shell runs a command line in an empty directory as a person with a name would.
func shell(p place, command string) ([]byte, error) {
	cmd := exec.CommandContext(p.Context(), "/bin/bash", "-c", command)
	cmd.Dir = p.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "GIT_EDITOR=true",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@localhost", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@localhost"}
	return cmd.CombinedOutput()
}

// marker installs hooks that leave their name and returns what reads those that ran.
func (p place) marker(hooks ...string) (ran func() []string) {
	p.Helper()
	dir := p.TempDir()
	for _, name := range hooks {
		p.hook(name, "touch '"+filepath.Join(dir, name)+"'")
	}
	return func() []string {
		var names []string
		entries, err := os.ReadDir(dir)
		p.must(err)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
}

// damage puts a child with this text on an issue or a change.
func (p place) damage(ref, text string) string {
	p.Helper()
	old := p.at(ref)
	file := "issue.json"
	if strings.Contains(ref, "/changes/") {
		file = "change.json"
	}
	hash, err := p.git.At(p.dir).WriteCommit(p.Context(), git.CommitSpec{Files: map[string][]byte{file: []byte(text)}, Parents: []string{old}, Message: "x\n"})
	p.must(err)
	p.run("update-ref", ref, hash, old)
	return hash
}

func TestSixteenIssuesAtOnce(t *testing.T) {
	t.Parallel()
	p := repository(t, true)
	p.run("update-ref", "refs/interlock/claims/3", p.at("main")) // of an issue that was deleted
	const writers = 16
	clients := make([]*local.Forge, writers)
	for i := range clients {
		clients[i] = p.open()
	}
	var wg sync.WaitGroup
	numbers := make([]int64, writers)
	for i, f := range clients {
		wg.Go(func() {
			issue, err := f.NewIssue(t.Context(), fmt.Sprintf("issue %d", i), "", nil, "")
			if err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
			numbers[i] = issue.Number
			if got, err := f.Issue(t.Context(), issue.Number); err != nil || got.Title != fmt.Sprintf("issue %d", i) {
				t.Errorf("writer %d: %+v, %v", i, got, err)
			}
		})
	}
	wg.Wait()
	slices.Sort(numbers)
	for i, n := range numbers {
		if n != int64(i+4) { // 3 has a claim: its number is never given again
			t.Fatalf("numbers %v", numbers)
		}
	}
}

func TestNewIssueInvalid(t *testing.T) {
	t.Parallel()
	p := repository(t, true)
	f := p.open()
	for name, c := range map[string]struct {
		title, body string
		labels      []string
	}{
		"no title":     {title: " \n"},
		"hidden title": {title: "\u200b<!-- x -->"},
		"long title":   {title: strings.Repeat("ü", 256)},
		"long body":    {title: "x", body: strings.Repeat("x", 256<<10+1)},
		"empty label":  {title: "x", labels: []string{"a", " "}},
		"long label":   {title: "x", labels: []string{strings.Repeat("l", 51)}},
	} {
		if _, err := f.NewIssue(t.Context(), c.title, c.body, c.labels, ""); !errors.Is(err, forge.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	i, err := f.NewIssue(t.Context(), strings.Repeat("ü", 255), "bad \xff byte", []string{"a", "a", " b\nc "}, "someone")
	p.must(err)
	got, err := f.Issue(t.Context(), i.Number)
	p.must(err)
	if got.Number != 1 || got.Body != "bad \ufffd byte" || !slices.Equal(got.Labels, []string{"a", "b c"}) || got.Author != "someone" {
		t.Errorf("%+v", got)
	}
}

// One issue or change that cannot be read is named, and concerns no other.
func TestDamaged(t *testing.T) {
	t.Parallel()
	p := repository(t, true)
	f := p.open()
	c := p.proposed(f, map[string]string{"text": "x\n"})
	for range 2 {
		_, err := f.NewIssue(t.Context(), "good", "", nil, "")
		p.must(err)
	}
	good := blob(p, "refs/interlock/issues/2:issue.json")
	object := p.run("rev-parse", "refs/interlock/issues/2:issue.json")
	for name, text := range map[string]string{
		"no JSON":       "{",
		"empty":         "",
		"unknown field": strings.Replace(good, `"format": 1`, `"format": 1, "more": 2`, 1),
		"other format":  strings.Replace(good, `"format": 1`, `"format": 2`, 1),
		"other number":  strings.Replace(good, `"number": 2`, `"number": 3`, 1),
		"other state":   strings.Replace(good, `"open"`, `"ajar"`, 1),
		"something on":  good + "{}",
		"no title":      strings.Replace(good, `"good"`, `""`, 1),
		"huge":          strings.Repeat(" ", 1<<20) + good,
		"deep":          strings.Repeat("[", 100_000),
		"escape":        "\x1b[31m",
	} {
		if text == good {
			t.Fatalf("%s: is the good one", name)
		}
		old := p.at("refs/interlock/issues/2")
		hash := p.damage("refs/interlock/issues/2", text)
		var damaged *local.DamagedError
		if _, err := f.Issue(t.Context(), 2); !errors.As(err, &damaged) || damaged.Hash != hash ||
			!strings.Contains(err.Error(), "refs/interlock/issues/2") || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v", name, err)
		}
		if err := f.SetMark(t.Context(), 2, forge.Mark{Nonce: "n", Login: "bot"}); !errors.As(err, &damaged) {
			t.Errorf("%s: mark: %v", name, err)
		}
		list, err := f.Issues(t.Context(), forge.Filter{})
		p.must(err)
		if len(list) != 2 || list[0].Number != 1 || list[1].Number != 3 {
			t.Errorf("%s: %+v", name, list)
		}
		if all, err := f.Issues(t.Context(), forge.Filter{State: "all"}); err != nil || len(all) != 3 || all[1].State != "damaged" {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
		if bad, err := f.Damaged(t.Context()); err != nil || len(bad) != 1 || !errors.As(bad[0], &damaged) {
			t.Errorf("%s: %v, %v", name, bad, err)
		}
		p.run("update-ref", "refs/interlock/issues/2", old)
	}
	p.run("update-ref", "refs/interlock/issues/2", object) // not even a commit
	if _, err := f.Issue(t.Context(), 2); !errors.As(err, new(*local.DamagedError)) {
		t.Errorf("a blob: %v", err)
	}
	// An open change that cannot be read still holds its head.
	p.damage("refs/interlock/changes/1", "{")
	var damaged *local.DamagedError
	if _, err := f.Propose(t.Context(), forge.Change{Title: "x", Head: c.Head, Base: "main"}); !errors.As(err, &damaged) || damaged.Ref != "refs/interlock/changes/1" {
		t.Errorf("propose beside a damaged change: %v", err)
	}
	if _, err := f.Change(t.Context(), 1); !errors.As(err, &damaged) {
		t.Errorf("a damaged change: %v", err)
	}
}

func TestDamagedChange(t *testing.T) {
	t.Parallel()
	p := repository(t, true)
	f := p.open()
	p.proposed(f, map[string]string{"text": "x\n"})
	ref := "refs/interlock/changes/1"
	good, old := blob(p, ref+":change.json"), p.at(ref)
	for name, text := range map[string]string{
		"no JSON":      "[",
		"other format": strings.Replace(good, `"format": 1`, `"format": 0`, 1),
		"other number": strings.Replace(good, `"number": 1`, `"number": 7`, 1),
		"other state":  strings.Replace(good, `"open"`, `"ajar"`, 1),
		"odd head":     strings.Replace(good, `"work"`, `"--upload-pack=x"`, 1),
		"odd base":     strings.Replace(good, `"main"`, `"a b; rm"`, 1),
		"no proposal":  strings.Replace(good, `"proposed": "`, `"proposed": "-`, 1),
	} {
		if text == good {
			t.Fatalf("%s: is the good one", name)
		}
		p.damage(ref, text)
		for what, do := range map[string]func() error{
			"read":   func() error { _, err := f.Change(t.Context(), 1); return err },
			"accept": func() error { _, err := f.Accept(t.Context(), 1); return err },
			"close":  func() error { _, err := f.CloseChange(t.Context(), 1); return err },
		} {
			if err := do(); !errors.As(err, new(*local.DamagedError)) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		if list, err := f.Changes(t.Context(), ""); err != nil || len(list) != 0 {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
		if bad, err := f.Damaged(t.Context()); err != nil || len(bad) != 1 {
			t.Errorf("%s: %v, %v", name, bad, err)
		}
		p.run("update-ref", ref, old)
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	p := place{TB: t}
	for _, s := range []string{"", "plain/path-1", "a b", "it's", "a\nb", "\x1b[31m'\\x41", "\xff", "größe", "$(id)`id`", "-x"} {
		word := local.Quote(s)
		if strings.ContainsAny(word, "\x1b\n\xff") {
			t.Errorf("%q cannot be shown", word)
		}
		out, err := shell(p, "printf %s "+word+"; printf x")
		if s == "-x" {
			out, err = shell(p, "printf -- %s "+word+"; printf x")
		}
		if err != nil || string(out) != s+"x" {
			t.Errorf("%q as %s is %q, %v", s, word, out, err)
		}
	}
}

func blob(p place, rev string) string {
	p.Helper()
	data, err := p.git.At(p.dir).Blob(p.Context(), rev, 1<<20)
	p.must(err)
	return string(data)
}

// What a crash in the middle of opening a change can leave does not block its head, nor give two.
func TestProposeAfterCrash(t *testing.T) {
	t.Parallel()
	p := repository(t, true)
	f := p.open()
	c := p.proposed(f, map[string]string{"text": "x\n"})
	index, at := "refs/interlock/heads/work", p.at("refs/interlock/changes/1")
	if p.at(index) != at {
		t.Fatalf("the index is at %s", p.at(index))
	}
	p.run("update-ref", "-d", index) // the change without its index
	if got, err := f.Propose(t.Context(), forge.Change{Title: "x", Head: "work", Base: "main"}); !errors.Is(err, forge.ErrExists) || got.Number != c.Number {
		t.Errorf("without its index: %+v, %v", got, err)
	}
	p.run("update-ref", "-d", "refs/interlock/changes/1") // the index without its change
	p.run("update-ref", index, at)
	got, err := f.Propose(t.Context(), forge.Change{Title: "x", Head: "work", Base: "main"})
	p.must(err)
	if p.at(index) != p.at("refs/interlock/changes/1") {
		t.Errorf("%+v: the index is at %s", got, p.at(index))
	}
	// Merged, but the index was not deleted any more.
	stale := p.at(index)
	_, err = f.Accept(t.Context(), got.Number)
	p.must(err)
	p.run("update-ref", index, stale)
	p.branch("work", "main", map[string]string{"text": "y\n"})
	if _, err = f.Propose(t.Context(), forge.Change{Title: "y", Head: "work", Base: "main"}); err != nil {
		t.Errorf("with the index of a merged change: %v", err)
	}
}

// Data is written without hooks, identity, index or work tree, and from any path.
func TestTouchesNothing(t *testing.T) {
	t.Parallel()
	p := repository(t, false)
	write(t, filepath.Join(p.dir, "text"), "not committed\n")
	p.must(os.Mkdir(filepath.Join(p.dir, "sub"), 0o700))
	link := filepath.Join(t.TempDir(), "link")
	p.must(os.Symlink(p.dir, link))
	tree := filepath.Join(t.TempDir(), "linked")
	p.run("worktree", "add", "--quiet", tree, "-b", "other")
	ran := p.marker("reference-transaction", "pre-commit", "post-commit", "pre-receive", "update", "post-update")
	index := read(t, filepath.Join(p.dir, ".git", "index"))
	key := p.open().Location().Key
	for i, path := range []string{p.dir, filepath.Join(p.dir, "sub"), link, tree, filepath.Join(p.dir, ".git")} {
		f, err := local.Open(t.Context(), p.git, path)
		p.must(err)
		issue, err := f.NewIssue(t.Context(), "x", "", nil, "")
		p.must(err)
		if f.Location().Key != key || issue.Number != int64(i+1) || f.Remote() != p.open().Remote() {
			t.Errorf("%s: key %s, issue %d, remote %s", path, f.Location().Key, issue.Number, f.Remote())
		}
		p.must(f.SetMark(t.Context(), issue.Number, forge.Mark{Nonce: "n", Login: "bot"}))
		base, _, err := f.Base(t.Context(), "")
		if want := map[bool]string{true: "other", false: "main"}[path == tree]; err != nil || base != want {
			t.Errorf("%s: base %s, %v", path, base, err)
		}
	}
	p.branch("work", "main", map[string]string{"text": "y\n"})
	_, err := p.open().Propose(t.Context(), forge.Change{Title: "y", Head: "work", Base: "main"})
	p.must(err)
	if names := ran(); len(names) != 0 {
		t.Errorf("hooks ran: %v", names)
	}
	if read(t, filepath.Join(p.dir, ".git", "index")) != index || read(t, filepath.Join(p.dir, "text")) != "not committed\n" {
		t.Error("index or work tree were touched")
	}
}

func TestOpenAndBase(t *testing.T) {
	t.Parallel()
	p := repository(t, false)
	if _, err := local.Open(t.Context(), p.git, t.TempDir()); !errors.Is(err, git.ErrNotRepository) {
		t.Errorf("not a repository: %v", err)
	}
	f := p.open()
	p.run("switch", "--quiet", "--detach")
	if _, _, err := f.Base(t.Context(), ""); !errors.Is(err, forge.ErrDetached) {
		t.Errorf("detached: %v", err)
	}
	if name, _, err := f.Base(t.Context(), "main"); err != nil || name != "main" {
		t.Errorf("named while detached: %s, %v", name, err)
	}
	p.run("switch", "--quiet", "--orphan", "unborn")
	if _, _, err := f.Base(t.Context(), ""); !errors.Is(err, forge.ErrEmpty) {
		t.Errorf("unborn: %v", err)
	}
}

// A lock that a killed git left is named, and nothing waits for it for ever.
func TestLockLeftBehind(t *testing.T) {
	t.Parallel()
	p := repository(t, true)
	f := p.open()
	i, err := f.NewIssue(t.Context(), "x", "", nil, "")
	p.must(err)
	lock := filepath.Join(p.dir, "refs", "interlock", "issues", "1.lock")
	write(t, lock, "")
	if _, err := f.CloseIssue(t.Context(), i.Number); !errors.Is(err, git.ErrLocked) || !strings.Contains(err.Error(), "1.lock") {
		t.Errorf("close: %v", err)
	}
	if got, err := f.Issue(t.Context(), i.Number); err != nil || got.State != "open" {
		t.Errorf("%+v, %v", got, err)
	}
	p.must(os.Remove(lock))
	_, err = f.CloseIssue(t.Context(), i.Number)
	p.must(err)
}

func FuzzDecode(f *testing.F) {
	p := repository(f, true)
	forgeOf := p.open()
	i, err := forgeOf.NewIssue(f.Context(), "x", "", []string{"a"}, "")
	p.must(err)
	f.Add(blob(p, fmt.Sprintf("refs/interlock/issues/%d:issue.json", i.Number)))
	f.Add(`{"format":1,"issue":{"number":1,"state":"open","title":"x"}}`)
	f.Fuzz(func(t *testing.T, text string) { local.CheckIssue(text) })
}
