package rows_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"interlock/internal/bench"
	"interlock/internal/bench/rows"
	"interlock/internal/covered"
)

func TestMain(m *testing.M) {
	if code, handled := rows.Reenter(os.Args); handled {
		os.Exit(code)
	}
	covered.Children()
	os.Exit(m.Run())
}

// TestRowsMeasure: each row can be measured, with real parts and in small. What it measures is judged by
// nobody here but where it must be so on any machine: nothing is lost, nothing fails. Rivals cannot be
// had here, and the rows that need one say so.
func TestRowsMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	for _, row := range rows.All() {
		t.Run(row.ID+" "+row.What, func(t *testing.T) {
			e := &bench.Env{Dir: t.TempDir(), Root: "../../..", Rivals: "nowhere", Rounds: 1, Seconds: 20 * time.Millisecond, Part: 500}
			for _, r := range bench.Measure(t.Context(), e, row) {
				needs := r.Against == "River on SQLite" || strings.HasPrefix(r.Against, "etcd") || strings.HasPrefix(r.Against, "SQLite")
				switch {
				case needs && (r.Outcome != bench.NotMeasured || !strings.Contains(r.Reason, "build nowhere")):
					t.Errorf("without its rival: %+v", r)
				case !needs && r.Outcome == bench.NotMeasured:
					missing(t, r)
				case (r.Figure == "lost" || r.Figure == "unsynced" || r.Figure == "failures") && r.Outcome == bench.Fails:
					t.Errorf("%+v", r)
				case r.Figure == "transactions" && r.Outcome == bench.Fails:
					t.Errorf("a step took %v transactions", r.Is)
				}
			}
		})
	}
}

// missing fails a row that could not be measured, unless a program is not installed.
func missing(t *testing.T, r bench.Result) {
	t.Helper()
	for _, program := range []string{"bwrap", "strace", "bubblewrap"} {
		if strings.Contains(r.Reason, program) && os.Getenv("INTERLOCK_CI") == "" {
			t.Skipf("%s cannot be measured here: %s", r.Figure, r.Reason)
		}
	}
	t.Errorf("%s was not measured: %s", r.Figure, r.Reason)
}

// TestMainSays: the exit code is that of what was found, and a mistake is told.
func TestMainSays(t *testing.T) {
	t.Parallel()
	for args, c := range map[string]struct {
		code int
		says string
	}{
		"--rows G99":         {2, `there is no row "G99"`},
		"--rounds 0":         {2, "--help"},
		"--seconds 0":        {2, "--help"},
		"--nonsense":         {2, "nonsense"},
		"more":               {2, "--help"},
		"--dir /nonexistent": {2, "/nonexistent"},
		"--dir /dev/shm":     {2, "in memory"},
		"--dir . --rows G8 --rounds 1 --seconds 0.01 --root /nonexistent --json": {1, `"outcome": "not measured"`},
	} {
		if args == "--dir /dev/shm" {
			if _, err := os.Stat("/dev/shm"); err != nil {
				continue
			}
		}
		var out, errs strings.Builder
		if code := rows.Main(strings.Fields(args), &out, &errs); code != c.code || !strings.Contains(out.String()+errs.String(), c.says) {
			t.Errorf("%s: exit %d, want %d and %q\n%s%s", args, code, c.code, c.says, out.String(), errs.String())
		}
	}
}

// TestSideRefuses: a process that is no side of a row says so and ends.
func TestSideRefuses(t *testing.T) {
	t.Parallel()
	wrong := [][]string{{"side"}, {"side", "nothing", t.TempDir(), "1"}, {"side", "leases", t.TempDir(), "many"}, {"side", "lease-log", "/proc/none", "2"}}
	for _, what := range []string{"leases", "lease-log", "steps", "runs", "kept", "acks", "victim", "heir", "bare"} {
		wrong = append(wrong, []string{"side", what, "/proc/none", "1"})
	}
	for _, args := range wrong {
		if code, handled := rows.Reenter(append([]string{"bench"}, args...)); !handled || code != 1 {
			t.Errorf("%q: handled %t, exit %d", args, handled, code)
		}
	}
	if _, handled := rows.Reenter([]string{"bench", "--rows"}); handled {
		t.Error("a command line was taken for a side")
	}
}
