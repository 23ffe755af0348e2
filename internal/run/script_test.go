package run_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"interlock/internal/run"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestScripts plays each script of testdata and compares what the run does with the golden file of
// the same name. A line of a script is
//
//	run JSON      start anew with this run
//	KIND JSON     apply this event; a settled event without a key means the effect that is due
//	# text        said in the golden file
func TestScripts(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Parallel()
			script, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(script))
			golden := strings.TrimSuffix(path, ".txt") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("%s (write it anew with -update when this is meant):\n%s", golden, d)
			}
		})
	}
}

func play(t *testing.T, script string) string {
	t.Helper()
	var out strings.Builder
	var r run.Run
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		kind, data, _ := strings.Cut(line, "{")
		kind, data = strings.TrimSpace(kind), "{"+data
		switch {
		case line == "":
			continue
		case strings.HasPrefix(line, "#"):
			fmt.Fprintf(&out, "\n%s\n", line)
			continue
		case kind == "run":
			r = run.Run{}
			if err := json.Unmarshal([]byte(data), &r); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			fmt.Fprintf(&out, "run %s\n%s", r.ID, picture(r))
			continue
		}
		e, err := run.DecodeEvent(kind, []byte(data))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if s, ok := e.(run.Settled); ok && s.Key == "" && len(r.Effects) > 0 {
			s.Key = r.Effects[0].Key
			e, line = s, line+" = "+s.Key
		}
		fmt.Fprintf(&out, "%s\n", line)
		next, added, err := run.Apply(r, e)
		if err != nil {
			fmt.Fprintf(&out, "\trefused: %v\n", err)
			continue
		}
		r = next
		out.WriteString(picture(r))
		for _, f := range added {
			fmt.Fprintf(&out, "\tadded    %s\n", f.Key)
		}
	}
	return out.String()
}

// picture shows what of a run a script is about.
func picture(r run.Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\tstate    %s: %s\n", r.State, r.Reason)
	fmt.Fprintf(&b, "\tat       tip %q head %q pushed %q change %d claim %q\n", r.Tip, r.Head.Hash, r.Pushed, r.Change, r.Claim.Hash)
	fmt.Fprintf(&b, "\tplan     %s %q\n", r.Plan.Lane, r.Plan.Checks)
	fmt.Fprintf(&b, "\tattempt  %d, %d of %d spent", r.Attempt, r.Spent, r.Plan.Attempts)
	if r.Running {
		b.WriteString(", running")
	}
	b.WriteString("\n")
	if r.Verdict != nil {
		fmt.Fprintf(&b, "\tverdict  %s on %s passed %v\n", r.Verdict.Head.Hash, r.Verdict.Base, r.Verdict.Passed)
	}
	if r.Findings != "" {
		fmt.Fprintf(&b, "\tfindings %q\n", r.Findings)
	}
	if r.Next != "" || r.Exit != 0 || r.Precond != "" {
		fmt.Fprintf(&b, "\trests    exit %d, next %q, until %q\n", r.Exit, r.Next, r.Precond)
	}
	if r.Retry != "" {
		fmt.Fprintf(&b, "\tagain    %q, %d sessions allowed\n", r.Retry, r.Allowed)
	}
	for _, f := range r.Effects {
		fmt.Fprintf(&b, "\tpending  %s", f.Key)
		if f.Text != "" {
			fmt.Fprintf(&b, " %q", f.Text)
		}
		b.WriteString("\n")
	}
	return b.String()
}
