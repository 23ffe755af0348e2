package check

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"interlock/internal/run"
	"interlock/internal/testcount"
	"interlock/internal/testdiff"
)

// Compare asks that no fewer tests run than at the base, and that what the change does to tests is
// named. A check that counts tests is run at the base too, confined in the same way; what it counted,
// and the home that it left, with its caches, are kept, so that this happens once for a base.
type Compare struct {
	Dir        string // absolute; where the counts are kept
	Run        string // a base that did not pass is tried again by another run
	AllowFewer bool   // fewer tests are named and refuse nothing
}

// atBase is what a check said of a base, as it is kept. It is a cache: what cannot be read is
// found out again.
type atBase struct {
	Version int               `json:"version"`
	Tree    string            `json:"tree"`
	Line    string            `json:"line"`
	Run     string            `json:"run"`
	Why     string            `json:"why"` // why it failed there, "" if it did not
	Known   bool              `json:"known"`
	Ran     int               `json:"ran"`
	Tallies []testcount.Tally `json:"tallies"`

	hash string // of the commit, not kept: any with the tree will do
}

const (
	baseVersion = 1        // of what is counted and how
	baseBytes   = 64 << 20 // of one file
	baseFiles   = 256      // that are kept
)

// aRunner finds the name of a program that runs tests in a line. Only where neither that is there
// nor a test was counted the check is not run at the base.
var aRunner = regexp.MustCompile(`(?i)(?:^|[\s/;&|('"])(?:pytest|py\.test|unittest|jest|vitest|mocha|ava|tap|prove|tox|nox|rspec|phpunit|ctest|bats|nextest|gradlew?|mvnw?|nosetests)(?:$|[\s;&|)'"])` +
	`|(?:make|npm|pnpm|yarn|bun|just|task|cargo|node|deno|mix|swift|dotnet|zig|bazel|sbt|lein|rake|composer|meson|ninja|stack|cabal|hatch|poetry|uv|run)\s+(?:\S+\s+)*?\S*test`)

// compare holds what a command that passed has counted against the base.
func (req *Request) compare(ctx context.Context, at, session, line string, number int, c *run.Command, now *counted) error {
	if c.Why != "" || req.Compare == nil || !now.known && !aRunner.MatchString(line) {
		return nil
	}
	base, err := req.counted(ctx, at, session, line, number)
	if err != nil {
		return err
	}
	fewer, missing := base.fewer(*now)
	if base.Known {
		ran := base.Ran
		c.BaseTests = &ran
	}
	switch {
	case base.Why != "": // as is usual for a bug; then fewer refuse nothing
		if fewer != "" || missing != "" {
			now.note("it does not pass at the base (%s), so the tests are only named: %d ran there, %d here%s", base.Why, base.Ran, now.ran, missing)
		}
	case base.Ran == 0 && now.ran > 0: // 0 also where none could be counted
		now.note("no test was counted at the base, so there is nothing to compare with")
	case base.Ran == 0:
	case fewer != "":
		req.judgeFewer(c, now, fewer, missing)
	case missing != "":
		now.note("no fewer tests ran than at the base, but not the same%s", missing)
	}
	return nil
}

// judgeFewer fails a check of which fewer tests ran than at the base, unless that is allowed.
func (req *Request) judgeFewer(c *run.Command, now *counted, fewer, missing string) {
	if req.Compare.AllowFewer {
		now.note("fewer tests ran than at the base: %s%s (allowed by --allow-fewer-tests)", fewer, missing)
		return
	}
	c.Why = "fewer tests ran than at the base: " + fewer + missing
	if now.dropped {
		c.Why += fmt.Sprintf("; only the first %d MiB of output were kept, so print less", run.LogBytes>>20)
	}
}

func (c *counted) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// fewer says in words where fewer tests ran than at the base, "" if nowhere, and which are missing.
// Each source is compared with itself: what another one says makes up for nothing.
func (b atBase) fewer(now counted) (fewer, missing string) {
	var parts, names []string
	for _, was := range b.Tallies {
		at := slices.IndexFunc(now.tallies, func(t testcount.Tally) bool { return t.Source == was.Source })
		is := testcount.Tally{Source: was.Source}
		if at >= 0 {
			is = now.tallies[at]
		}
		if is.Ran() < was.Ran() {
			parts = append(parts, fmt.Sprintf("%d, and %d there (%s)", is.Ran(), was.Ran(), was.Source))
		}
		if !was.Cut && !is.Cut && (len(is.Names) > 0 || is.Ran() == 0) {
			names = append(names, testcount.Missing(was.Names, is.Names)...)
		}
	}
	if len(parts) == 0 && now.ran < b.Ran {
		parts = append(parts, fmt.Sprintf("%d, and %d there", now.ran, b.Ran))
	}
	return strings.Join(parts, "; "), listMissing(names)
}

