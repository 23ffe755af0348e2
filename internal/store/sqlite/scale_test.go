package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/store/sqlite"
)

// pastRuns is how many runs a state has in these tests; make scale sets 100,000.
func pastRuns(t *testing.T) int {
	t.Helper()
	text := os.Getenv("INTERLOCK_RUNS")
	if text == "" {
		return 2000
	}
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}

// fill puts past runs into a state, each with what a run leaves, of ten repositories.
func fill(t *testing.T, s *sqlite.Store, n int) {
	t.Helper()
	for _, q := range []string{
		`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO runs (id, repo, issue, state, live, revision, fence, created, updated, data)
		SELECT i || '-p', 'local:' || (i %% 10), i, CASE i %% 3 WHEN 0 THEN 'done' WHEN 1 THEN 'parked' ELSE 'in review' END, 0, 9, 1,
			i * 1000000000, i * 1000000000, json_object('id', i || '-p', 'task', json_object('title', 'past ' || i), 'reason', hex(zeroblob(500))) FROM n`,
		`INSERT INTO events (run, at, kind, data) SELECT id, updated, 'settled', '{}' FROM runs, (SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3)`,
		`INSERT INTO effects (run, place, kind, key, text, status, at) SELECT id, 0, 'claim-ref', 'claim:1', '', 'settled', updated FROM runs`,
		`INSERT INTO sessions (id, run, attempt, kind, handle, dir, log, started, ended) SELECT 's' || id, id, 1, 'agent', '{}', '/x', '/x', updated, 1 FROM runs`,
		`INSERT INTO fences (key, fence) SELECT repo || '#' || issue, 1 FROM runs`,
		`INSERT INTO leases (key, fence, holder, identity, boot, granted, expires, released) SELECT repo || '#' || issue, 1, 'h', '{}', 'b', 1, 2, 1 FROM runs`,
	} {
		if strings.Contains(q, "%d") {
			q = fmt.Sprintf(q, n)
		}
		must(t, s.WriterExec(q))
	}
}

// TestScalePastRuns: among many past runs each is found, and lists begin with the newest.
func TestScalePastRuns(t *testing.T) {
	t.Parallel()
	dir, n := t.TempDir(), pastRuns(t)
	s := open(t, dir, newClock(t))
	fill(t, s, n)
	ctx := t.Context()
	for _, c := range []struct {
		f    store.Filter
		want []string
	}{
		{store.Filter{Limit: 2}, []string{fmt.Sprint(n, "-p"), fmt.Sprint(n-1, "-p")}},
		{store.Filter{Repo: "local:0", Limit: 2}, []string{fmt.Sprint(n, "-p"), fmt.Sprint(n-10, "-p")}},
		{store.Filter{Repo: "local:7", Issue: 7}, []string{"7-p"}},
		{store.Filter{Live: true}, nil},
	} {
		began := time.Now()
		found, err := s.List(ctx, c.f)
		must(t, err)
		var ids []string
		for _, r := range found {
			ids = append(ids, r.ID)
		}
		if fmt.Sprint(ids) != fmt.Sprint(c.want) {
			t.Errorf("%+v: %v, want %v", c.f, ids, c.want)
		}
		t.Logf("%d runs, list of repository %q, issue %d, live %t: %s", n, c.f.Repo, c.f.Issue, c.f.Live, time.Since(began))
	}
	h, err := s.History(ctx, "7-p")
	if err != nil || len(h.Events) != 3 || len(h.Effects) != 1 || len(h.Sessions) != 1 {
		t.Errorf("%+v, %v", h, err)
	}
}

// whole are the statements that may read a table from its one end, each with the reason.
var whole = map[string]string{
	"FROM runs WHERE 1 ORDER BY seq DESC LIMIT": "the newest runs are the last ones of the table, and it stops at the limit",
	"FROM ledger":          "one row",
	"UPDATE ledger":        "one row",
	"SELECT count(*) FROM": "interlock state check reads all",
}

