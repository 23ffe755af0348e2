package doctor

import (
	"context"
	"errors"
	"strings"
	"testing"

	"interlock/internal/sandbox"
)

// able is a machine that has everything.
func able() sandbox.Facts {
	return sandbox.Facts{Kernel: "6.18.0", Bwrap: "/usr/bin/bwrap", BwrapVersion: "0.8.0", Landlock: 7, Cgroup: "/sys/fs/cgroup/x", Tasks: "/sys/fs/cgroup/x", Memory: "/sys/fs/cgroup/x"}
}

func missing(all []Finding) (what []string) {
	for _, f := range all {
		if f.Mark == Missing {
			what = append(what, f.What)
		}
	}
	return what
}

// TestConfinement: what is missing is named, and where level full cannot be had there is a remedy.
func TestConfinement(t *testing.T) {
	t.Parallel()
	if got := missing(confinement(able())); got != nil {
		t.Errorf("a machine that has everything lacks %q", got)
	}
	for name, change := range map[string]func(*sandbox.Facts){
		"bubblewrap":      func(f *sandbox.Facts) { f.Bwrap, f.BwrapVersion = "", "" },
		"user namespaces": func(f *sandbox.Facts) { f.UserNS = errors.New("no permission") },
		"seccomp":         func(f *sandbox.Facts) { f.Seccomp = errors.New("not supported") },
		"Landlock":        func(f *sandbox.Facts) { f.Landlock = 0 },
		"full":            func(f *sandbox.Facts) { f.Kernel = "5.4.0" },
	} {
		facts := able()
		change(&facts)
		all := confinement(facts)
		if got := strings.Join(missing(all), ", "); !strings.Contains(got, name) || !strings.Contains(got, "level full") {
			t.Errorf("%s: missing are %q", name, got)
		}
		if last := all[len(all)-1]; last.Remedy == "" {
			t.Errorf("%s: no remedy", name)
		}
	}
}

func TestWithoutCgroup(t *testing.T) {
	t.Parallel()
	facts := able()
	facts.Cgroup, facts.CgroupReason = "", "it is read-only"
	facts.Tasks, facts.TasksReason = "", "it is read-only"
	all := confinement(facts)
	if got := missing(all); got != nil {
		t.Errorf("level full can do without a cgroup, but %q are missing", got)
	}
	if !strings.Contains(all[3].Found, "it is read-only") || all[3].Mark != Weaker {
		t.Errorf("cgroup: %+v", all[3])
	}
	with, without := len(residuals(able())), len(residuals(facts))
	if without != with+1 {
		t.Errorf("%d residuals with a cgroup, %d without", with, without)
	}
}

// TestExamine runs on this machine, whatever it has.
func TestExamine(t *testing.T) {
	t.Parallel()
	ok := Examine(t.Context(), func(context.Context) (string, string, error) { return "/state", "", nil })
	bad := Examine(t.Context(), func(context.Context) (string, string, error) {
		return "", "", errors.New("is on NFS \x1b[31m")
	})
	if bad.Fit {
		t.Error("a machine whose state directory cannot be opened is fit")
	}
	if text := bad.Text(); !strings.Contains(text, `is on NFS \x1b`) || !strings.Contains(text, "NOT fit") || !strings.Contains(text, "remedy: ") {
		t.Errorf("text:\n%s", text)
	}
	if fit := missing(ok.Findings) == nil; ok.Fit != fit {
		t.Errorf("fit is %t, missing are %q", ok.Fit, missing(ok.Findings))
	}
	if len(ok.Residuals) == 0 || !strings.Contains(ok.Text(), "what remains") {
		t.Errorf("nothing is said to remain:\n%s", ok.Text())
	}
}
