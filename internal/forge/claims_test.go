package forge_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"interlock/internal/forge"
	"interlock/internal/forgetest"
	"interlock/internal/git"
)

// remote makes a bare repository with one commit on main: all that claims need.
func remote(t *testing.T) forgetest.Fixture {
	t.Helper()
	g, err := git.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "remote.git")
	if _, err := g.Run(t.Context(), git.Command{Args: []string{"init", "--quiet", "--bare", "--initial-branch=main", dir}}); err != nil {
		t.Fatal(err)
	}
	at := g.At(dir)
	hash, err := at.WriteCommit(t.Context(), git.CommitSpec{Files: map[string][]byte{"text": []byte("base\n")}, Message: "begin\n"})
	if err != nil {
		t.Fatal(err)
	}
	if err := at.UpdateRefs(t.Context(), git.Update{Ref: "refs/heads/main", New: hash}); err != nil {
		t.Fatal(err)
	}
	return forgetest.Fixture{Git: g, Remote: dir, Base: "main", Hook: func(t testing.TB, name, script string) func() {
		file := filepath.Join(dir, "hooks", name)
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return func() { _ = os.Remove(file) }
	}}
}

func TestClaims(t *testing.T) {
	t.Parallel()
	forgetest.RunClaims(t, remote)
}

// The other side dies in the push and cannot be read afterwards: that is unknown, and said so; the
// same nonce finds out later.
func TestClaimUnknown(t *testing.T) {
	t.Parallel()
	for name, hook := range map[string]string{"pre-receive": "", "reference-transaction": "[ \"$1\" = committed ] || exit 0\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := remote(t)
			undo := f.Hook(t, name, hook+"mv \"$(git rev-parse --absolute-git-dir)\" '"+f.Remote+".away'\nkill -9 $PPID")
			repo, err := f.Git.Engine(t.Context(), filepath.Join(t.TempDir(), "engine.git"))
			if err != nil {
				t.Fatal(err)
			}
			c := &forge.Claims{Repo: repo, Remote: f.Remote, Installation: "here"} // Git is found
			_, err = c.Take(t.Context(), 1, "nonce", "host")
			if !errors.Is(err, forge.ErrUnknown) {
				t.Fatalf("take: %v", err)
			}
			if err := os.Rename(f.Remote+".away", f.Remote); err != nil {
				t.Fatal(err)
			}
			undo()
			cl, err := c.Take(t.Context(), 1, "nonce", "host")
			if err != nil || cl.Nonce != "nonce" {
				t.Errorf("take again: %+v, %v", cl, err)
			}
		})
	}
}

// A remote that is not there is an error, and nothing that may have happened.
func TestClaimNoRemote(t *testing.T) {
	t.Parallel()
	f := remote(t)
	repo, err := f.Git.Engine(t.Context(), filepath.Join(t.TempDir(), "engine.git"))
	if err != nil {
		t.Fatal(err)
	}
	c := &forge.Claims{Repo: repo, Remote: f.Remote + ".gone", Installation: "here", Git: f.Git}
	if _, err := c.Take(t.Context(), 1, "nonce", "host"); err == nil || errors.Is(err, forge.ErrUnknown) {
		t.Errorf("take: %v", err)
	}
	if _, _, err := c.Read(t.Context(), 1); err == nil {
		t.Error("read succeeds")
	}
}

func TestErrorsSayWho(t *testing.T) {
	t.Parallel()
	cl := forge.Claim{Issue: 4, Holder: "host 1", Nonce: "n"}
	if text := (&forge.HeldError{Issue: 4, Claim: cl}).Error(); text != "issue 4 is claimed by host 1" {
		t.Error(text)
	}
	cl.Holder, cl.Installation = "", "abc"
	if text := (&forge.HeldError{Issue: 4, Claim: cl}).Error(); text != "issue 4 is claimed by installation abc" {
		t.Error(text)
	}
	if text := (&forge.LostError{Issue: 4, Why: "gone"}).Error(); !strings.HasSuffix(text, "gone") || !strings.HasPrefix(text, "issue 4: ") {
		t.Error(text)
	}
}
