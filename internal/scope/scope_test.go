package scope_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"interlock/internal/scope"
)

// paths are protected by the rule, or not at all.
var paths = map[string]string{
	".github/workflows/ci.yml":       scope.RuleCI,
	".github/actions/x/action.yml":   scope.RuleCI,
	".GitHub/Workflows/ci.yml":       scope.RuleCI,
	".github/workflows":              scope.RuleCI, // a link in the directory's place
	".github":                        scope.RuleCI,
	".gitea/workflows/a.yaml":        scope.RuleCI,
	".forgejo/workflows/a.yaml":      scope.RuleCI,
	".gitlab-ci.yml":                 scope.RuleCI,
	".ci/run":                        scope.RuleCI,
	".circleci/config.yml":           scope.RuleCI,
	"Jenkinsfile":                    scope.RuleCI,
	"deploy/Jenkinsfile":             scope.RuleCI,
	"Jenkinsfile.nightly":            scope.RuleCI,
	"Jenkinsﬁle":                     scope.RuleCI, // a ligature that ext4 and APFS fold to "fi"
	"azure-pipelines.yml":            scope.RuleCI,
	"azure-pipelines-nightly.yml":    scope.RuleCI,
	".githooks/pre-commit":           scope.RuleHooks,
	"web/.husky/pre-commit":          scope.RuleHooks,
	".pre-commit-config.yaml":        scope.RuleHooks,
	".claude/settings.json":          scope.RuleAgent,
	"sub/dir/.claude/settings.json":  scope.RuleAgent,
	".claude":                        scope.RuleAgent,
	".codex/config.toml":             scope.RuleAgent,
	".opencode/x":                    scope.RuleAgent,
	"opencode.json":                  scope.RuleAgent,
	"opencode.jsonc":                 scope.RuleAgent,
	".pi/x":                          scope.RuleAgent,
	".gemini/x":                      scope.RuleAgent,
	".mcp.json":                      scope.RuleAgent,
	".cursor/rules/x.mdc":            scope.RuleAgent,
	"AGENTS.md":                      scope.RuleAgent,
	"agents.MD":                      scope.RuleAgent,
	"AGENTſ.md":                      scope.RuleAgent, // long s
	"docs/CLAUDE.md":                 scope.RuleAgent,
	"GEMINI.md":                      scope.RuleAgent,
	"CLAUDE.md.":                     scope.RuleAgent, // NTFS drops it
	"CLAUDE.md ":                     scope.RuleAgent,
	"CLAUDE.md::$DATA":               scope.RuleAgent,
	"CLA\u200cUDE.md":                scope.RuleAgent, // HFS+ ignores it
	"OPENCO~1.JSO":                   scope.RuleAgent, // short name
	".github\\workflows\\x.yml":      scope.RuleCI,
	"GITHUB~1/workflows/x.yml":       scope.RuleCI,
	".interlock/x":                   scope.RuleInterlock,
	"WORKFLOW.md":                    scope.RuleInterlock,
	".gitmodules":                    scope.RuleGitFiles,
	"sub/.gitattributes":             scope.RuleGitFiles,
	"GITMOD~1":                       scope.RuleGitFiles,
	"GI7EBA~1":                       scope.RuleGitFiles,
	"CODEOWNERS":                     scope.RuleReview,
	".github/CODEOWNERS":             scope.RuleReview,
	".git/config":                    scope.RuleGitDir,
	"a/.GIT/config":                  scope.RuleGitDir,
	".git. ./config":                 scope.RuleGitDir,
	".g\u200dit/config":              scope.RuleGitDir,
	"a/git~1/config":                 scope.RuleGitDir,
	".git::$INDEX_ALLOCATION/config": scope.RuleGitDir,
	"a\\.git\\config":                scope.RuleGitDir,
	"/etc/passwd":                    scope.RulePath,
	"../x":                           scope.RulePath,
	"a/../../x":                      scope.RulePath,
	"a/.. /x":                        scope.RulePath,
	"a//b":                           scope.RulePath,
	"a/":                             scope.RulePath,
	"./a":                            scope.RulePath,
	"a\\..\\b":                       scope.RulePath,
	"C:\\x":                          scope.RulePath,
	"\x00":                           scope.RulePath,
	"":                               scope.RulePath,
	"main.go":                        "",
	"git":                            "",
	".gitignore":                     "",
	"docs":                           "",
	"docs/workflow.md":               "",
	"testdata/.github/workflows/x":   "",
	"claude.go":                      "",
	".github/ISSUE_TEMPLATE/bug.yml": "",
	"internal/agents/agents.go":      "",
	"a~b/c~1":                        "",
	"lib/Foo::Bar.3":                 "",
	"caf\u00e9/na\u00efve.txt":       "",
	"bad\xffutf8":                    "",
	"azure/pipelines.go":             "",
	"githooks/pre-commit":            "",
}

