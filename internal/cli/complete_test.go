package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// offered is what a shell is offered after some words.
func (p *project) offered(words ...string) []string {
	p.t.Helper()
	cmd, _ := p.command(nil, append([]string{"__complete"}, words...)...)
	cmd.Stdout, cmd.Stderr = nil, nil
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("complete %q: %v\n%s", words, err, out)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); !strings.HasPrefix(word, ":") {
			found = append(found, word)
		}
	}
	return found
}

// TestCompletion: numbers, runs and words are offered as they are there; a shell that asks makes no
// state, and what is hostile stays harmless.
func TestCompletion(t *testing.T) {
	t.Parallel()
	p := newProject(t, quick, "")
	if got := p.offered("show", "--repo", p.repo, ""); strings.Join(got, " ") != "1" {
		t.Errorf("before any run: %q", got)
	}
	if _, err := os.Stat(p.state); err == nil {
		t.Error("a state directory was made for a completion")
	}
	p.file("\x1b[2J evil\ttitle")
	p.must(0, p.work()...)
	p.must(0, "issue", "close", "1", "--repo", p.repo)
	id := p.runs()[0].ID
	for _, c := range []struct{ words, want string }{
		{"show --repo " + p.repo, "2 1 " + id}, {"explain --repo " + p.repo, "2 1 " + id}, {"retry --repo " + p.repo, "2 1 " + id},
		{"watch --repo " + p.repo, "2 1 " + id}, {"logs --repo " + p.repo, "2 1 " + id}, {"cancel --repo " + p.repo, "2 1 " + id},
		{"run --repo " + p.repo, "2 1"}, {"run --repo " + p.repo + " --issue", "2 1"}, {"issue comment --repo " + p.repo, "2 1"}, {"claim show --repo " + p.repo, "2 1"},
		{"change accept --repo " + p.repo, "1"}, {"change diff --repo " + p.repo, "1"}, {"run --lane", "propose build"}, {"run --sandbox", "full landlock none"},
		{"runs --color", "auto always never"}, {"issue list --state", "open closed all"}, {"change list --state", "open merged closed all"},
		{"show 1 --repo " + p.repo, ""}, {"show --repo /nowhere/at/all", id}, {"issue show --repo /nowhere/at/all", ""},
	} {
		got := p.offered(append(strings.Fields(c.words), "")...)
		if strings.Join(slices.Sorted(slices.Values(got)), " ") != strings.Join(slices.Sorted(slices.Values(strings.Fields(c.want))), " ") {
			t.Errorf("after %q: %q, want %q", c.words, got, c.want)
		}
	}
	out := p.must(0, "__complete", "issue", "show", "--repo", p.repo, "")
	if strings.Contains(out, "\x1b") || !strings.Contains(out, "evil") {
		t.Errorf("a hostile title: %q", out)
	}
	// Each shell takes what is made for it, where that shell is here.
	for shell, check := range map[string][]string{"bash": {"-n"}, "zsh": {"-n"}, "fish": {"--no-execute"}} {
		script := filepath.Join(t.TempDir(), shell)
		p.write(script, p.must(0, "completion", shell), 0o600)
		if path, err := exec.LookPath(shell); err == nil {
			if out, err := exec.Command(path, append(check, script)...).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", shell, err, out)
			}
		}
	}
}
