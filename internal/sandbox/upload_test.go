package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"interlock/internal/sandbox"
)

// git runs the real git in a closed environment and its own process group; on a time-out the
// whole group is killed, as the engine does it.
func git(t *testing.T, limit time.Duration, dir string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@localhost", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@localhost"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func mustGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := git(t, time.Minute, dir, args...)
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(out)
}

// repo makes a repository with one commit that holds the text.
func repo(t *testing.T, dir, text string) string {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o700))
	mustGit(t, dir, "init", "-q", "-b", "main")
	write(t, filepath.Join(dir, "file"), text)
	mustGit(t, dir, "add", ".")
	mustGit(t, dir, "commit", "-q", "-m", text)
	return mustGit(t, dir, "rev-parse", "HEAD")
}

// imports is the receiving side, and a workspace to fetch from through the sandbox.
type imports struct {
	t                *testing.T
	tree, into       string
	foreign, command string
	head, foreignTip string
}

func newImports(t *testing.T) *imports {
	t.Helper()
	needFull(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	base := t.TempDir()
	i := &imports{t: t, tree: filepath.Join(base, "it's a tree"), into: filepath.Join(base, "into"), foreign: filepath.Join(base, "foreign")}
	i.head = repo(t, i.tree, "work of the agent")
	i.foreignTip = repo(t, i.foreign, "secret-of-foreign")
	write(t, filepath.Join(base, "secret"), "# pack-refs with: peeled fully-peeled sorted\nsecret-of-a-file\n")
	mustGit(t, base, "init", "-q", "--bare", i.into)
	var err error
	i.command, err = sandbox.UploadPack(sandbox.Policy{
		Level: sandbox.Full, Mounts: []sandbox.Mount{{Source: i.tree, Target: sandbox.WorkspaceInside, Write: true}},
	}, filepath.Join(base, "spec"))
	must(t, err)
	if st, err := os.Stat(filepath.Join(base, "spec")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("policy file: %v %v", st, err)
	}
	return i
}

// fetch imports HEAD and a ref, and fails when anything foreign came along or was printed.
func (i *imports) fetch(limit time.Duration, upload string, refs ...string) (string, error) {
	i.t.Helper()
	args := append([]string{"-c", "protocol.allow=always", "fetch", "--no-tags", "--upload-pack=" + upload, "file:///workspace/.git"}, refs...)
	out, err := git(i.t, limit, i.into, args...)
	if strings.Contains(out, "secret-of") {
		i.t.Errorf("foreign content was printed:\n%s", out)
	}
	if got, gerr := git(i.t, time.Minute, i.into, "cat-file", "-t", i.foreignTip); gerr == nil {
		i.t.Errorf("a foreign commit came in: %s", got)
	}
	return out, err
}

func TestUploadPackServesAWorkspace(t *testing.T) {
	t.Parallel()
	i := newImports(t)
	out, err := i.fetch(time.Minute, i.command, "HEAD:refs/import/1")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := mustGit(t, i.into, "rev-parse", "refs/import/1"); got != i.head {
		t.Errorf("got %s, want %s", got, i.head)
	}
}

func TestUploadPackOfTraps(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(i *imports, gitDir string){
		"gitfile": func(i *imports, gitDir string) {
			must(i.t, os.RemoveAll(gitDir))
			write(i.t, gitDir, "gitdir: "+i.foreign+"/.git\n")
		},
		"symlink": func(i *imports, gitDir string) {
			must(i.t, os.RemoveAll(gitDir))
			must(i.t, os.Symlink(i.foreign+"/.git", gitDir))
		},
		"commondir": func(i *imports, gitDir string) { write(i.t, gitDir+"/commondir", i.foreign+"/.git\n") },
		"alternates": func(i *imports, gitDir string) {
			write(i.t, gitDir+"/objects/info/alternates", i.foreign+"/.git/objects\n")
			write(i.t, gitDir+"/refs/heads/main", i.foreignTip+"\n")
		},
		"packed-refs": func(i *imports, gitDir string) {
			must(i.t, os.Symlink(filepath.Dir(i.foreign)+"/secret", gitDir+"/packed-refs"))
		},
		"objects": func(i *imports, gitDir string) {
			must(i.t, os.RemoveAll(gitDir+"/objects"))
			must(i.t, os.Symlink(i.foreign+"/.git/objects", gitDir+"/objects"))
			write(i.t, gitDir+"/refs/heads/main", i.foreignTip+"\n")
		},
		"include": func(i *imports, gitDir string) {
			write(i.t, gitDir+"/config", "[core]\nrepositoryformatversion = 0\n[include]\npath = "+filepath.Dir(i.foreign)+"/secret\n")
		},
		"hook": func(i *imports, gitDir string) {
			write(i.t, gitDir+"/config", "[core]\nrepositoryformatversion = 0\nfsmonitor = \"touch "+i.foreign+"/ran\"\n"+
				"[uploadpack]\npackObjectsHook = \"touch "+i.foreign+"/ran; touch /workspace/ran;\"\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newImports(t)
			set(i, filepath.Join(i.tree, ".git"))
			out, err := i.fetch(time.Minute, i.command, "+refs/heads/*:refs/import/*", "HEAD:refs/import/head")
			t.Logf("%v\n%s", err, out)
			for _, file := range []string{i.foreign + "/ran", i.tree + "/ran"} {
				if _, err := os.Stat(file); err == nil {
					t.Errorf("something ran: %s", file)
				}
			}
		})
	}
}

func TestUploadPackOfFIFO(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"config", "HEAD", "packed-refs"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newImports(t)
			path := filepath.Join(i.tree, ".git", name)
			if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			must(t, syscall.Mkfifo(path, 0o600))
			began := time.Now()
			_, err := i.fetch(time.Second, i.command, "HEAD:refs/import/1")
			if err == nil || time.Since(began) > 20*time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			eventually(t, "the confined side is gone as well", func() bool { return len(marked(filepath.Dir(i.tree))) == 0 })
		})
	}
}

