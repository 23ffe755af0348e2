package sandbox_test

import (
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"interlock/internal/sandbox"
)

func itoa(n int) string { return strconv.Itoa(n) }

func atou(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 64)
	must(t, err)
	return n
}

func TestBaseEnvIsAnAllowList(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, home+"/.config/go/env", "GOPRIVATE=example.org\nGONOSUMDB=file\nSECRET=x\n")
	must(t, os.MkdirAll(home+"/go/pkg/mod", 0o700))
	room := sandbox.Room{Root: "/s/room"}
	env := sandbox.BaseEnv([]string{
		"HOME=" + home, "PATH=/a:/usr/bin", "USER=operator", "TERM=xterm", "TZ=UTC", "GITHUB_TOKEN=t", "SSH_AUTH_SOCK=/run/agent", "LD_PRELOAD=/x.so",
		"GOPROXY=https://user:token@proxy.example.org/a?key=token,https://:pw@b.example.org|direct", "GONOSUMDB=variable", "GOFLAGS=-mod=mod",
		"http_proxy=http://user:pa@ss@proxy:3128", "https_proxy=user:pass@proxy:3128", "HTTPS_PROXY=http://user:pass@proxy:3128", "no_proxy=localhost",
		"SSL_CERT_FILE=/nonexistent/ca.pem", "LC_ALL=C",
	}, sandbox.Full, room, "/tools:/usr/bin")
	want := []string{
		"GIT_AUTHOR_EMAIL=agent@localhost", "GIT_AUTHOR_NAME=Interlock agent", "GIT_COMMITTER_EMAIL=agent@localhost", "GIT_COMMITTER_NAME=Interlock agent",
		"GOFLAGS=-mod=mod", "GOMODCACHE=" + home + "/go/pkg/mod", "GONOSUMDB=variable", "GOPRIVATE=example.org",
		"GOPROXY=https://proxy.example.org/a,https://b.example.org|direct", "HOME=/home/agent", "HTTPS_PROXY=http://proxy:3128", "LANG=C.UTF-8", "LC_ALL=C",
		"PATH=/interlock/bin:/tools:/usr/bin", "SHELL=/bin/sh", "TERM=dumb", "TMPDIR=/tmp", "TZ=UTC", "USER=agent", "no_proxy=localhost",
	}
	if d := cmp.Diff(want, env); d != "" {
		t.Error(d)
	}
	env = sandbox.BaseEnv([]string{"PATH=/a:/usr/bin"}, sandbox.None, room, "/tools")
	for _, e := range []string{"PATH=/a:/usr/bin", "HOME=/s/room/home", "TMPDIR=/s/room/tmp"} {
		if !slices.Contains(env, e) {
			t.Errorf("level none lacks %s: %q", e, env)
		}
	}
}

func TestCertificatesAreShownKeysAreNot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	block := func(kind string) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte("x")}))
	}
	for name, c := range map[string]struct {
		text  string
		shown bool
	}{
		"ca": {block("CERTIFICATE"), true}, "both": {block("CERTIFICATE") + block("PRIVATE KEY"), false},
		"key": {block("EC PRIVATE KEY") + block("CERTIFICATE"), false}, "text": {"token", false},
	} {
		file := write(t, filepath.Join(dir, name), c.text)
		env := []string{"PATH=/usr/bin", "HOME=/nonexistent", "SSL_CERT_FILE=" + file}
		mounts, path := sandbox.Toolchains(t.Context(), env)
		mounted := slices.Contains(mounts, sandbox.Mount{Source: file, Target: file})
		passed := slices.Contains(sandbox.BaseEnv(env, sandbox.Full, sandbox.Room{}, path), "SSL_CERT_FILE="+file)
		if mounted != c.shown || passed != c.shown {
			t.Errorf("%s: mounted %v, passed %v", name, mounted, passed)
		}
	}
}

// The tool chains of this machine must work inside, on a PATH of which every directory is there.
func TestToolchainsWorkInside(t *testing.T) {
	t.Parallel()
	f := needFull(t)
	mounts, path := sandbox.Toolchains(t.Context(), os.Environ())
	for _, m := range mounts {
		if m.Write {
			t.Errorf("%s is writable", m.Target)
		}
		if home, err := os.UserHomeDir(); err == nil && (m.Source == home || strings.HasPrefix(m.Source, home+"/.ssh") || m.Source == filepath.Join(home, ".cargo")) {
			t.Errorf("%s is shown", m.Source)
		}
	}
	script := "IFS=:; for d in $PATH; do test -d $d || echo missing $d; done; which interlock;"
	var tools []string
	for tool, verb := range map[string]string{"go": "version", "node": "--version", "cargo": "--version", "python3": "--version"} {
		if out, err := exec.Command(tool, verb).CombinedOutput(); err != nil { // a shim without a tool chain, for example
			t.Logf("%s is left out, it does not work outside either: %v %.200s", tool, err, out)
			continue
		}
		tools = append(tools, tool)
		script += tool + " " + verb + " >/dev/null && echo works " + tool + ";"
	}
	p := newPlace(t, f, sandbox.Full, script)
	p.spec.Policy.Tools = mounts
	p.spec.Policy.Env = sandbox.BaseEnv(os.Environ(), sandbox.Full, p.room, path)
	_, out := p.run()
	if strings.Contains(out, "missing") || strings.Count(out, "works") != len(tools) || !strings.Contains(out, "/interlock/bin/interlock") {
		t.Errorf("tools %v:\n%s", tools, out)
	}
}

func TestSingleFilesAndSymlinkedSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := write(t, dir+"/real/agent.sh", "#!/bin/sh\necho the file runs\n")
	must(t, os.Chmod(file, 0o700))
	must(t, os.Symlink("real", dir+"/link"))
	out := confined(t, "/interlock/agent/agent.sh; ls /interlock/dir; echo x >> /interlock/state && cat /interlock/state; echo x >> /interlock/agent/agent.sh",
		sandbox.Mount{Source: dir + "/link/agent.sh", Target: "/interlock/agent/agent.sh"},
		sandbox.Mount{Source: dir + "/link", Target: "/interlock/dir"},
		sandbox.Mount{Source: write(t, dir+"/state", "kept\n"), Target: "/interlock/state", Write: true})
	if !strings.Contains(out, "the file runs\nagent.sh\nkept\nx\n") || !strings.Contains(out, "Read-only") {
		t.Errorf("got %s", out)
	}
}
