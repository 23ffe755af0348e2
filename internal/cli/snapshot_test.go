package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestResumeKeepsSettings: a run that was killed goes on with what it was started with, whatever
// the configuration says by then, on the base branch and at the operator's, and also where it says
// nothing any more. What is typed counts.
func TestResumeKeepsSettings(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "slowly")
	own := filepath.Join(p.config(), "interlock", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(p.repo, ".interlock"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.write(own, "agent:\n  command: "+p.agent+"\nsandbox:\n  level: "+p.level+"\nlimits:\n  attempts: 7\n", 0o600)
	p.commit(".interlock/config.yaml", "checks: [grep -qx fixed answer]\n")
	first := p.start("run", "1", "--repo", p.repo)
	first.signal(syscall.SIGKILL)
	first.wait()
	// An agent that is not there, another lane, fewer attempts, a check that fails.
	p.write(own, "agent:\n  command: /nonexistent/agent\nlane: build\nsandbox:\n  level: "+p.level+"\nlimits:\n  attempts: 1\n", 0o600)
	p.commit(".interlock/config.yaml", "checks: ['false']\n")
	if out := p.must(0, "run", "1", "--repo", p.repo); strings.Contains(out, "reconfigured") {
		t.Errorf("the run that was killed does not go on as it was started:\n%s", out)
	}
	p.once()
	shown := p.must(0, "show", "1", "--repo", p.repo, "--json")
	for _, want := range []string{`"attempts":7`, `"lane":"propose"`, `"checks":["grep -qx fixed answer"]`, `"theirs":["checks"]`} {
		if !strings.Contains(shown, want) {
			t.Errorf("the run does not have %s: %s", want, shown)
		}
	}
}

// TestResumeWithoutConfiguration: the run goes on where no configuration is left, and a flag that
// is typed changes just what it names.
func TestResumeWithoutConfiguration(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "slowly")
	first := p.start(p.work("--attempts", "5")...)
	first.signal(syscall.SIGKILL)
	first.wait()
	out := p.must(0, "run", "--repo", p.repo, "1", "--lane", "build")
	if !strings.Contains(out, "reconfigured") || !strings.Contains(out, "done") {
		t.Errorf("the lane that was typed is not the one that was gone:\n%s", out)
	}
	if shown := p.must(0, "show", "1", "--repo", p.repo, "--json"); !strings.Contains(shown, `"attempts":5`) || !strings.Contains(shown, `"lane":"build"`) {
		t.Errorf("the rest of the settings is not what the run was started with: %s", shown)
	}
	// A new run needs what the old one had.
	p.must(0, "issue", "new", "--repo", p.repo, "--title", "Another")
	if out := p.must(2, "run", "--repo", p.repo, "2"); !strings.Contains(out, "--command is missing") {
		t.Errorf("a new run without an agent:\n%s", out)
	}
}
