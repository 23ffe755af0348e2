package scope

import (
	"slices"
	"strings"
)

// The rules that an allow entry can lift.
const (
	RuleCI        = "ci"             // what the forge runs
	RuleHooks     = "hooks"          // what git runs on a developer's machine
	RuleAgent     = "agent settings" // what steers coding agents
	RuleInterlock = "interlock"      // Interlock's own files
	RuleGitFiles  = "git files"      // what changes how git reads the repository
	RuleReview    = "review"         // who is asked to review
)

var reasons = map[string]string{
	RuleCI:        "it decides what the forge runs, with the forge's credentials",
	RuleHooks:     "it decides what git runs on developers' machines",
	RuleAgent:     "it steers the coding agents and editors that open this repository",
	RuleInterlock: "it decides how Interlock treats this repository",
	RuleGitFiles:  "it changes how git reads this repository",
	RuleReview:    "it decides who must review",
}

// protectedPaths is the default list. A leading "/" means at the top only, else at any depth; a
// trailing "/" means a directory and all that is in it; a trailing "*" completes a name.
// The first rule that covers a name is the one that is reported.
var protectedPaths = []struct {
	rule     string
	patterns []string
}{
	{RuleCI, []string{
		"/.github/workflows/", "/.github/actions/", "/.gitea/", "/.forgejo/", "/.gitlab-ci.yml", "/.gitlab/", "/.ci/",
		"/.circleci/", "/.buildkite/", "/.woodpecker/", "/.woodpecker.yml", "/.woodpecker.yaml", "/.drone.yml",
		"/.travis.yml", "/.cirrus.yml", "/.cirrus.star", "/.builds/", "/.build.yml", "/.semaphore/", "/.tekton/",
		"/.appveyor.yml", "/appveyor.yml", "/bitbucket-pipelines.yml", "/.azure-pipelines/", "azure-pipelines*",
		"jenkinsfile", "jenkinsfile.*",
	}},
	{RuleHooks, []string{
		".githooks/", ".husky/", ".lefthook/", "lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json",
		".lefthook.yml", ".lefthook.yaml", ".lefthook.toml", ".lefthook.json", ".pre-commit-config.yaml",
		".pre-commit-config.yml", ".pre-commit-hooks.yaml", ".huskyrc*", ".envrc", ".devcontainer/", ".devcontainer.json",
	}},
	{RuleAgent, []string{
		".claude/", ".codex/", ".opencode/", "opencode.json", "opencode.jsonc", ".pi/", ".gemini/", ".mcp.json",
		".cursor/", ".cursorrules", ".cursorignore", ".windsurf/", ".windsurfrules", ".clinerules", ".clinerules/", ".roo/",
		".kiro/", ".agents/", ".aider*", ".vscode/", "agents.md", "agents.override.md", "claude.md", "claude.local.md",
		"gemini.md", "/.github/copilot-*", "/.github/instructions/", "/.github/prompts/", "/.github/agents/",
	}},
	{RuleInterlock, []string{"/.interlock/", "/workflow.md"}},
	{RuleGitFiles, []string{".gitmodules", ".gitattributes", ".lfsconfig"}},
	{RuleReview, []string{
		"/codeowners", "/docs/codeowners", "/.github/codeowners",
	}},
}

// protection is one entry of protectedPaths, taken apart.
type protection struct {
	rule  string
	parts []string // folded components; the last may end in "*"
	top   bool     // only from the top of the repository
	dir   bool
}

var protections = compile()

func compile() []protection {
	var out []protection
	for _, group := range protectedPaths {
		for _, p := range group.patterns {
			name, top := strings.CutPrefix(p, "/")
			name, dir := strings.CutSuffix(name, "/")
			out = append(out, protection{rule: group.rule, parts: strings.Split(name, "/"), top: top, dir: dir})
		}
	}
	return out
}

// Defaults lists the protected paths for people and for prompts, sorted: a leading "/" means at the
// top only, a trailing "/" a directory with all that is in it.
func Defaults() []string {
	var out []string
	for _, group := range protectedPaths {
		out = append(out, group.patterns...)
	}
	slices.Sort(out)
	return out
}

// protectedBy returns the first protection that covers the name, nil if none does.
func (f folded) protectedBy() *protection {
	for i := range protections {
		p := &protections[i]
		if p.top {
			if p.covers(f) {
				return p
			}
			continue
		}
		for at := range f {
			if p.covers(f[at:]) {
				return p
			}
		}
	}
	return nil
}

// covers reports whether the pattern matches at the start of the components. A name that ends
// above a protected directory is covered too: it puts a file or a link in the directory's place.
func (p *protection) covers(f folded) bool {
	n := len(p.parts)
	if len(f) > n && !p.dir {
		return false
	}
	for i := range min(n, len(f)) {
		if !sameComponent(p.parts[i], f[i]) {
			return false
		}
	}
	return len(f) >= n || p.top && p.dir
}

// sameComponent compares a component of the table with one of a name.
func sameComponent(want, got string) bool {
	if want == got {
		return true
	}
	if prefix, ok := strings.CutSuffix(want, "*"); ok && strings.HasPrefix(got, prefix) {
		return true
	}
	return strings.IndexByte(got, '~') >= 0 && likeShort(want, got)
}

// likeShort reports whether got may be the short name that NTFS gives to want: up to six
// characters, a tilde and a digit, and the first three of the extension.
func likeShort(want, got string) bool {
	base, ext, _ := strings.Cut(got, ".")
	stem, digit, _ := strings.Cut(base, "~")
	if len(digit) != 1 || digit[0] < '1' || digit[0] > '9' {
		return false
	}
	if stem == "gi7eba" || stem == "gi7d29" { // the hashed forms of .gitmodules and .gitattributes
		stem = map[string]string{"gi7eba": "gitmod", "gi7d29": "gitatt"}[stem]
	}
	return shortName(want) == stem+"."+ext
}

// shortName is the stem of a name's NTFS short name, a dot, and its extension.
func shortName(name string) string {
	name = strings.TrimLeft(name, ".")
	base, ext := name, ""
	if at := strings.LastIndexByte(name, '.'); at >= 0 {
		base, ext = name[:at], name[at+1:]
	}
	base = strings.ReplaceAll(base, ".", "")
	return base[:min(6, len(base))] + "." + ext[:min(3, len(ext))]
}
