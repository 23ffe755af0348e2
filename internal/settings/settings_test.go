package settings_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"interlock/internal/forge/local"
	"interlock/internal/git"
	"interlock/internal/policy"
	"interlock/internal/settings"
)

// place is a repository with one commit on main.
type place struct {
	*testing.T
	dir string
}

func newPlace(t *testing.T) place {
	t.Helper()
	p := place{t, t.TempDir()}
	p.git("init", "-q", "-b", "main")
	p.git("commit", "-q", "--allow-empty", "-m", "first")
	return p
}

func (p place) git(args ...string) {
	p.Helper()
	cmd := exec.Command("git", append([]string{"-C", p.dir, "-c", "user.name=T", "-c", "user.email=t@localhost"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		p.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

// commit puts a configuration onto the branch that is checked out.
func (p place) commit(text string) {
	p.Helper()
	if err := os.MkdirAll(filepath.Join(p.dir, ".interlock"), 0o700); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, policy.Path), []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "configure")
}

func (p place) repository() settings.Repository {
	p.Helper()
	g, err := git.Find(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	f, err := local.Open(p.Context(), g, p.dir)
	if err != nil {
		p.Fatal(err)
	}
	return settings.Repository{Git: g, Forge: f, At: f.Location()}
}

// settled is what holds in the place.
func (p place) settled(own settings.Own, typed policy.Values) (*policy.Settings, error) {
	p.Helper()
	return settings.Settle(p.Context(), own, p.repository(), typed)
}

// TestBaseFile: of all files that could be read only the one that is committed on the base branch is.
func TestBaseFile(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	at := func(name, want string) {
		t.Helper()
		s, err := p.settled(settings.Own{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Of(name).At; got != want {
			t.Errorf("%s is said to come from %q, wanted is %q", name, got, want)
		}
	}
	at("lane", "")
	p.commit("lane: build\n")
	at("lane", "main:.interlock/config.yaml:1")
	if err := os.WriteFile(filepath.Join(p.dir, policy.Path), []byte("\n\nlane: propose\nsandbox: {level: none}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.git("add", "-A")
	at("lane", "main:.interlock/config.yaml:1") // neither the work tree nor the index
	p.git("checkout", "-q", "-f")
	p.git("switch", "-q", "-c", "side")
	p.commit("base: main\nlane: propose\n")
	at("base", "side:.interlock/config.yaml:1")
	at("lane", "main:.interlock/config.yaml:1")
	p.commit("base: nosuch\nlane: propose\n")
	at("lane", "side:.interlock/config.yaml:2") // the engine refuses the base
	p.git("branch", "-q", "bare", "main~1")
	p.commit("base: bare\nlane: propose\n")
	at("base", "side:.interlock/config.yaml:1")
	at("lane", "") // that branch has no file
	p.git("checkout", "-q", "--detach")
	at("lane", "")
}

// TestBaseFileRefused: what cannot be read is refused, never passed over.
func TestBaseFileRefused(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"lnae: build\n": `did you mean "lane"`,
		strings.Repeat("# x\n", policy.MaxBytes/4) + "#": "more than the 1048576 bytes",
	} {
		p := newPlace(t)
		p.commit(text)
		_, err := p.settled(settings.Own{}, nil)
		var problems policy.Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), "main:.interlock/config.yaml:1:1: ") || !strings.Contains(err.Error(), says) {
			t.Errorf("%.20q: %.200v", text, err)
		}
	}
	p := newPlace(t) // a link is no way out of the repository: its text is what is read
	if err := os.Symlink("/etc", filepath.Join(p.dir, ".interlock")); err != nil {
		t.Fatal(err)
	}
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "link")
	if s, err := p.settled(settings.Own{}, nil); err != nil || s.Of("lane").Whose != policy.Builtin {
		t.Errorf("a link in the place of the directory: %v", err)
	}
}

// TestSection: a section is found by any path that leads to the repository.
func TestSection(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	home := t.TempDir()
	if err := os.Symlink(p.dir, filepath.Join(home, "link")); err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(home, "tree")
	p.git("worktree", "add", "-q", "-b", "other", tree)
	for path, theirs := range map[string]bool{
		p.dir: true, "~/link": true, filepath.Join(p.dir, ".git"): true, p.dir + "/": true, home: false, "/nonexistent": false, "~/tree": false,
	} {
		own := settings.Own{Path: filepath.Join(t.TempDir(), "own.yaml"), Home: home, Typed: true}
		if err := os.WriteFile(own.Path, []byte("repositories:\n  "+path+":\n    lane: build\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := p.settled(own, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Of("lane").Whose == policy.Here; got != theirs {
			t.Errorf("a section for %s counts: %t", path, got)
		}
	}
}

// typed types what is proposed as it stands, but for interlock's own: a shell takes each for a
// command, and only the file is committed, whatever else is staged.
func (p place) typed(made settings.Proposal) {
	p.Helper()
	if err := made.Write(false); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "staged"), []byte("theirs\n"), 0o600); err != nil {
		p.Fatal(err)
	}
	p.git("add", "staged")
	for _, line := range made.Next {
		if strings.HasPrefix(line, "interlock ") {
			continue
		}
		if !strings.HasPrefix(line, "git ") {
			p.Errorf("%q is no command", line)
			continue
		}
		cmd := exec.Command("sh", "-c", line)
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=T", "GIT_AUTHOR_EMAIL=t@localhost", "GIT_COMMITTER_NAME=T", "GIT_COMMITTER_EMAIL=t@localhost")
		if out, err := cmd.CombinedOutput(); err != nil {
			p.Errorf("%s: %v\n%s", line, err, out)
		}
	}
	out, err := exec.Command("git", "-C", p.dir, "ls-tree", "-r", "--name-only", "HEAD").Output()
	if err != nil || string(out) != policy.Path+"\n" {
		p.Errorf("committed is %q, %v", out, err)
	}
	p.git("reset", "-q", "--hard", "HEAD~1")
}

// TestWrite: a proposal is written whole, and over nothing.
func TestWrite(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	r := p.repository()
	propose := func() (settings.Proposal, error) {
		return settings.ForRepository(t.Context(), r.Git, r.At, settings.Own{}, "")
	}
	made, err := propose()
	if err != nil {
		t.Fatal(err)
	}
	if made.Base.Value != "main" || len(made.Checks) != 0 || !strings.Contains(made.Summary(), "No check was found: write at least one into ") {
		t.Errorf("proposed: %+v", made)
	}
	p.typed(made)
	if err := made.Write(false); err != nil {
		t.Fatal(err)
	}
	if err := made.Write(false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("written over what was there: %v", err)
	}
	if err := made.Write(true); err != nil {
		t.Errorf("with force: %v", err)
	}
	left, err := os.ReadDir(filepath.Join(p.dir, ".interlock"))
	if err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := os.RemoveAll(filepath.Join(p.dir, ".interlock")); err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(p.dir, ".interlock")); err != nil {
		t.Fatal(err)
	}
	if _, err := propose(); !errors.Is(err, settings.ErrNoPlace) {
		t.Errorf("through a link: %v", err)
	}
	if _, err := settings.ForOperator(settings.Own{}, ""); !errors.Is(err, settings.ErrNoPlace) {
		t.Errorf("without a place: %v", err)
	}
}
