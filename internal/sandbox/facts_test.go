package sandbox_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"interlock/internal/sandbox"
)

// fit is a machine on which everything can be had.
func fit() sandbox.Facts {
	return sandbox.Facts{Kernel: "6.12.1-amd64", Bwrap: "/usr/bin/bwrap", Landlock: 6}
}

func TestCheckNamesReasonAndRemedy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change         func(f *sandbox.Facts)
		level          sandbox.Level
		network        string
		reason, remedy string
	}{
		"fit":            {func(f *sandbox.Facts) {}, sandbox.Full, "host", "", ""},
		"old kernel":     {func(f *sandbox.Facts) { f.Kernel = "5.18.9" }, sandbox.Full, "host", "5.18.9 is older", "kernel"},
		"oldest kernel":  {func(f *sandbox.Facts) { f.Kernel, f.Landlock = "5.19.0", 2 }, sandbox.Full, "none", "", ""},
		"odd kernel":     {func(f *sandbox.Facts) { f.Kernel = "plan9" }, sandbox.Full, "host", "older", "kernel"},
		"no bubblewrap":  {func(f *sandbox.Facts) { f.Bwrap = "" }, sandbox.Full, "host", "bubblewrap is not installed", "apt-get install bubblewrap"},
		"no namespaces":  {func(f *sandbox.Facts) { f.UserNS = errors.New("EPERM") }, sandbox.Full, "host", "EPERM", " "},
		"no landlock":    {func(f *sandbox.Facts) { f.Landlock = 0 }, sandbox.Full, "none", "Landlock is not active", "lsm="},
		"no scopes":      {func(f *sandbox.Facts) { f.Landlock = 5 }, sandbox.Full, "host", "abstract sockets", "6.12"},
		"no scopes, net": {func(f *sandbox.Facts) { f.Landlock = 5 }, sandbox.Full, "none", "", ""},
		"none":           {func(f *sandbox.Facts) { *f = sandbox.Facts{} }, sandbox.None, "host", "", ""},
		"none, no net":   {func(f *sandbox.Facts) {}, sandbox.None, "none", "network", "full"},
		"unknown level":  {func(f *sandbox.Facts) {}, "most", "host", "no such level", "full, landlock or none"},
		"no seccomp":     {func(f *sandbox.Facts) { f.Seccomp = errors.New("ENOSYS") }, sandbox.Full, "host", "ENOSYS", "CONFIG_SECCOMP_FILTER"},
		"landlock":       {func(f *sandbox.Facts) { f.Bwrap, f.UserNS = "", errors.New("EPERM") }, sandbox.Landlock, "host", "", ""},
		"landlock, net":  {func(f *sandbox.Facts) {}, sandbox.Landlock, "none", "network", "full"},
		"landlock, none": {func(f *sandbox.Facts) { f.Landlock = 0 }, sandbox.Landlock, "host", "Landlock is not active", "lsm="},
		"landlock, old":  {func(f *sandbox.Facts) { f.Landlock = 2 }, sandbox.Landlock, "host", "truncated", "6.2"},
		"landlock, call": {func(f *sandbox.Facts) { f.Seccomp = errors.New("ENOSYS") }, sandbox.Landlock, "host", "ENOSYS", "CONFIG_SECCOMP_FILTER"},
		"no network":     {func(f *sandbox.Facts) {}, sandbox.Full, "", "unknown", "host or none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fit()
			c.change(&f)
			err := f.CheckNetwork(c.level, c.network)
			if c.reason == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var unfit *sandbox.UnfitError
			if !errors.As(err, &unfit) || !strings.Contains(unfit.Reason, c.reason) || !strings.Contains(unfit.Remedy+" ", c.remedy) {
				t.Errorf("got %v", err)
			}
			if _, err := sandbox.Prepare(t.Context(), f, sandbox.Spec{Log: "/nonexistent/x", Policy: sandbox.Policy{Level: c.level, Network: c.network}}); !errors.As(err, &unfit) {
				t.Errorf("Prepare did not refuse: %v", err)
			}
		})
	}
}

func TestFactsAsJSON(t *testing.T) {
	t.Parallel()
	f := fit()
	f.UserNS = errors.New("EPERM")
	b, err := json.Marshal(f)
	must(t, err)
	var got struct {
		Kernel string
		Fit    map[string]struct {
			OK             bool
			Reason, Remedy string
		}
	}
	must(t, json.Unmarshal(b, &got))
	full := got.Fit["full"]
	if full.OK || full.Reason == "" || full.Remedy == "" || !got.Fit["none"].OK || got.Kernel != f.Kernel {
		t.Errorf("%s", b)
	}
}

// A bubblewrap that is there but cannot work must be found out by trying it.
func TestInspectTriesBubblewrap(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Symlink("/bin/false", filepath.Join(dir, "bwrap")))
	t.Setenv("PATH", dir)
	f := sandbox.Inspect(t.Context())
	if f.Bwrap == "" || f.UserNS == nil {
		t.Errorf("%+v", f)
	}
	t.Setenv("PATH", "/nonexistent")
	if f = sandbox.Inspect(t.Context()); f.Bwrap != "" || f.Check(sandbox.Full) == nil {
		t.Errorf("%+v", f)
	}
}

func TestInside(t *testing.T) {
	t.Parallel()
	p := sandbox.Policy{
		Level: sandbox.Full, Home: "/s/room/home", Temp: "/s/room/tmp",
		Mounts: []sandbox.Mount{{Source: "/s/room/tree", Target: "/workspace"}, {Source: "/s/room/tree/a", Target: "/a"}, {Source: "/s/f", Target: "/interlock/agent/f"}},
		Tools:  []sandbox.Mount{{Source: "/opt/go1", Target: "/opt/go"}},
	}
	got := map[string]string{}
	want := map[string]string{
		"/s/room/tree": "/workspace", "/s/room/tree/x/y": "/workspace/x/y", "/s/room/tree/a/y": "/a/y", "/s/room/treetop": "/s/room/treetop",
		"/s/f": "/interlock/agent/f", "/s/room/home/x": "/home/agent/x", "/s/room/tmp": "/tmp", "/opt/go1/bin": "/opt/go/bin", "/usr": "/usr",
	}
	for path := range want {
		got[path] = p.Inside(path)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	p.Level = sandbox.None
	if s := p.Inside("/s/room/tree"); s != "/s/room/tree" {
		t.Error(s)
	}
}
