//go:build failpoint

package cli_test

import (
	"strings"
	"syscall"
	"testing"
)

// points are the places at which the engine is killed, in the order in which a run meets them.
var points = []string{
	"after save claimed", "agent-running", "after save verified", "before push branch", "after push branch", "after forge propose",
}

// resumeAgent commits a first step once, leaves a daemon behind, and sleeps in its first attempt
// when the test is about to kill the engine; every later attempt finishes.
const resumeAgent = `#!/bin/sh
set -e
test -s "$INTERLOCK_PROMPT_FILE"
if ! test -f step1; then
	echo one > step1
	git add step1
	git commit -q -m 'step 1'
	echo "STEP1 $(git rev-parse HEAD)"
fi
if test "$INTERLOCK_ATTEMPT" = 1 && grep -q SLEEP "$INTERLOCK_PROMPT_FILE"; then
	(setsid sh -c 'sleep 600 & sleep 600' >/dev/null 2>&1 &)
	sleep 600
fi
echo fixed > answer
git add answer
git commit -q -m 'answer'
`

// TestResume kills the engine with SIGKILL at each point and types the command again.
func TestResume(t *testing.T) {
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			body := "Please answer."
			if point == "agent-running" {
				body = "SLEEP first, then answer."
			}
			p := newProject(t, resumeAgent, body)
			cmd, out := p.command([]string{"INTERLOCK_FAILPOINT=" + point}, p.work()...)
			if code := p.end(cmd, cmd.Run()); code != -int(syscall.SIGKILL) {
				t.Fatalf("at %s the engine ended with %d instead of being killed:\n%s", point, code, out)
			}
			p.dead()
			p.must(0, p.work()...)
			p.dead()
			p.once()
			log := p.git("-C", p.repo, "log", "--format=%H %s", "interlock/issue-1")
			if strings.Count(log, "step 1") != 1 || !strings.Contains(log, "answer") {
				t.Errorf("commits of the branch: %q", log)
			}
			// The very commit that the first attempt made, not one like it.
			_, first, _ := strings.Cut(p.agentLog(), "STEP1 ")
			if hash, _, ok := strings.Cut(first, "\n"); !ok || !strings.Contains(log, hash) {
				t.Errorf("the first commit %q is not on the branch: %q", hash, log)
			}
			if got := p.git("-C", p.repo, "show", "interlock/issue-1:answer"); got != "fixed" {
				t.Errorf("answer on the branch: %q", got)
			}
		})
	}
}