func listMissing(names []string) string {
	if len(names) == 0 {
		return ""
	}
	const most = 20
	var quoted []string
	for _, n := range names[:min(most, len(names))] {
		quoted = append(quoted, testdiff.Quote(oneLine(n)))
	}
	text := "; missing: " + strings.Join(quoted, ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// countsTests reports whether a line is known to count tests before it has run.
func countsTests(line string) bool {
	_, asked := withJSON(line)
	return asked || aRunner.MatchString(line)
}

// counted is what a check counts at the base.
func (req *Request) counted(ctx context.Context, at, session, line string, number int) (atBase, error) {
	base, err := req.baseOf(ctx, line)
	if err == nil {
		base, err = req.atBase(ctx, at, session, base, number)
	}
	if err != nil {
		return base, fmt.Errorf("at the base, to compare the tests: %w", err)
	}
	return base, nil
}

// baseOf names a check at the base of the request.
func (req *Request) baseOf(ctx context.Context, line string) (atBase, error) {
	commit, err := req.Repo.Resolve(ctx, req.Base)
	return atBase{Version: baseVersion, Tree: commit.Tree, Line: line, Run: req.Compare.Run, hash: commit.Hash}, err
}

// atBase returns what a check counts at the base: as it is kept, or by running it there.
func (req *Request) atBase(ctx context.Context, at, session string, b atBase, number int) (atBase, error) {
	file := req.baseFile(b)
	if kept, ok := readBase(file); ok && kept.is(b) {
		return kept, nil
	}
	req.Progress(fmt.Sprintf("%s: now at the base %.12s, to compare the tests; nothing is compiled there yet, so it can take minutes, once for each base", at, b.hash))
	there := *req
	there.Head, there.Compare = run.Commit{Hash: b.hash, Tree: b.Tree}, nil
	c, tests, err := there.inRoom(ctx, place{
		number: len(req.Commands) + number, session: session + "-base", line: b.Line,
		remark: fmt.Sprintf(" # at the base %.12s, to compare the tests", b.hash), home: req.homeFile(b), keep: true,
	})
	if err != nil {
		return atBase{}, err
	}
	b.Why, b.Known, b.Ran, b.Tallies = c.Why, tests.known, tests.ran, tests.tallies
	req.Progress(at + ": at the base " + outcome(c))
	if err := writeBase(file, b); err != nil {
		req.Progress(fmt.Sprintf("the count at the base is not kept: %.300s", err.Error()))
	}
	return b, nil
}

// is reports whether what is kept answers for what is asked: a check that did not pass there is
// tried again by another run.
func (b atBase) is(asked atBase) bool {
	return b.Version == asked.Version && b.Tree == asked.Tree && b.Line == asked.Line && (b.Why == "" || b.Run == asked.Run)
}

func (req *Request) baseFile(b atBase) string {
	key, err := json.Marshal([]any{b.Version, b.Tree, b.Line, req.Level, req.Network})
	if err != nil {
		panic(err) // plain values always encode
	}
	sum := sha256.Sum256(key)
	return filepath.Join(req.Compare.Dir, hex.EncodeToString(sum[:])+".json")
}

// homeFile is where the home that the check left at the base is kept.
func (req *Request) homeFile(b atBase) string {
	return filepath.Join(req.Compare.Dir, "homes", strings.TrimSuffix(filepath.Base(req.baseFile(b)), ".json"))
}

func readBase(file string) (b atBase, ok bool) {
	f, err := os.Open(file)
	if err != nil {
		return b, false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, baseBytes+1))
	return b, err == nil && len(data) <= baseBytes && json.Unmarshal(data, &b) == nil
}

// writeBase keeps what was found, whole or not at all, and removes the oldest of too many.
func writeBase(file string, b atBase) error {
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	if len(data) > baseBytes {
		return fmt.Errorf("it has more than %d bytes", baseBytes)
	}
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, "new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // it is not there any more once it was renamed
	_, err = tmp.Write(data)
	if e := tmp.Close(); err != nil || e != nil {
		return fmt.Errorf("write %s: %w", tmp.Name(), firstOf(err, e))
	}
	if err := os.Rename(tmp.Name(), file); err != nil {
		return err
	}
	return removeOldest(dir)
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func removeOldest(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) <= baseFiles {
		return err
	}
	age := map[string]fs.FileInfo{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && !e.IsDir() { // the homes are counted by themselves
			age[e.Name()] = info
		}
	}
	names := slices.SortedFunc(maps.Keys(age), func(a, b string) int { return age[a].ModTime().Compare(age[b].ModTime()) })
	for _, name := range names[:max(0, len(names)-baseFiles)] {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
