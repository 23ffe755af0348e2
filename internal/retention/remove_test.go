package retention_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"interlock/internal/git"
	"interlock/internal/retention"
	"interlock/internal/run"
	"interlock/internal/store"
)

// stopped is a context that ends after so many looks at it.
type stopped struct {
	context.Context
	left int
}

func (c *stopped) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return c.Context.Err()
}

// TestCutShort: a removal that is cut short at any moment has either not begun, or is finished by the
// next sweep; a workspace that is half deleted is never found under its name.
func TestCutShort(t *testing.T) {
	t.Parallel()
	s := newState(t)
	room, head := s.worked(commits + "; mkdir d; for i in 1 2 3 4 5; do echo $i > d/$i; done")
	s.tips = []string{head}
	s.rest(run.InReview, head)
	whole, err := s.keep.List(t.Context(), "")
	must(t, err)
	cut := false
	for n := 100; !cut; n += 3 {
		_, err := s.keep.Drop(&stopped{t.Context(), n}, "1-a", nil)
		left, _ := filepath.Glob(filepath.Join(s.dir, "work", "gone-*"))
		_, there := os.Stat(room.Root)
		switch {
		case len(left) == 1 && os.IsNotExist(there):
			cut = true
		case there == nil && len(left) == 0:
			if now, err := s.keep.List(t.Context(), ""); err != nil || now[0].Files != whole[0].Files {
				t.Fatalf("half of it is gone: %+v, %v", now, err)
			}
		default:
			t.Fatalf("after %d looks: left %q, %v (%v)", n, left, there, err)
		}
	}
	if list, err := s.keep.List(t.Context(), ""); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if swept := s.sweep(retention.Hint{}); swept.Finished != 1 {
		t.Errorf("%+v", swept)
	}
	if left, err := os.ReadDir(filepath.Join(s.dir, "work")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestManyAtOnce: of many sweeps, drops and keeps at once each removal is done by one, and what somebody
// was told to be kept is there.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 4 {
		s := newState(t)
		room, head := s.worked(commits)
		s.tips = []string{head}
		s.rest(run.InReview, head)
		var mu sync.Mutex
		removed, kept := 0, false
		var all sync.WaitGroup
		for i := range 9 {
			all.Go(func() {
				n, is := 0, false
				switch i % 3 {
				case 0:
					swept, err := s.keep.Sweep(t.Context(), retention.Hint{})
					if err != nil && !strings.Contains(err.Error(), "another command") {
						t.Error(err)
					}
					n = len(swept.Workspaces)
				case 1:
					d, _ := s.keep.Drop(t.Context(), "1-a", nil)
					n = len(d.Workspaces)
				case 2:
					changed, err := s.keep.Keep(t.Context(), "1-a", true)
					is = changed && err == nil
				}
				mu.Lock()
				defer mu.Unlock()
				removed, kept = removed+n, kept || is
			})
		}
		all.Wait()
		_, err := os.Stat(room.Tree())
		if removed > 1 || (removed == 1) != os.IsNotExist(err) {
			t.Errorf("round %d: removed %d times; %v", round, removed, err)
		}
		if kept {
			if _, err := s.keep.Drop(t.Context(), "1-a", nil); err == nil {
				t.Error("it was kept, and dropped")
			}
		}
	}
}

