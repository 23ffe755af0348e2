package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestBasesThatCannotBeWorked: a workspace would lack what submodules and Git LFS keep elsewhere,
// so such a base is refused before anything is claimed, with what it has.
func TestBasesThatCannotBeWorked(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "HURRY")
	p.git("-C", p.repo, "checkout", "-q", "-b", "large")
	p.commit(".gitattributes", "*.bin filter=lfs\n")
	p.git("-C", p.repo, "checkout", "-q", "main", "-b", "sub")
	head := p.git("-C", p.repo, "rev-parse", "HEAD")
	p.git("-C", p.repo, "update-index", "--add", "--cacheinfo", "160000,"+head+",vendor/lib")
	p.git("-C", p.repo, "-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "-q", "-m", "a submodule")
	p.git("-C", p.repo, "checkout", "-q", "-f", "main")
	for branch, has := range map[string]string{"large": `Git LFS (["*.bin"])`, "sub": `submodules (["vendor/lib"])`} {
		if out := p.must(1, p.work("--base", branch)...); !strings.Contains(out, has) || !strings.Contains(out, "--base BRANCH") {
			t.Errorf("%s: %s", branch, out)
		}
	}
	if rows := p.runs(); len(rows) != 0 {
		t.Errorf("runs: %+v, want none", rows)
	}
	if refs := p.refs("refs/interlock/claims/"); len(refs) != 0 {
		t.Errorf("claims: %q, want none", refs)
	}
}

// TestResumedWithOtherOptions: whoever goes on decides with what; the run is the same one.
func TestResumedWithOtherOptions(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "slowly")
	first := p.start(p.work()...)
	first.signal(syscall.SIGKILL)
	first.wait()
	cmd, out := p.command([]string{"OWN_WORD=yes"}, "run", "--repo", p.repo, "--issue", "1", "--command", "test $OWN_WORD = yes && echo fixed > answer", "--env", "OWN_WORD",
		"--checks", "grep -qx fixed answer", "--sandbox", p.level, "--attempts", "4")
	if code := p.end(cmd, cmd.Run()); code != 0 || !strings.Contains(out.String(), "with the options of this command") {
		t.Errorf("exit %d, want 0, and that the options are others:\n%s", code, out)
	}
	p.once()
}

// TestAcceptedElsewhere: a change that was merged from another state directory is noticed here, the
// run is done, and the issue is not worked again.
func TestAcceptedElsewhere(t *testing.T) {
	t.Parallel()
	p := newProject(t, "#!/bin/sh\necho fixed > answer\n", "")
	p.must(0, p.work()...)
	if out := p.must(4, p.work()...); !strings.Contains(out, "waits for a reviewer") {
		t.Errorf("before: %s", out)
	}
	here := p.state
	p.state = filepath.Join(t.TempDir(), "elsewhere")
	p.must(0, "change", "accept", "1", "--repo", p.repo)
	p.state = here
	if out := p.must(0, "show", "1", "--repo", p.repo); !strings.Contains(out, "why       change 1 was accepted") || !strings.Contains(out, "next      interlock issue show 1") {
		t.Errorf("shown before: %s", out)
	}
	if out := p.must(1, p.work()...); !strings.Contains(out, "change 1") || !strings.Contains(out, "accepted") {
		t.Errorf("after: %s", out)
	}
	if rows := p.runs(); len(rows) != 1 || rows[0].State != "done" {
		t.Errorf("runs: %+v, want one that is done", rows)
	}
}

// TestEndsOfAgents: an agent that is ended by a limit, or cannot be started, is told apart from one
// that failed, and what it was ended for is said.
func TestEndsOfAgents(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agent, says string
		flags       []string
	}{
		"total": {"sleep 600", "ended after 1s", []string{"--agent-timeout", "1s"}},
		"idle":  {"sleep 600", "without output or a change", []string{"--idle-timeout", "1s"}},
		"none":  {"exec no-such-program-at-all", "1 of 1 attempts are used; the last one: the agent ended with exit 127: a command that it calls was not found", nil},
		"text":  {"chmod 600 $0; touch /tmp/text && exec /tmp/text", "1 of 1 attempts are used; the last one: the agent ended with exit 126: a command that it calls cannot be executed", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, "#!/bin/sh\n"+c.agent+"\n", "")
			args := append([]string{"run", "--repo", p.repo, "--issue", "1", "--command", c.agent, "--checks", "true", "--attempts", "1", "--sandbox", p.level}, c.flags...)
			if name == "text" && p.level == "none" {
				t.Skip("it would write to the machine's /tmp")
			}
			if out := p.must(8, args...); !strings.Contains(out, c.says) {
				t.Errorf("it does not say %q:\n%s", c.says, out)
			}
			p.dead()
		})
	}
}

// TestAgentNotFound: an agent that calls what is not there was found itself, so that its attempts are
// used; one whose own program is not where sessions run is not started again.
func TestAgentNotFound(t *testing.T) {
	t.Parallel()
	p := newProject(t, "#!/bin/sh\nno-such-program-at-all\n", "")
	out := p.must(8, p.work("--attempts", "2")...)
	if !strings.Contains(out, "2 of 2 attempts are used; the last one: the agent ended with exit 127: a command that it calls was not found") {
		t.Errorf("an agent that was found:\n%s", out)
	}
	if p.level == "none" {
		t.Skip("its program would be found")
	}
	p.file("Another")
	args := []string{"run", "--repo", p.repo, "--issue", "2", "--command", "agent.sh x", "--checks", "true", "--attempts", "2", "--sandbox", p.level}
	cmd, said := p.command([]string{"PATH=.:" + os.Getenv("PATH")}, args...)
	cmd.Dir = filepath.Dir(p.agent) // which only the operator's PATH leads to
	if code := p.end(cmd, cmd.Run()); code != 8 || !strings.Contains(said.String(), "the agent's command was not found (exit 127): agent.sh x") ||
		strings.Contains(said.String(), "attempt 2") {
		t.Errorf("exit %d, an agent that is not where sessions run:\n%s", code, said)
	}
}

// TestMovedRepository: a repository that was moved while its run was interrupted is known again, and the
// run goes on at its new place.
func TestMovedRepository(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "slowly")
	first := p.start(p.work()...)
	first.signal(syscall.SIGKILL)
	first.wait()
	was := p.repo
	p.repo += "-moved"
	if err := os.Rename(was, p.repo); err != nil {
		t.Fatal(err)
	}
	p.write(p.agent, "#!/bin/sh\necho fixed > answer\n", 0o755)
	p.must(0, p.work()...)
	p.once()
}
