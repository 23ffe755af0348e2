// Package toolchain finds what of the operator's machine a session needs beside the system: tool
// chains to be shown read-only, and the variables that lead to them. It never shows a home as a
// whole, nor what is known to hold secrets, and never passes a credential.
package toolchain

import (
	"bytes"
	"context"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"interlock/internal/sandbox"
	"interlock/internal/sandbox/confine"
)

// neverDirs are never shown, nor is a directory that holds one of them.
var neverDirs = []string{"/proc", "/sys", "/dev", "/run", "/var", "/etc", "/boot", "/home", "/root", "/tmp", "/opt", "/srv", "/mnt"}

// secretDirs hold secrets in a person's home: neither they nor anything below them is shown.
var secretDirs = []string{".ssh", ".gnupg", ".config", ".aws", ".azure", ".kube", ".docker", ".password-store", ".mozilla", ".local/state", ".local/share/keyrings"}

// wholeFamilies are version managers in a home whose trees are shown as a whole: PATH names only
// a part of what their programs need.
var wholeFamilies = []string{".pyenv", ".rustup", ".nvm/versions", ".sdkman/candidates", ".asdf/installs", ".asdf/shims", ".local/share/mise/installs", ".volta/tools", ".volta/bin", ".rbenv", ".local/share/fnm"}

// besideBin are the directories that programs of a bin directory commonly need beside it.
var besideBin = []string{"lib", "lib64", "libexec"}

// tools collects what of the operator's tool chains a tree may see.
type tools struct {
	env    map[string]string
	home   string
	mounts []sandbox.Mount
	path   []string
}

// Find finds the operator's tool chains by the given environment: what to mount read-only
// (the Go module cache and certificate files included), and the PATH that names only directories
// seen inside. The home itself, and directories known to hold secrets, are never among them.
func Find(ctx context.Context, env []string) (mounts []sandbox.Mount, path string) {
	t := &tools{env: envMap(env)}
	t.home = filepath.Clean(t.env["HOME"])
	dirs := filepath.SplitList(t.env["PATH"])
	goRoot, modCache := t.goDirs(ctx, env)
	for _, dir := range []string{goRoot, modCache} {
		t.show(dir)
	}
	for _, dir := range dirs {
		t.addPath(dir)
	}
	if goRoot != "" && goRoot != "." {
		t.addPath(filepath.Join(goRoot, "bin"))
	}
	for _, dir := range []string{"/usr/local/bin", "/usr/bin", "/bin"} {
		t.addPath(dir)
	}
	for _, name := range certificateVars {
		if file := t.env[name]; file != "" && certificateShown(file) && !isSystem(file) {
			t.mount(file)
		}
	}
	return t.mounts, strings.Join(t.path, string(filepath.ListSeparator))
}

// goDirs asks the operator's go, in a directory without a module, and falls back to where it is
// when it does not answer.
func (t *tools) goDirs(ctx context.Context, env []string) (root, modCache string) {
	program, err := confine.LookPath([]string{"go"}, env)
	if err != nil {
		return "", ""
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "env", "GOROOT", "GOMODCACHE")
	cmd.Env, cmd.Dir, cmd.WaitDelay = env, "/", time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out capped
	cmd.Stdout = &out
	if cmd.Run() == nil {
		if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) == 2 {
			return lines[0], lines[1]
		}
	}
	if real, err := filepath.EvalSymlinks(program); err == nil {
		root = filepath.Dir(filepath.Dir(real))
	}
	return root, goModCache(t.env)
}

// capped keeps the first 4 KiB.
type capped struct{ bytes.Buffer }

func (c *capped) Write(p []byte) (int, error) {
	c.Buffer.Write(p[:min(len(p), max(0, 4096-c.Len()))])
	return len(p), nil
}

// goModCache is where Go keeps modules when nothing but the environment says so.
func goModCache(env map[string]string) string {
	if dir := env["GOMODCACHE"]; dir != "" {
		return dir
	}
	if list := filepath.SplitList(env["GOPATH"]); len(list) > 0 {
		return filepath.Join(list[0], "pkg", "mod")
	}
	return filepath.Join(env["HOME"], "go", "pkg", "mod")
}