// TestLogsStay: logs go when their run is finished for long and nothing else of it is kept; those of
// runs that the state does not know stay.
func TestLogsStay(t *testing.T) {
	t.Parallel()
	s := newState(t)
	room, _ := s.worked("true")
	log := filepath.Join(s.dir, "logs", "1-a", "1-agent.log")
	strange := filepath.Join(s.dir, "logs", "9-z", "1-agent.log")
	must(t, os.MkdirAll(filepath.Dir(strange), 0o700))
	must(t, os.WriteFile(strange, nil, 0o600))
	there := func(file, when string, want bool) {
		t.Helper()
		if _, err := os.Stat(file); (err == nil) != want {
			t.Errorf("%s, %s: %v", file, when, err)
		}
	}
	s.sweep(retention.Hint{AnyAge: true})
	there(log, "while the run lives", true)
	s.rest(run.Done, "")
	s.keep.Limits.Workspaces = 0
	s.sweep(retention.Hint{})
	there(log, "while a workspace is there", true)
	s.keep.Limits.Logs = 0
	s.sweep(retention.Hint{AnyAge: true})
	there(room.Root, "any age", false)
	there(log, "for ever", true)
	s.keep.Limits.Logs = time.Minute
	_, err := s.keep.Keep(t.Context(), "1-a", true)
	must(t, err)
	s.sweep(retention.Hint{})
	there(log, "kept", true)
	_, err = s.keep.Keep(t.Context(), "1-a", false)
	must(t, err)
	if swept := s.sweep(retention.Hint{}); swept.Logs != 1 {
		t.Errorf("%+v", swept)
	}
	there(log, "old", false)
	there(strange, "of no run", true)
}

// TestManyRefs: the refs of very many runs are in one file after a sweep, and each is where it was.
func TestManyRefs(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.rest(run.Done, "")
	for i := range 3 {
		var all []git.Update
		for j := range 400 {
			all = append(all, git.Update{Ref: fmt.Sprintf("refs/interlock/runs/%d-p/1-x", i*400+j), New: s.base.Hash})
		}
		must(t, s.repo.UpdateRefs(t.Context(), all...))
	}
	before, err := s.repo.Refs(t.Context(), "refs/")
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(s.dir, "work"), 0o700))
	s.sweep(retention.Hint{})
	after, err := s.repo.Refs(t.Context(), "refs/")
	if err != nil || !maps.Equal(before, after) || len(after) != 1201 {
		t.Errorf("%d refs, before %d; %v", len(after), len(before), err)
	}
	if loose, _ := filepath.Glob(filepath.Join(s.repo.Dir(), "refs", "interlock", "runs", "*")); len(loose) != 0 {
		t.Errorf("%d runs have loose refs", len(loose))
	}
}

// TestRunOfNoState: workspaces of a run that the state does not know are shown, and stay.
func TestRunOfNoState(t *testing.T) {
	t.Parallel()
	s := newState(t)
	must(t, os.MkdirAll(filepath.Join(s.dir, "work", "9-z", "1", "tree"), 0o700))
	s.rest(run.Done, "")
	all, err := s.keep.List(t.Context(), "")
	if err != nil || len(all) != 1 || all[0].Work != retention.Open || all[0].Finished != nil {
		t.Fatalf("%+v, %v", all, err)
	}
	if swept := s.sweep(retention.Hint{AnyAge: true, Imported: true}); len(swept.Workspaces) != 0 {
		t.Errorf("%+v", swept)
	}
	_, err = s.keep.Drop(t.Context(), "9-z", []string{"1"})
	s.refused(err, run.ExitRefused, "its run is not in this state")
	_, err = s.keep.Drop(t.Context(), "1-a", nil)
	s.refused(err, run.ExitRefused, "has no workspace")
}

// TestReady: room is made by what is safe alone, the oldest first, and only as much as is needed.
func TestReady(t *testing.T) {
	t.Parallel()
	s := newState(t)
	_, head := s.worked("head -c 3000000 /dev/urandom > big; " + commits)
	s.attempt("head -c 3000000 /dev/urandom > big") // never imported
	s.tips = []string{head}
	s.rest(run.InReview, head)
	s.keep.Limits = retention.Limits{LeastFree: 1 << 62}
	err := s.keep.Ready(t.Context())
	s.refused(err, run.ExitUnfit, "less than disk.least-free")
	if list, _ := s.works(); !slices.Equal(list, []string{"2 not imported"}) {
		t.Errorf("%q", list)
	}
	s.keep.Limits = retention.Limits{Most: 2_000_000}
	s.refused(s.keep.Ready(t.Context()), run.ExitBusy, "more than disk.most, 1.9 MiB")
	s.keep.Limits.Most = 1 << 30
	must(t, s.keep.Ready(t.Context()))
	if _, err := s.keep.Drop(t.Context(), "1-a", []string{"2"}); err != nil {
		t.Fatal(err)
	}
	s.keep.Limits.Most = 5_000_000 // of the pack of the import there are three
	must(t, s.keep.Ready(t.Context()))
}

