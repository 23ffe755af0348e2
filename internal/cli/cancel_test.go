package cli_test

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestCancelOfOtherRepository: a run is canceled from anywhere by its name, but not in the name of
// another repository, and not by the number of an issue of another one.
func TestCancelOfOtherRepository(t *testing.T) {
	t.Parallel()
	p, other := newProject(t, slowAgent, "slowly"), newProject(t, slowAgent, "another")
	other.state = p.state
	first := p.start(p.work()...)
	id := p.runs()[0].ID
	if out := p.must(1, "cancel", id, "--repo", other.repo); !strings.Contains(out, "is of another repository") || !strings.Contains(out, "next: interlock cancel "+id+" --repo ") {
		t.Errorf("in the name of another repository:\n%s", out)
	}
	if out := p.must(1, "cancel", "1", "--repo", other.repo); !strings.Contains(out, "issue 1 of this repository has no run") {
		t.Errorf("by the number of another issue 1:\n%s", out)
	}
	if rows := p.runs(); rows[0].State != "implementing" || len(p.processes()) == 0 {
		t.Errorf("the run was touched: %+v", rows)
	}
	cmd, out := p.command(nil, "cancel", id, "--reason", "not needed") // typed in another repository
	cmd.Dir = other.repo
	if code := p.end(cmd, cmd.Run()); code != 0 {
		t.Errorf("from elsewhere: exit %d\n%s", code, out)
	}
	if code := first.wait(); code != 1 {
		t.Errorf("the holder ended with %d, want 1\n%s", code, first.out)
	}
	p.dead()
	p.givenBack("canceled", "not needed")
	if labels, assignees, comments := other.issue(); len(labels)+len(assignees)+len(comments) != 0 {
		t.Errorf("the issue of the other repository was touched: %q %q %q", labels, assignees, comments)
	}
}

// TestHolderInOtherNamespace: the death of a holder in another pid namespace is never guessed. Its
// place is not taken while its lease lives, and afterwards nothing of its session is touched.
func TestHolderInOtherNamespace(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "slowly")
	inside := []string{"--pid", "--fork", "--mount-proc", "--kill-child"}
	if out, err := exec.Command("unshare", append(inside, "true")...).CombinedOutput(); err != nil {
		if os.Getenv("INTERLOCK_CI") != "" {
			t.Fatalf("a pid namespace is needed here: %v\n%s", err, out)
		}
		t.Skipf("no pid namespace can be made here: %v", err)
	}
	cmd, out := p.command(nil, p.work()...)
	cmd.Args = append(append([]string{"unshare"}, inside...), cmd.Args...)
	var err error
	if cmd.Path, err = exec.LookPath("unshare"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := &started{p, cmd, out}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	p.eventually("the agent works", func() bool { return strings.Contains(p.agentLog(), "WORKING") })
	if out := p.must(3, p.work()...); !strings.Contains(out, "another pid namespace") {
		t.Errorf("while it lives:\n%s", out)
	}
	first.signal(syscall.SIGKILL)
	first.wait()
	p.expire()
	if out := p.must(6, p.work()...); !strings.Contains(out, "another pid namespace") || !strings.Contains(out, "then: type the command there") {
		t.Errorf("its lease is over, its session is not known to be:\n%s", out)
	}
	if got := p.refs("refs/heads/interlock/"); len(got) != 0 {
		t.Errorf("pushed: %q", got)
	}
}

// expire makes every lease older, as if time had passed on the clock of the store. A process has to
// have the state open, or to have been killed: what was closed is sealed, and no longer to be written.
func (p *project) expire() {
	p.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(p.state, "state.db"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer db.Close()
	res, err := db.Exec("UPDATE leases SET expires = expires - ?", int64(time.Minute))
	if err != nil {
		p.t.Fatal(err)
	}
	if n, err := res.RowsAffected(); n != 1 || err != nil {
		p.t.Fatalf("%d leases are older now: %v", n, err)
	}
}
