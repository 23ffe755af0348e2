package toolchain

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"interlock/internal/sandbox"
)

// passedVars are the operator's variables that every tree gets, as they are but for credentials
// in URLs. Nothing else is passed.
var passedVars = []string{
	"LANG", "LC_ALL", "TZ", "GOSUMDB", "GONOSUMDB", "GONOPROXY", "GOPRIVATE", "GOINSECURE",
	"GOTOOLCHAIN", "GOFLAGS", "GOPROXY", "http_proxy", "https_proxy", "no_proxy",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
}

// certificateVars name files; they are passed only when the file is seen inside.
var certificateVars = []string{"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"}

// placeVars name directories of tool chains; they are passed only when the directory is there.
var placeVars = map[string]string{"GOROOT": "", "RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv"}

// userInfo matches user and password in the URLs of a list; query the part that may hold a token.
var (
	userInfo = regexp.MustCompile(`//[^/@,|\s]*@`)
	query    = regexp.MustCompile(`\?[^,|\s]*`)
)

// Env is the environment of a tree: an allow-list of the operator's variables, and what the
// room decides. path is what Find returned; at level None the operator's own PATH stays.
// What go env -w has set counts like a variable. Credentials in URLs are taken out.
func Env(operator []string, level sandbox.Level, room sandbox.Room, path string) []string {
	op := goEnvFile(envMap(operator))
	out := map[string]string{
		"PATH": op["PATH"], "HOME": room.Home(), "TMPDIR": room.Temp(),
		"TERM": "dumb", "USER": "agent", "SHELL": "/bin/sh",
		"GIT_AUTHOR_NAME": "Interlock agent", "GIT_AUTHOR_EMAIL": "agent@localhost",
		"GIT_COMMITTER_NAME": "Interlock agent", "GIT_COMMITTER_EMAIL": "agent@localhost",
	}
	if level == sandbox.Full {
		out["PATH"] = filepath.Dir(sandbox.BinaryInside) + ":" + path
		out["HOME"], out["TMPDIR"] = sandbox.HomeInside, sandbox.TempInside
	}
	if level == sandbox.Landlock {
		out["PATH"] = path               // of the operator's only what can be read
		out["GIT_CONFIG_NOSYSTEM"] = "1" // git would see /etc/gitconfig, and fail to open it
	}
	for _, name := range passedVars {
		if v := withoutCredentials(name, op[name]); v != "" {
			out[name] = v
		}
	}
	if out["LANG"] == "" {
		out["LANG"] = "C.UTF-8"
	}
	for _, name := range certificateVars {
		if v := op[name]; v != "" && (level == sandbox.None || certificateShown(v)) {
			out[name] = v
		}
	}
	for name, dir := range toolPlaces(op) {
		out[name] = dir
	}
	env := make([]string, 0, len(out))
	for _, name := range slices.Sorted(maps.Keys(out)) {
		env = append(env, name+"="+out[name])
	}
	return env
}

// toolPlaces are the variables without which tool chains would look in the room's home.
func toolPlaces(op map[string]string) map[string]string {
	t := &tools{env: op, home: filepath.Clean(op["HOME"])}
	out := map[string]string{}
	for name, usual := range placeVars {
		dir := op[name]
		if dir == "" && usual != "" && op["HOME"] != "" {
			dir = filepath.Join(op["HOME"], usual)
		}
		if dir != "" && t.show(dir) {
			out[name] = dir
		}
	}
	if dir := goModCache(op); t.show(dir) {
		out["GOMODCACHE"] = dir
	}
	return out
}

// withoutCredentials takes user, password and query out of the URLs of a value. A proxy in which
// something like a user is still left after that is not passed at all.
func withoutCredentials(name, value string) string {
	value = userInfo.ReplaceAllString(value, "//")
	if strings.HasSuffix(strings.ToLower(name), "proxy") {
		value = query.ReplaceAllString(value, "")
		if strings.Contains(value, "@") {
			return ""
		}
	}
	return value
}

// goEnvFile adds what the file of go env -w sets for Go's variables and the environment does not.
func goEnvFile(env map[string]string) map[string]string {
	path := env["GOENV"]
	if path == "" {
		base := env["XDG_CONFIG_HOME"]
		if base == "" {
			base = filepath.Join(env["HOME"], ".config")
		}
		path = filepath.Join(base, "go", "env")
	}
	if path == "off" || !filepath.IsAbs(path) {
		return env
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return env
	}
	for line := range strings.Lines(string(b)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if _, set := env[name]; ok && !set && strings.HasPrefix(name, "GO") {
			env[name] = value
		}
	}
	return env
}

// envMap is the environment by name; the last value of a name counts.
func envMap(env []string) map[string]string {
	out := make(map[string]string, len(env))
	for _, e := range env {
		if name, value, ok := strings.Cut(e, "="); ok {
			out[name] = value
		}
	}
	return out
}
