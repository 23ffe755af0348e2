package toolchain_test

import (
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"interlock/internal/sandbox"
	"interlock/internal/toolchain"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestEnvIsAnAllowList(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, home+"/.config/go/env", "GOPRIVATE=example.org\nGONOSUMDB=file\nSECRET=x\n")
	must(t, os.MkdirAll(home+"/go/pkg/mod", 0o700))
	room := sandbox.Room{Root: "/s/room"}
	env := toolchain.Env([]string{
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
	env = toolchain.Env([]string{"PATH=/a:/usr/bin"}, sandbox.None, room, "/tools")
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
		mounts, path := toolchain.Find(t.Context(), env)
		mounted := slices.Contains(mounts, sandbox.Mount{Source: file, Target: file})
		passed := slices.Contains(toolchain.Env(env, sandbox.Full, sandbox.Room{}, path), "SSL_CERT_FILE="+file)
		if mounted != c.shown || passed != c.shown {
			t.Errorf("%s: mounted %v, passed %v", name, mounted, passed)
		}
	}
}
