//go:build failpoint

package cli_test

import (
	"path/filepath"
	"syscall"
	"testing"
)

// killed types a command that is killed at a point.
func (p *project) killed(point string, args ...string) {
	p.t.Helper()
	cmd, out := p.command([]string{"INTERLOCK_FAILPOINT=" + point}, args...)
	if code := p.end(cmd, cmd.Run()); code != -int(syscall.SIGKILL) {
		p.t.Fatalf("at %s it ended with %d instead of being killed:\n%s", point, code, out)
	}
}

// TestResumeRemoval: a removal that is killed has not begun, or is finished by the next sweep. What is
// removed twice is said to be gone.
func TestResumeRemoval(t *testing.T) {
	for point, begun := range map[string]bool{"before take workspace away": false, "after take workspace away": true, "in the midst of remove": true} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, fixes, "x")
			p.must(0, p.work()...)
			rows := p.workspaces()
			p.killed(point, "workspace", "drop", "1", "--repo", p.repo)
			if left := p.workspaces(); (len(left) == 0) != begun || !begun && (left[0].Work != "pushed" || left[0].Bytes != rows[0].Bytes) {
				t.Fatalf("%+v", left)
			}
			if begun {
				p.must(1, "workspace", "drop", "1", "--repo", p.repo)
			} else {
				p.must(0, "workspace", "drop", "1", "--repo", p.repo)
			}
			p.must(0, "workspace", "sweep")
			p.gone(rows...)
		})
	}
}

// TestResumeExport: an export that is killed is typed again, at once, and so is a drop after it; what
// it had started is ended, and nothing that it had not brought in is taken for safe.
func TestResumeExport(t *testing.T) {
	for _, point := range []string{"after acquire", "before session snapshot ended false", "after session snapshot ended false", "after session snapshot ended true"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, "#!/bin/sh\necho half > half; echo WORKING; sleep 600\n", "x")
			s := p.start(p.work()...)
			s.signal(syscall.SIGKILL)
			s.wait()
			p.must(0, "cancel", "1", "--repo", p.repo)
			dir := filepath.Join(t.TempDir(), "out")
			p.killed(point, "workspace", "export", "1", dir, "--repo", p.repo)
			if rows := p.workspaces(); rows[0].Work != "not imported" {
				t.Errorf("%+v", rows)
			}
			p.must(1, "workspace", "drop", "1", "--repo", p.repo)
			p.must(0, "workspace", "export", "1", dir, "--repo", p.repo)
			if got := p.git("-C", dir, "show", "HEAD:half"); got != "half" {
				t.Errorf("%q", got)
			}
			p.must(0, "workspace", "drop", "1", "--repo", p.repo)
			p.gone(p.workspaces()...)
		})
	}
}
