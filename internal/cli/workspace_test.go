package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// workspaceRow is what these tests read of a workspace.
type workspaceRow struct {
	Run   string     `json:"run"`
	Name  string     `json:"workspace"`
	Work  string     `json:"work"`
	Why   string     `json:"why"`
	Kept  bool       `json:"kept"`
	Goes  *time.Time `json:"goes"`
	Stays string     `json:"stays"`
	Dir   string     `json:"dir"`
	Bytes int64      `json:"bytes"`
	Next  string     `json:"next"`
}

func (p *project) workspaces() []workspaceRow {
	p.t.Helper()
	var rows []workspaceRow
	p.json(&rows, "workspace", "list")
	return rows
}

// configure writes the operator's configuration of this project.
func (p *project) configure(text string) {
	p.t.Helper()
	dir := filepath.Join(p.config(), "interlock")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		p.t.Fatal(err)
	}
	p.write(filepath.Join(dir, "config.yaml"), text, 0o600)
}

// gone demands that nothing of these workspaces is left, also no removal that was cut short.
func (p *project) gone(rows ...workspaceRow) {
	p.t.Helper()
	for _, r := range rows {
		if _, err := os.Lstat(r.Dir); !os.IsNotExist(err) {
			p.t.Errorf("%s is still there: %v", r.Dir, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(p.state, "work", "gone-*")); len(left) != 0 {
		p.t.Errorf("left: %q", left)
	}
}

const fixes = "#!/bin/sh\nset -e\necho fixed > answer\ngit commit -qam fix\necho note > note\n"

// TestWorkspaceOfAChange: the workspace of a run in review goes when it is old and its work is read
// back from the repository, by the next run as well as by a sweep; never before.
func TestWorkspaceOfAChange(t *testing.T) {
	t.Parallel()
	p := newProject(t, fixes, "x")
	p.must(0, p.work()...)
	rows := p.workspaces()
	if len(rows) != 1 || rows[0].Work != "pushed" || rows[0].Goes == nil || rows[0].Bytes < 1<<10 || time.Until(*rows[0].Goes) < 167*time.Hour {
		t.Fatalf("%+v", rows)
	}
	if out := p.must(0, "workspace", "sweep"); !strings.Contains(out, "0 workspaces removed") {
		t.Errorf("it is not old:\n%s", out)
	}
	p.configure("retention:\n  workspaces: 1s\n")
	time.Sleep(1100 * time.Millisecond)
	branch := p.git("-C", p.repo, "rev-parse", "interlock/issue-1")
	p.git("-C", p.repo, "branch", "-D", "interlock/issue-1")
	if out := p.must(0, "workspace", "sweep"); !strings.Contains(out, "is not on the branch interlock/issue-1 of its repository any more") || !strings.Contains(out, "0 workspaces removed") {
		t.Errorf("its branch is gone:\n%s", out)
	}
	p.git("-C", p.repo, "branch", "interlock/issue-1", branch)
	p.must(0, "issue", "new", "--repo", p.repo, "--title", "Another one")
	out := p.must(0, "run", "2", "--repo", p.repo, "--command", p.agent, "--checks", "grep -qx fixed answer", "--sandbox", p.level)
	if !strings.Contains(out, "removed workspace 1 of run "+rows[0].Run) {
		t.Errorf("the next run has not removed it:\n%s", out)
	}
	p.gone(rows[0])
	p.must(0, "logs", "1", "--repo", p.repo) // logs stay for longer
	if out := p.must(1, "workspace", "drop", "1", "--repo", p.repo); !strings.Contains(out, "has no workspace (any more)") {
		t.Error(out)
	}
}

// TestWorkspaceOfFailure: work that is only in the engine's repository stays until a person says
// otherwise; what a person keeps stays even then.
func TestWorkspaceOfFailure(t *testing.T) {
	t.Parallel()
	p := newProject(t, "#!/bin/sh\necho $INTERLOCK_ATTEMPT > answer\n", "x")
	p.must(8, p.work("--attempts", "2")...)
	rows := p.workspaces()
	if len(rows) != 2 || rows[0].Work != "imported" || rows[0].Goes != nil || rows[1].Stays != "its work is not on the forge" {
		t.Fatalf("%+v", rows)
	}
	p.configure("retention:\n  workspaces: 1s\n  logs: 1s\n")
	time.Sleep(1100 * time.Millisecond)
	if out := p.must(0, "workspace", "sweep", "--now"); !strings.Contains(out, "0 workspaces removed") || !strings.Contains(out, "the logs of 0 runs") {
		t.Error(out)
	}
	p.must(0, "workspace", "keep", "1", "--repo", p.repo)
	if out := p.must(0, "workspace", "sweep", "--imported"); !strings.Contains(out, "0 workspaces removed") {
		t.Errorf("it is kept:\n%s", out)
	}
	if out := p.must(1, "workspace", "drop", "1", "--repo", p.repo); !strings.Contains(out, "keep "+rows[0].Run+" --off") {
		t.Error(out)
	}
	if rows := p.workspaces(); !rows[0].Kept || !rows[1].Kept {
		t.Errorf("%+v", rows)
	}
	p.must(0, "workspace", "keep", rows[0].Run, "--off")
	if out := p.must(0, "workspace", "sweep", "--imported"); !strings.Contains(out, "2 workspaces removed") || !strings.Contains(out, "the logs of 1 runs") {
		t.Error(out)
	}
	p.gone(rows...)
	if out := p.must(1, "logs", "1", "--repo", p.repo); !strings.Contains(out, "is not there (any more)") {
		t.Error(out)
	}
	dir := filepath.Join(t.TempDir(), "work")
	p.must(0, "workspace", "export", "1", dir, "--repo", p.repo) // the commits outlive the workspaces
	if got := p.git("-C", dir, "show", "HEAD:answer"); got != "2" {
		t.Errorf("exported: %q", got)
	}
}

// TestWorkspaceOfACrash: while an agent works its workspace is nobody else's; what a killed one has
// left uncommitted is dropped by no command but one that names it, and is exported without a git that
// runs in the workspace.
func TestWorkspaceOfACrash(t *testing.T) {
	t.Parallel()
	p := newProject(t, "#!/bin/sh\nset -e\ngit commit -q --allow-empty -m one\ngit branch other\necho half > half\n"+
		"git config core.fsmonitor 'touch "+filepath.Join(t.TempDir(), "ran")+"'\ntest $INTERLOCK_ATTEMPT = 1 || exit 3\necho WORKING; sleep 600\n", "x")
	s := p.start(p.work()...)
	id := p.runs()[0].ID
	for _, args := range [][]string{{"drop", id}, {"drop", id, "--lose", "1"}, {"export", id, filepath.Join(t.TempDir(), "x")}} {
		if out := p.must(1, append([]string{"workspace"}, args...)...); !strings.Contains(out, "may be in use: its run is implementing") {
			t.Errorf("%q: %s", args, out)
		}
	}
	s.signal(syscall.SIGKILL)
	s.wait()
	p.configure("retention: [") // what starts no session needs no configuration
	p.must(0, "cancel", id, "--repo", p.repo)
	p.configure("")
	rows := p.workspaces()
	if len(rows) != 1 || rows[0].Work != "not imported" || rows[0].Goes != nil {
		t.Fatalf("%+v", rows)
	}
	p.must(0, "workspace", "sweep", "--now", "--imported")
	out := p.must(1, "workspace", "drop", id)
	if !strings.Contains(out, "--lose 1") || !strings.Contains(out, "next: interlock workspace export "+id) {
		t.Error(out)
	}
	p.must(2, "workspace", "drop", id, "--lose", "2")
	dir := filepath.Join(t.TempDir(), "work")
	p.must(0, "workspace", "export", id, dir)
	if got := p.git("-C", dir, "show", "attempt-1:half"); got != "half" {
		t.Errorf("exported: %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, ".git", "objects", "info", "alternates")); !os.IsNotExist(err) {
		t.Errorf("the export borrows objects: %v", err)
	}
	p.must(2, "workspace", "export", id, dir)
	if rows := p.workspaces(); rows[0].Work != "imported" {
		t.Errorf("%+v", rows)
	}
	p.write(filepath.Join(rows[0].Dir, "tree", "half"), "more", 0o600)
	if out := p.must(1, "workspace", "drop", id); !strings.Contains(out, "it was changed after it was imported") {
		t.Error(out)
	}
	p.must(0, "workspace", "drop", id, "--lose", "1")
	p.gone(rows...)
}

// TestDiskIsLow: no session is started without room; what is safe is removed for it first, whatever its
// age. Nothing was claimed for a run that was refused.
func TestDiskIsLow(t *testing.T) {
	t.Parallel()
	p := newProject(t, fixes, "x")
	p.must(0, p.work()...)
	rows := p.workspaces()
	p.must(0, "issue", "new", "--repo", p.repo, "--title", "Another one")
	second := []string{"run", "2", "--repo", p.repo, "--command", p.agent, "--checks", "grep -qx fixed answer", "--sandbox", p.level}
	p.configure("disk:\n  least-free: 900TiB\n")
	if out := p.must(7, second...); !strings.Contains(out, "less than disk.least-free, 900.0 TiB; 1 workspaces were removed for it") ||
		!strings.Contains(out, "next: interlock workspace sweep --imported") {
		t.Error(out)
	}
	p.gone(rows...)
	if len(p.runs()) != 1 || len(p.refs("refs/interlock/claims/")) != 1 {
		t.Error("the second issue was claimed")
	}
	p.configure("disk:\n  most: 1KiB\n")
	if out := p.must(6, second...); !strings.Contains(out, "more than disk.most, 1.0 KiB") {
		t.Error(out)
	}
	p.configure("disk:\n  most: 1TiB\n")
	p.must(0, second...)
}
