package detect_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"interlock/internal/detect"
)

// place makes a directory with these files.
func place(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestChecks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		files map[string]string
		want  []string
	}{
		{nil, nil},
		{map[string]string{"go.mod": "module x"}, []string{"go test ./..."}},
		{map[string]string{"go.mod": "module x", "Makefile": "check:\n\ttrue\n"}, []string{"go test ./..."}},
		{map[string]string{"package.json": `{"scripts":{"test":"jest"}}`}, []string{"npm test"}},
		{map[string]string{"package.json": `{"scripts":{"test":"jest"},"devDependencies":{"jest":"1"}}`}, []string{"npm install && npm test"}},
		{map[string]string{"package.json": `{"scripts":{"test":"jest"}}`, "package-lock.json": "{}"}, []string{"npm ci && npm test"}},
		{map[string]string{"package.json": `{"scripts":{"test":"jest"}}`, "pnpm-lock.yaml": ""}, []string{"pnpm install --frozen-lockfile && pnpm test"}},
		{map[string]string{"package.json": `{"scripts":{"test":"jest"}}`, "yarn.lock": ""}, []string{"yarn install --frozen-lockfile && yarn test"}},
		{map[string]string{"package.json": `{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}`}, nil},
		{map[string]string{"package.json": `{"scripts":{}}`}, nil},
		{map[string]string{"package.json": `{"scripts":`}, nil},
		{map[string]string{"package.json": `{"scripts":{"test":7}}`}, nil},
		{map[string]string{"Cargo.toml": "[package]"}, []string{"cargo test"}},
		{map[string]string{"pyproject.toml": "[tool.pytest.ini_options]"}, []string{"python3 -m pytest"}},
		{map[string]string{"pyproject.toml": "[project]"}, nil},
		{map[string]string{"pytest.ini": ""}, []string{"python3 -m pytest"}},
		{map[string]string{"tests/conftest.py": ""}, []string{"python3 -m pytest"}},
		{map[string]string{"setup.cfg": "[tool:pytest]\n"}, []string{"python3 -m pytest"}},
		{map[string]string{"Makefile": "all:\n\ttrue\ncheck: all\n\ttrue\ntest:\n"}, []string{"make check"}},
		{map[string]string{"Makefile": "test :\n\ttrue\n"}, []string{"make test"}},
		{map[string]string{"Makefile": "test:\n"}, []string{"make test"}},
		{map[string]string{"Makefile": "check := 1\ntest:=2\nchecks:\n"}, nil}, // variables, another target
		{map[string]string{"GNUmakefile": "all:\n", "Makefile": "check:\n"}, nil},
		{map[string]string{"go.mod": "", "Cargo.toml": ""}, []string{"go test ./...", "cargo test"}},
	} {
		var got []string
		for _, f := range detect.Checks(place(t, c.files)) {
			got = append(got, f.Value)
			if f.Why == "" {
				t.Errorf("%v: %s is proposed without a reason", c.files, f.Value)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.files, diff)
		}
	}
}

// TestNothingIsFollowed: what a hostile tree puts in the place of a file is not read and does not
// make anybody wait.
func TestNothingIsFollowed(t *testing.T) {
	t.Parallel()
	outside := place(t, map[string]string{"package.json": `{"scripts":{"test":"x"}}`, "go.mod": ""})
	dir := t.TempDir()
	for _, name := range []string{"package.json", "go.mod"} {
		if err := os.Symlink(filepath.Join(outside, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"Makefile", "pyproject.toml"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "Cargo.toml"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := detect.Checks(dir); got != nil {
		t.Errorf("proposed: %v", got)
	}
}

func TestBase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		head, branches, want string
	}{
		{"main", "main", "main"}, {"master", "main master", "master"}, {"dev", "dev", "dev"}, {"interlock/issue-1", "main interlock/issue-1", "main"},
		{"", "master x", "master"}, {"", "x", ""}, {"new", "", "new"},
	} {
		if got := detect.Base(c.head, strings.Fields(c.branches)); got.Value != c.want || (got.Value != "") != (got.Why != "") {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

func TestAgents(t *testing.T) {
	t.Parallel()
	dir := place(t, map[string]string{"codex": "", "claude": "", "vim": "", "pi/x": ""})
	for _, name := range []string{"claude", "vim"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	want := []detect.Finding{{Value: "claude", Why: filepath.Join(dir, "claude")}}
	if diff := cmp.Diff(want, detect.Agents("relative:/nonexistent:"+dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