func TestUploadPackHasNothingElse(t *testing.T) {
	t.Parallel()
	needFull(t)
	base := t.TempDir()
	write(t, base+"/tree/f", "")
	home := write(t, base+"/home/token", "secret-of-home")
	command, err := sandbox.UploadPack(sandbox.Policy{
		Level: sandbox.Full, Home: filepath.Dir(home), Temp: filepath.Dir(home), Network: "host",
		Mounts: []sandbox.Mount{{Source: base + "/tree", Target: sandbox.WorkspaceInside, Write: true}},
		Argv:   []string{"/bin/sh", "-c", `echo got "$@"; ls -A /tmp /home/agent; touch /workspace/x && echo wrote; touch /tmp/x && echo temp; ls /sys/class/net /proc/self/fd; cat /proc/net/dev`, "sh"},
	}, base+"/spec")
	must(t, err)
	out, err := exec.Command("/bin/sh", "-c", command+" '/workspace/it'\\''s'").CombinedOutput()
	must(t, err)
	text := string(out)
	if !strings.HasPrefix(text, "got /workspace/it's\n") || !strings.Contains(text, "temp\n") {
		t.Errorf("got %s", text)
	}
	for _, bad := range []string{"token", "wrote", "eth0"} {
		if strings.Contains(text, bad) {
			t.Errorf("%s: %s", bad, text)
		}
	}
	if n := strings.Count(text, ":"); n > 12 {
		t.Errorf("more than the loopback device is there: %s", text)
	}
	if !strings.Contains(text, "0\n1\n2\n3\n") || strings.Contains(text, "3\n4\n") {
		t.Errorf("descriptors: %s", text)
	}
}

func TestUploadPackAtLevelNone(t *testing.T) {
	t.Parallel()
	i := newImports(t)
	command, err := sandbox.UploadPack(sandbox.Policy{Level: sandbox.None, Network: "host"}, filepath.Join(t.TempDir(), "spec"))
	must(t, err)
	mustGit(t, i.into, "fetch", "-q", "--upload-pack="+command, "file://"+i.tree+"/.git", "HEAD:refs/import/1")
	if got := mustGit(t, i.into, "rev-parse", "refs/import/1"); got != i.head {
		t.Error(got)
	}
	if _, err := sandbox.UploadPack(sandbox.Policy{Level: "most"}, filepath.Join(t.TempDir(), "spec")); err == nil {
		t.Error(fmt.Errorf("an unknown level was accepted"))
	}
}