func TestProtected(t *testing.T) {
	t.Parallel()
	for path, want := range paths {
		rule, protected := scope.Protected(path)
		if rule != want || protected != (want != "") {
			t.Errorf("Protected(%q) = %q, %v; want %q", path, rule, protected, want)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	const file, link = "100644", "160000"
	type finding struct{ Path, Rule string }
	for name, tc := range map[string]struct {
		changes []scope.Path
		allow   []string
		want    []finding
	}{
		"plain": {changes: []scope.Path{{New: "a.go", NewMode: file}, {Old: "b.go", New: "b.go", OldMode: file, NewMode: file}}},
		"added": {changes: []scope.Path{{New: ".ci/run", NewMode: file}}, want: []finding{{".ci/run", "ci"}}},
		"edited is said once": {changes: []scope.Path{{Old: ".ci/run", New: ".ci/run", OldMode: file, NewMode: file}},
			want: []finding{{".ci/run", "ci"}}},
		"deleted":      {changes: []scope.Path{{Old: ".ci/run", OldMode: file}}, want: []finding{{".ci/run", "ci"}}},
		"renamed away": {changes: []scope.Path{{Old: ".ci/run", New: "run", OldMode: file, NewMode: file}}, want: []finding{{".ci/run", "ci"}}},
		"renamed into": {changes: []scope.Path{{Old: "run", New: ".ci/run", OldMode: file, NewMode: file}}, want: []finding{{".ci/run", "ci"}}},
		"mode only":    {changes: []scope.Path{{Old: ".ci/run", New: ".ci/run", OldMode: file, NewMode: "100755"}}, want: []finding{{".ci/run", "ci"}}},
		"both sides": {changes: []scope.Path{{Old: "CLAUDE.md", New: "AGENTS.md", OldMode: file, NewMode: file}},
			want: []finding{{"AGENTS.md", "agent settings"}, {"CLAUDE.md", "agent settings"}}},
		"allowed exactly":          {changes: []scope.Path{{New: ".ci/run", NewMode: file}}, allow: []string{".ci/run"}},
		"allowed by directory":     {changes: []scope.Path{{New: ".github/workflows/a/b", NewMode: file}}, allow: []string{".github/"}},
		"exact is not a directory": {changes: []scope.Path{{New: ".ci/run", NewMode: file}}, allow: []string{".ci"}, want: []finding{{".ci/run", "ci"}}},
		"directory is not itself":  {changes: []scope.Path{{New: ".ci", NewMode: "120000"}}, allow: []string{".ci/"}, want: []finding{{".ci", "ci"}}},
		"allowed is exact in case": {changes: []scope.Path{{New: ".CI/run", NewMode: file}}, allow: []string{".ci/"}, want: []finding{{".CI/run", "ci"}}},
		"no prefix of a name":      {changes: []scope.Path{{New: ".claude/x", NewMode: file}}, allow: []string{".cl/", ".claud"}, want: []finding{{".claude/x", "agent settings"}}},
		"one side allowed": {changes: []scope.Path{{Old: "CLAUDE.md", New: "AGENTS.md", OldMode: file, NewMode: file}}, allow: []string{"AGENTS.md", "nothing/here"},
			want: []finding{{"CLAUDE.md", "agent settings"}}},
		"gitlink added":            {changes: []scope.Path{{New: "lib", NewMode: link}}, allow: []string{"lib", "lib/"}, want: []finding{{"lib", "gitlink"}}},
		"gitlink moved":            {changes: []scope.Path{{Old: "lib", New: "lib", OldMode: link, NewMode: link}}, want: []finding{{"lib", "gitlink"}}},
		"file becomes gitlink":     {changes: []scope.Path{{Old: "lib", New: "lib", OldMode: file, NewMode: link}}, want: []finding{{"lib", "gitlink"}}},
		"gitlink taken out":        {changes: []scope.Path{{Old: "lib", OldMode: link}}},
		"git dir is never allowed": {changes: []scope.Path{{New: "a/.Git/config", NewMode: file}}, allow: []string{"a/", "a/.Git/config"}, want: []finding{{"a/.Git/config", "git"}}},
		"outside":                  {changes: []scope.Path{{New: "../x", NewMode: file}, {New: "/x", NewMode: file}}, want: []finding{{"../x", "path"}, {"/x", "path"}}},
		"nameless":                 {changes: []scope.Path{{OldMode: file, NewMode: file}}, want: []finding{{"", "path"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []finding
			for _, f := range scope.Check(tc.changes, tc.allow) {
				got = append(got, finding{f.Path, f.Rule})
				if f.Text == "" || strings.ContainsAny(f.Text, "\n\x1b") {
					t.Errorf("text %q cannot be shown", f.Text)
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestCheckEscapesNames(t *testing.T) {
	t.Parallel()
	got := scope.Check([]scope.Path{{New: ".ci/\x1b[2J\nok", NewMode: "100644"}}, nil)
	if len(got) != 1 || strings.ContainsAny(got[0].Text, "\n\x1b") {
		t.Errorf("findings %q", got)
	}
}

func TestParseAllow(t *testing.T) {
	t.Parallel()
	good := []string{".ci/run", ".github/", "a/b c/d", "nothing/here", "app/[id]/page.tsx"}
	got, err := scope.ParseAllow(good)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(good, got); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"", "/", "//", "/etc", "../x", "a/../b", "a//b", "a//", "./a", ".", "..", ".git/config", "a/.GIT/",
		".ci/*", "**", "a\x00b", "a\\..\\b"} {
		if _, err := scope.ParseAllow([]string{"ok", bad}); err == nil {
			t.Errorf("ParseAllow took %q", bad)
		} else if !strings.Contains(err.Error(), fmt.Sprintf("%q", bad)) {
			t.Errorf("error %q does not name %q", err, bad)
		}
	}
}

// TestCheckIsLinear compares a diff with one ten times its size. A quadratic decision would take
// a hundred times as long and run into the deadline.
func TestCheckIsLinear(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("a~1/", 2000) + "x"
	var changes []scope.Path
	var allow []string
	for i := range 50_000 {
		changes = append(changes, scope.Path{New: fmt.Sprintf("dir/%d/file", i), NewMode: "100644"})
		allow = append(allow, fmt.Sprintf("other/%d/", i), fmt.Sprintf("dir/%d", i))
	}
	for range 20 {
		changes = append(changes, scope.Path{New: deep, NewMode: "100644"})
	}
	done := make(chan []scope.Finding, 1)
	go func() { done <- scope.Check(changes, allow) }()
	select {
	case got := <-done:
		if len(got) != 0 {
			t.Errorf("findings %v", got[:1])
		}
	case <-time.After(30 * time.Second):
		t.Fatal("not done after 30 s")
	}
}

func TestDefaultsAreProtected(t *testing.T) {
	t.Parallel()
	for _, d := range scope.Defaults() {
		name := strings.ReplaceAll(strings.TrimPrefix(d, "/"), "*", "x")
		if strings.HasSuffix(name, "/") {
			name += "file"
		}
		if _, ok := scope.Protected(name); !ok {
			t.Errorf("%q does not protect %q", d, name)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{".github/workflows/x", "a/.git/b", "../x", "CLAUDE.md", "x:y", "Jenkinsﬁle", "a~1", "\\", ". .", "\xff"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, old, name string) {
		rule, protected := scope.Protected(name)
		if (rule != "") != protected {
			t.Fatalf("Protected(%q) = %q, %v", name, rule, protected)
		}
		if name == "" {
			return
		}
		got := scope.Check([]scope.Path{{New: name, NewMode: "100644"}}, nil)
		if protected != (len(got) == 1) || protected && (got[0].Rule != rule || got[0].Path != name) {
			t.Fatalf("%q: rule %q, findings %v", name, rule, got)
		}
		// Another spelling never takes protection away.
		for _, other := range []string{strings.ToUpper(name), name + ".", name + "\u200b", strings.ReplaceAll(name, "/", "\\")} {
			if _, ok := scope.Protected(other); protected && !ok {
				t.Fatalf("%q is protected, %q is not", name, other)
			}
		}
		// Its own entry lifts what can be lifted; what cannot be is not parsed.
		if allow, err := scope.ParseAllow([]string{name}); err == nil && !strings.HasSuffix(name, "/") {
			if got := scope.Check([]scope.Path{{New: name, NewMode: "100644"}}, allow); len(got) != 0 {
				t.Fatalf("%q is allowed but found: %v", name, got)
			}
		}
		for _, g := range scope.Check([]scope.Path{{Old: old, New: name, OldMode: "100644", NewMode: "160000"}}, []string{old, name}) {
			if g.Text == "" || strings.ContainsAny(g.Text, "\n\r\x1b\x00") {
				t.Fatalf("text %q", g.Text)
			}
		}
	})
}
