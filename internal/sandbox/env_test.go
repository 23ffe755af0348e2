package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"interlock/internal/sandbox"
	"interlock/internal/toolchain"
)

// The tool chains of this machine must work inside, on a PATH of which every directory is there.
func TestToolchainsWorkInside(t *testing.T) {
	t.Parallel()
	f := needFull(t)
	mounts, path := toolchain.Find(t.Context(), os.Environ())
	for _, m := range mounts {
		if m.Write {
			t.Errorf("%s is writable", m.Target)
		}
		if home, err := os.UserHomeDir(); err == nil && (m.Source == home || strings.HasPrefix(m.Source, home+"/.ssh") || m.Source == filepath.Join(home, ".cargo")) {
			t.Errorf("%s is shown", m.Source)
		}
	}
	script := "IFS=:; for d in $PATH; do test -d $d || echo missing $d; done; which interlock;"
	var tools []string
	for tool, verb := range map[string]string{"go": "version", "node": "--version", "cargo": "--version", "python3": "--version"} {
		if out, err := exec.Command(tool, verb).CombinedOutput(); err != nil { // a shim without a tool chain, for example
			t.Logf("%s is left out, it does not work outside either: %v %.200s", tool, err, out)
			continue
		}
		tools = append(tools, tool)
		script += tool + " " + verb + " >/dev/null && echo works " + tool + ";"
	}
	p := newPlace(t, f, sandbox.Full, script)
	p.spec.Policy.Tools = mounts
	p.spec.Policy.Env = toolchain.Env(os.Environ(), sandbox.Full, p.room, path)
	_, out := p.run()
	if strings.Contains(out, "missing") || strings.Count(out, "works") != len(tools) || !strings.Contains(out, "/interlock/bin/interlock") {
		t.Errorf("tools %v:\n%s", tools, out)
	}
}

func TestSingleFilesAndSymlinkedSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := write(t, dir+"/real/agent.sh", "#!/bin/sh\necho the file runs\n")
	must(t, os.Chmod(file, 0o700))
	must(t, os.Symlink("real", dir+"/link"))
	out := confined(t, "/interlock/agent/agent.sh; ls /interlock/dir; echo x >> /interlock/state && cat /interlock/state; echo x >> /interlock/agent/agent.sh",
		sandbox.Mount{Source: dir + "/link/agent.sh", Target: "/interlock/agent/agent.sh"},
		sandbox.Mount{Source: dir + "/link", Target: "/interlock/dir"},
		sandbox.Mount{Source: write(t, dir+"/state", "kept\n"), Target: "/interlock/state", Write: true})
	if !strings.Contains(out, "the file runs\nagent.sh\nkept\nx\n") || !strings.Contains(out, "Read-only") {
		t.Errorf("got %s", out)
	}
}
