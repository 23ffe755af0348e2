package cgroup_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"interlock/internal/sandbox/cgroup"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestOnlyWhatIsOurs: nothing but a cgroup that was made here is ever killed or removed, and a
// missing directory proves nothing where no cgroup could have been.
func TestOnlyWhatIsOurs(t *testing.T) {
	t.Parallel()
	kept := filepath.Join(t.TempDir(), "kept")
	must(t, os.Mkdir(kept, 0o700))
	for _, dir := range []string{kept, "/", "/sys/fs/cgroup", "interlock-relative", "../interlock-x", filepath.Join(kept, "other-interlock-x")} {
		if err := cgroup.End(t.Context(), dir); err == nil {
			t.Errorf("End of %s", dir)
		}
		if err := cgroup.Clear(t.Context(), dir); err == nil {
			t.Errorf("Clear of %s", dir)
		}
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	missing := filepath.Join(t.TempDir(), "interlock-missing")
	if err := cgroup.End(t.Context(), missing); err == nil || !strings.Contains(err.Error(), "not in a cgroup2 file system") {
		t.Errorf("a missing directory is taken for a proof: %v", err)
	}
	for _, dir := range []string{"", missing} { // of version 1 there is no proof to be had, only to tidy up
		must(t, cgroup.Clear(t.Context(), dir))
	}
}

// TestMakeLeavesNothingHalfDone: where a cgroup cannot be what it is for, none of its kind stays.
func TestMakeLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() // the kernel puts no files into its directories
	limits := cgroup.Limits{Tasks: 10, Memory: 1 << 30}
	for name, p := range map[string]cgroup.Place{
		"main": {Main: dir}, "tasks": {Tasks: dir}, "memory": {Memory: dir}, "none": {Main: filepath.Join(dir, "nosuch")},
	} {
		if g, err := cgroup.Make(p, "x", limits); err == nil || g.Main+g.Tasks+g.Memory != "" {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	place, _ := cgroup.Find()
	if place.Main != "" { // the first is made, the second fails: both are gone
		before, err := os.ReadDir(place.Main)
		must(t, err)
		if _, err := cgroup.Make(cgroup.Place{Main: place.Main, Tasks: dir}, "half-done", limits); err == nil {
			t.Error("half of it is a success")
		}
		if strings.Contains(list(t, place.Main), "half-done") {
			t.Errorf("left: %s; before: %v", list(t, place.Main), before)
		}
	}
	if g, err := cgroup.Make(cgroup.Place{}, "x", limits); err != nil || g.Hit() != "" {
		t.Errorf("where nothing can be had nothing is made: %+v, %v", g, err)
	}
}

func list(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// TestLifeOfAGroup: on the cgroups that this machine has, a group is named after its session in a
// way that names nothing else, what is started in it is in it from the first moment on, and its end
// kills that and leaves no directory.
func TestLifeOfAGroup(t *testing.T) {
	t.Parallel()
	place, why := cgroup.Find()
	if place.Main+place.Tasks+place.Memory == "" {
		if os.Getenv("INTERLOCK_CI") != "" {
			t.Fatalf("there are no cgroups here: %+v", why)
		}
		t.Skipf("there are no cgroups here: %+v", why)
	}
	g, err := cgroup.Make(place, "../1-a/\n", cgroup.Limits{Tasks: 1000, Memory: 1 << 30})
	must(t, err)
	dirs := []string{}
	for _, dir := range []string{g.Main, g.Tasks, g.Memory} {
		if dir != "" {
			dirs = append(dirs, dir)
		}
	}
	t.Cleanup(func() {
		for _, dir := range dirs {
			_ = cgroup.Clear(context.Background(), dir)
		}
	})
	for _, dir := range dirs {
		if parent := filepath.Dir(dir); parent != place.Main && parent != place.Tasks && parent != place.Memory || !strings.Contains(dir, "interlock-___1-a__-") {
			t.Errorf("it is at %s", dir)
		}
	}
	cmd := exec.Command("/bin/sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if g.Main != "" {
		f, err := os.Open(g.Main)
		must(t, err)
		defer f.Close()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(f.Fd())
	}
	runtime.LockOSThread()
	must(t, g.Around(cmd.Start))
	runtime.UnlockOSThread()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil || !strings.Contains(" "+strings.Join(strings.Fields(string(text)), " ")+" ", " "+strconv.Itoa(cmd.Process.Pid)+" ") {
			t.Errorf("it is not in %s: %q, %v", dir, text, err)
		}
	}
	if hit := g.Hit(); hit != "" {
		t.Errorf("it has run into its limit of %s", hit)
	}
	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, dir := range []string{g.Tasks, g.Memory} { // the first kills it, whichever it is
		must(t, cgroup.Clear(ctx, dir))
	}
	if g.Main != "" {
		must(t, cgroup.End(ctx, g.Main))
		must(t, cgroup.End(ctx, g.Main)) // a second time finds it gone, which is a proof here
	}
	if err := <-waited; err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", dir, err)
		}
	}
}