// addPath adds a directory to PATH, with what its programs need.
func (t *tools) addPath(dir string) {
	dir = filepath.Clean(dir)
	if slices.Contains(t.path, dir) || !t.show(dir) {
		return
	}
	t.path = append(t.path, dir)
	if isSystem(dir) {
		return
	}
	if family := t.family(dir); family != "" {
		t.show(family)
		return
	}
	if name := filepath.Base(dir); name == "bin" || name == "sbin" {
		for _, sibling := range besideBin {
			t.show(filepath.Join(filepath.Dir(dir), sibling))
		}
	}
	if t.home != "" && dir == filepath.Join(t.home, ".cargo", "bin") {
		t.show(t.rustup())
	}
	t.linked(dir)
}

// family is the version manager's directory that holds dir, or the package's below /opt.
func (t *tools) family(dir string) string {
	if rel, ok := sandbox.Below("/opt", dir); ok && rel != "." {
		return filepath.Join("/opt", strings.Split(rel, "/")[0])
	}
	for _, f := range wholeFamilies {
		whole := filepath.Join(t.home, f)
		if _, ok := sandbox.Below(whole, dir); ok && t.home != "" {
			return whole
		}
	}
	return ""
}

func (t *tools) rustup() string {
	if dir := t.env["RUSTUP_HOME"]; dir != "" {
		return dir
	}
	return filepath.Join(t.home, ".rustup")
}

// linked shows the programs that symbolic links of a PATH directory lead to, as single files.
func (t *tools) linked(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries[:min(len(entries), 256)] {
		if e.Type()&os.ModeSymlink == 0 {
			continue
		}
		link, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			continue
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(dir, link)
		}
		st, err := os.Stat(link)
		if err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 && !isSystem(link) && t.allowed(link) {
			t.mount(link)
		}
	}
}

// show makes a directory visible; false when it is not there or must not be seen.
func (t *tools) show(dir string) bool {
	if !filepath.IsAbs(dir) {
		return false
	}
	st, err := os.Stat(dir)
	if err != nil || !st.IsDir() {
		return false
	}
	if isSystem(dir) {
		return true
	}
	if !t.allowed(dir) {
		return false
	}
	t.mount(dir)
	return true
}

// allowed judges a path by its name and by where it really is.
func (t *tools) allowed(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	home := t.home
	if r, err := filepath.EvalSymlinks(home); err == nil {
		home = r
	}
	return t.harmless(filepath.Clean(path), t.home) && t.harmless(real, home)
}

func (t *tools) harmless(path, home string) bool {
	never := append([]string{}, neverDirs...)
	if filepath.IsAbs(home) {
		never = append(never, home)
		for _, s := range secretDirs {
			secret := filepath.Join(home, s)
			if _, ok := sandbox.Below(secret, path); ok {
				return false
			}
			never = append(never, secret)
		}
	}
	for _, dir := range never {
		if _, holds := sandbox.Below(path, dir); holds {
			return false
		}
	}
	for _, dir := range []string{"/proc", "/sys", "/dev", "/run", "/etc"} {
		if _, ok := sandbox.Below(dir, path); ok {
			return false
		}
	}
	return true
}

// mount adds a path at its own place, once, unless a mount shows it already.
func (t *tools) mount(path string) {
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return
	}
	for _, m := range t.mounts {
		if rel, ok := sandbox.Below(m.Target, path); ok && filepath.Join(m.Source, rel) == real {
			return
		}
	}
	t.mounts = append(t.mounts, sandbox.Mount{Source: real, Target: path})
}

func isSystem(path string) bool {
	for _, dir := range sandbox.SystemDirs {
		if _, ok := sandbox.Below(dir, filepath.Clean(path)); ok {
			return true
		}
	}
	return false
}

// certificateShown says whether a certificate file or directory may be shown: it must be one,
// and must not hold a private key.
func certificateShown(path string) bool {
	st, err := os.Stat(path)
	if err != nil || !filepath.IsAbs(path) {
		return false
	}
	if st.IsDir() {
		_, ok := sandbox.Below("/etc/ssl/certs", filepath.Clean(path))
		return ok || isSystem(path)
	}
	if !st.Mode().IsRegular() || st.Size() > 4<<20 {
		return false
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	found := false
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" && block.Type != "TRUSTED CERTIFICATE" {
			return false
		}
		found = true
	}
	return found
}