var (
	isStatement = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b`)
	scans       = regexp.MustCompile(`^SCAN (runs|events|effects|sessions|leases|fences|cancels|facts|ledger)\b(.*)`)
)

// TestScalePlans: what a store is asked in all its methods is answered by way of indexes, whatever
// number of runs is in it. The plans are those of SQLite, for the statements that were really made.
func TestScalePlans(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, newClock(t))
	fill(t, s, 500)
	asked := map[string]bool{}
	must(t, s.Recorded(func(query string) { asked[query] = true }))
	everything(t, s)
	db, err := sqlite.Raw(filepath.Join(dir, sqlite.DatabaseName))
	must(t, err)
	defer db.Close()
	looked := 0
	for query := range asked {
		if !isStatement.MatchString(query) {
			continue
		}
		looked++
		for _, step := range plan(t, db, query) {
			m := scans.FindStringSubmatch(step)
			sorts := strings.Contains(step, "USE TEMP B-TREE") && strings.Contains(query, "FROM runs")
			if m != nil && (strings.Contains(m[2], "effects_pending") || strings.Contains(m[2], "runs_live")) {
				continue // an index of what is pending, or live, alone
			}
			if (m != nil || sorts) && !allowed(query) {
				t.Errorf("%s\n  %s", step, query)
			}
		}
	}
	if looked < 20 {
		t.Errorf("only %d statements were recorded", looked)
	}
}

func allowed(query string) bool {
	for part := range whole {
		if strings.Contains(query, part) {
			return true
		}
	}
	return false
}

func plan(t *testing.T, db *sql.DB, query string) (steps []string) {
	t.Helper()
	rows, err := db.Query("EXPLAIN QUERY PLAN "+query, make([]any, 1+strings.Count(query, "?"))...)
	if err != nil { // numbered parameters are fewer
		rows, err = db.Query("EXPLAIN QUERY PLAN "+query, make([]any, strings.Count(query, "?"))...)
	}
	if err != nil {
		rows, err = db.Query("EXPLAIN QUERY PLAN "+query, nil, nil)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, query)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		must(t, rows.Scan(&id, &parent, &unused, &detail))
		steps = append(steps, detail)
	}
	must(t, rows.Err())
	return steps
}

// everything calls each method of a store.
func everything(t *testing.T, s *sqlite.Store) {
	t.Helper()
	ctx := context.Background()
	h := run.Holder{ID: "h", Installation: "i", Host: "x", PID: 1, Boot: "b"}
	l, r, err := s.Claim(ctx, h, run.Run{ID: "new", Repo: "local:1", Issue: 1000, State: run.Claiming,
		Effects: []run.Effect{{Kind: run.EffectClaim, Key: "claim:1"}, {Kind: run.EffectMark, Key: "mark:1"}}}, time.Minute)
	must(t, err)
	must(t, s.PutSession(ctx, l, store.Session{ID: "new-1", Run: "new", Attempt: 1, Kind: "agent", Handle: "{}", Started: time.Now()}))
	must(t, s.PutSession(ctx, l, store.Session{ID: "new-1", Run: "new", Attempt: 1, Kind: "agent", Handle: "{}", Started: time.Now(), Ended: true}))
	r.Effects = []run.Effect{{Kind: run.EffectMark, Key: "mark:1", Text: "x"}, {Kind: run.EffectNote, Key: "note:1"}}
	if r, err = s.Save(ctx, l, r, run.Settled{Key: "claim:1"}); err != nil {
		t.Fatal(err)
	}
	l, err = s.Renew(ctx, l, time.Minute)
	must(t, err)
	must(t, s.RequestCancel(ctx, "new", "why"))
	_, _, err = s.Cancel(ctx, "new")
	must(t, err)
	_, _, err = s.Lease(ctx, l.Key)
	must(t, err)
	for _, f := range []store.Filter{
		{}, {Repo: "local:1"}, {Repo: "local:1", Issue: 1}, {Repo: "local:1", Issue: 1, Limit: 1}, {Live: true}, {Repo: "local:1", Live: true}, {Repo: "local:1", Issue: 1, Live: true},
	} {
		_, err = s.List(ctx, f)
		must(t, err)
	}
	_, err = s.Load(ctx, "7-p")
	must(t, err)
	_, err = s.History(ctx, "7-p")
	must(t, err)
	must(t, s.Release(ctx, l))
	_, err = s.Acquire(ctx, h, "local:2#2", time.Minute, 0)
	must(t, err)
	_, err = s.Examine(ctx)
	must(t, err)
}