// TestEnough: a sweep that is to make room ends when there is enough.
func TestEnough(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.worked("true")
	s.rest(run.Done, "")
	if swept := s.sweep(retention.Hint{AnyAge: true, Enough: func() (bool, error) { return true, nil }}); len(swept.Workspaces) != 0 {
		t.Errorf("%+v", swept)
	}
	stop := s.keep.Begin(t.Context())
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(s.dir, "work", "1-a")); os.IsNotExist(err) {
			break
		}
	}
	if swept := stop(); len(swept.Workspaces) != 1 {
		t.Errorf("beside other work: %+v", swept)
	}
}

// TestExport: all that agents left comes into a repository that borrows nothing, and is safe then; what
// cannot come in is named, and stays.
func TestExport(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.worked(commits)
	s.attempt("git checkout -q -b other; echo o > o; git add o; git commit -qm o; git checkout -q interlock/issue-1; echo three > three")
	s.attempt("rm -rf .git; echo lost > four")
	s.rest(run.Parked, "")
	list, _ := s.works()
	if want := []string{"1 imported", "2 not imported", "3 not imported"}; !slices.Equal(list, want) {
		t.Fatalf("%q", list)
	}
	dir := filepath.Join(t.TempDir(), "out")
	x, err := s.keep.Export(t.Context(), "1-a", dir)
	must(t, err)
	if len(x.Left) != 1 || !strings.Contains(x.Left[0], "workspace 3: ") || !strings.Contains(x.Left[0], "never run git in there") {
		t.Errorf("%q", x.Left)
	}
	for rev, want := range map[string]string{"attempt-1:one": "one", "attempt-1:two": "two", "attempt-2:three": "three", "attempt-2-other:o": "o"} {
		if got := s.git("-C", dir, "show", rev); got != want {
			t.Errorf("%s: %q", rev, got)
		}
	}
	if got := s.git("-C", dir, "status", "--porcelain"); got != "" {
		t.Errorf("status: %s", got)
	}
	must(t, os.RemoveAll(s.repo.Objects()))
	s.git("-C", dir, "fsck", "--strict") // it needs nothing of the engine's
	_, err = s.keep.Export(t.Context(), "1-a", dir)
	s.refused(err, run.ExitUsage, "is there already")
}

// TestExportIsSafe: after an export a workspace can be dropped, and nothing is lost; not while another
// process holds the issue, who may be doing anything.
func TestExportIsSafe(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.attempt(commits)
	s.rest(run.Parked, "")
	other := s.keep.Self
	other.ID = "another"
	l, err := s.store.Acquire(t.Context(), other, store.Key("local:1", 1), time.Minute, 0)
	must(t, err)
	_, err = s.keep.Export(t.Context(), "1-a", filepath.Join(t.TempDir(), "out"))
	s.refused(err, run.ExitHeld, "is held by")
	must(t, s.store.Release(t.Context(), l))
	x, err := s.keep.Export(t.Context(), "1-a", filepath.Join(t.TempDir(), "out"))
	if err != nil || len(x.Branches) != 1 || len(x.Left) != 0 {
		t.Fatalf("%+v, %v", x, err)
	}
	if list, _ := s.works(); !slices.Equal(list, []string{"1 imported"}) {
		t.Errorf("%q", list)
	}
	d, err := s.keep.Drop(t.Context(), "1-a", nil)
	if err != nil || len(d.Workspaces) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	if got := s.git("--git-dir", s.repo.Dir(), "show", x.Branches[0].Commit+":two"); got != "two" {
		t.Errorf("%q", got)
	}
	if h, err := s.store.History(t.Context(), "1-a"); err != nil || len(h.Sessions) != 2 || !h.Sessions[1].Ended {
		t.Errorf("%+v, %v", h.Sessions, err)
	}
}
