package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// demoResult is the last line of `interlock demo --json`.
type demoResult struct {
	Result struct {
		Issue  int64  `json:"issue"`
		Run    string `json:"run"`
		State  string `json:"state"`
		Change int64  `json:"change"`
		Head   string `json:"head"`
		Branch string `json:"branch"`
		Base   string `json:"base"`
		Commit string `json:"base_commit"`
		Checks struct {
			Passed bool `json:"passed"`
			Tests  int  `json:"tests"`
		} `json:"checks"`
		Repo    string `json:"repo"`
		Sandbox string `json:"sandbox"`
	} `json:"result"`
}

// TestDemo runs the demo as a newcomer does, once to the end, and looks at what it says and at
// what is in the repository. The second half is without bubblewrap, and for a person to read.
func TestDemo(t *testing.T) {
	t.Parallel()
	t.Run("here", func(t *testing.T) {
		t.Parallel()
		checkDemo(t, sandboxLevel(t))
	})
	t.Run("without bubblewrap", func(t *testing.T) {
		t.Parallel()
		p := &project{t: t, state: filepath.Join(t.TempDir(), "state")}
		cmd, out := p.command([]string{"PATH=" + pathWithout(t, "bwrap")}, "demo")
		if code := p.end(cmd, cmd.Run()); code != 0 {
			t.Fatalf("exit %d\n%s", code, out)
		}
		for _, want := range []string{
			"sandbox: none: the demo's agent is our own", "change 1: Median", "checks: passed", "\n+", "4 tests ran",
			"interlock change accept 1 --repo " + filepath.Join(p.state, "demo", "1", "stats"), "--state-dir " + p.state,
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("it does not say %q:\n%s", want, out)
			}
		}
	})
}

func checkDemo(t *testing.T, level string) {
	p := &project{t: t, state: filepath.Join(t.TempDir(), "state")}
	cmd, _ := p.command(nil, "demo", "--json")
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = nil, &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("demo: %v\n%s%s", err, out, errs.Bytes())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("not a JSON object: %s", line)
		}
	}
	var d demoResult
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &d); err != nil {
		t.Fatal(err)
	}
	r := d.Result
	if r.State != "in review" || r.Change != 1 || r.Issue != 1 || !r.Checks.Passed || r.Checks.Tests != 4 || r.Sandbox != level {
		t.Errorf("result %+v", r)
	}
	p.repo = r.Repo
	if tip := p.git("-C", r.Repo, "rev-parse", r.Branch); tip != r.Head || len(r.Head) != 40 {
		t.Errorf("the branch is at %s, the head is %s", tip, r.Head)
	}
	if base := p.git("-C", r.Repo, "rev-parse", r.Base); base != r.Commit || p.git("-C", r.Repo, "status", "--porcelain") != "" {
		t.Errorf("the base was touched: %s", base)
	}
	for rev, pass := range map[string]bool{r.Head: true, r.Base: false} {
		dir := filepath.Join(t.TempDir(), "tree")
		p.git("clone", "-q", r.Repo, dir)
		p.git("-C", dir, "checkout", "-q", "--detach", rev)
		test := exec.Command("go", "test", "./...")
		test.Dir = dir
		if out, err := test.CombinedOutput(); (err == nil) != pass {
			t.Errorf("go test at %s: %v\n%s", rev, err, out)
		}
	}
}

// pathWithout makes a PATH in which one program is not there.
func pathWithout(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range filepath.SplitList(os.Getenv("PATH")) {
		entries, err := os.ReadDir(d)
		if err != nil {
			continue // a PATH may name what is not there
		}
		for _, e := range entries {
			if e.Name() == program {
				continue
			}
			if err := os.Symlink(filepath.Join(d, e.Name()), filepath.Join(dir, e.Name())); err != nil && !os.IsExist(err) {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// TestRunWithoutBubblewrap: other agents than the demo's need the sandbox, and the refusal says
// how to get it.
func TestRunWithoutBubblewrap(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "HURRY")
	p.level = "full"
	cmd, out := p.command([]string{"PATH=" + pathWithout(t, "bwrap")}, p.work()...)
	if code := p.end(cmd, cmd.Run()); code != 7 || !strings.Contains(out.String(), "apt-get install bubblewrap") {
		t.Errorf("exit %d, want 7 with the remedy\n%s", code, out)
	}
	if rows := p.runs(); len(rows) != 0 {
		t.Errorf("runs: %+v, want none", rows)
	}
}
