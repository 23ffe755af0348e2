package check

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"interlock/internal/run"
	"interlock/internal/testcount"
	"interlock/internal/testdiff"
)

// counted is what is known of the tests of one command. The code of the commit can print and write
// whatever a runner can, so all of it is a tripwire. What a runner printed never raises what
// go's events or JUnit files say; where they differ that is a note.
type counted struct {
	tallies []testcount.Tally // one for each source
	known   bool              // the command counts tests, if only none
	ran     int
	skipped int
	notes   []string
	dropped bool // output was not kept, so there may have been more
	ended   bool // by itself, and not by a limit or a signal
}

// count puts together what a command printed and wrote. asked says that go's events were asked for.
func count(out *stream, asked bool, reports *testcount.Reports, notes []string) counted {
	c := counted{notes: notes}
	goTests, events := out.tally()
	if asked || events {
		c.tallies = append(c.tallies, goTests)
	}
	files, written := reports.Tally()
	if written {
		c.tallies = append(c.tallies, files)
	}
	structured := len(c.tallies)
	for _, t := range out.printed.Tallies() {
		if t.Source != "go test -v" || !asked && !events {
			c.tallies = append(c.tallies, t)
		}
	}
	c.known = len(c.tallies) > 0
	from := c.tallies
	switch {
	case asked, events && !written:
		from = c.tallies[:1]
	case written:
		from = c.tallies[structured-1 : structured]
	}
	for _, t := range from {
		c.ran += t.Ran()
		c.skipped += t.Skipped
	}
	c.disagree(structured)
	return c
}

// disagree notes where what was printed says something else than what JUnit files say.
func (c *counted) disagree(structured int) {
	printed := c.tallies[structured:]
	if structured == 0 || c.tallies[structured-1].Source != "JUnit files" || len(printed) == 0 {
		return
	}
	sum, names := 0, []string{}
	for _, t := range printed {
		sum += t.Ran()
		names = append(names, t.Source)
	}
	if files := c.tallies[structured-1].Ran(); sum != files {
		c.notes = append(c.notes, fmt.Sprintf("the output speaks of %d tests (%s), the JUnit files of %d", sum, strings.Join(names, ", "), files))
	}
}

// record puts the counts into what a verdict says of a command.
func (c counted) record(into *run.Command) {
	if !c.known {
		return
	}
	ran := c.ran
	into.Tests = &ran
	for _, t := range c.tallies {
		into.Counts = append(into.Counts, run.Count{Source: t.Source, Passed: t.Passed, Failed: t.Failed, Skipped: t.Skipped})
	}
}

// Bounds of the search for reports in a tree.
const (
	treeEntries = 500_000
	treeDepth   = 40
	reportFiles = 2_000
	reportBytes = 128 << 20 // of all files together
)

// reportsIn lists the paths in a tree that look like JUnit reports, as a set. Symbolic links are not
// followed. What lies beyond the bounds is not found.
func reportsIn(tree string) map[string]bool {
	found := map[string]bool{}
	entries := 0
	// An error of one directory hides what is in it, and nothing else.
	_ = filepath.WalkDir(tree, func(name string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(tree, name)
		if entries++; err != nil || relErr != nil || entries > treeEntries || len(found) >= reportFiles {
			if entries > treeEntries || len(found) >= reportFiles {
				return fs.SkipAll
			}
			return nil
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || strings.Count(rel, "/") >= treeDepth) {
			return fs.SkipDir
		}
		if d.Type().IsRegular() && testcount.IsReport(filepath.ToSlash(rel)) {
			found[rel] = true
		}
		return nil
	})
	return found
}

// readReports reads the reports that a command wrote: those that were not in its tree before. It is
// called when nothing of the command runs any more.
func readReports(tree string, before map[string]bool) (*testcount.Reports, []string) {
	reports := &testcount.Reports{}
	var notes []string
	root, err := os.OpenRoot(tree)
	if err != nil {
		return reports, nil // the command removed its tree: there are no reports
	}
	defer root.Close()
	left := int64(reportBytes)
	for _, name := range sorted(reportsIn(tree)) {
		if before[name] {
			continue
		}
		err := readReport(root, name, reports, &left)
		if err != nil && len(notes) < 3 {
			notes = append(notes, fmt.Sprintf("a report is not counted: %s: %s", testdiff.Quote(oneLine(name)), testdiff.Quote(oneLine(err.Error()))))
		}
	}
	return reports, notes
}

func readReport(root *os.Root, name string, into *testcount.Reports, left *int64) error {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a file")
	}
	if *left -= info.Size(); *left < 0 {
		return fmt.Errorf("the reports have more than %d bytes together", int64(reportBytes))
	}
	return into.Read(f)
}
