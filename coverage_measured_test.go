//go:build coverage

package interlock_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestCoverage judges what `make test` and `make resume` have covered. COVERAGE names the directory.
func TestCoverage(t *testing.T) {
	dir := os.Getenv("COVERAGE")
	if found, err := filepath.Glob(filepath.Join(dir, "covcounters.*")); err != nil || len(found) == 0 {
		t.Fatalf("nothing was measured in %q (%v): type make test first", dir, err)
	}
	file := filepath.Join(t.TempDir(), "profile")
	if out, err := exec.Command("go", "tool", "covdata", "textfmt", "-i="+dir, "-o="+file).CombinedOutput(); err != nil {
		t.Fatalf("go tool covdata: %v\n%s", err, out)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	blocks, err := readProfile(f)
	if err != nil {
		t.Fatal(err)
	}
	c := sum(t, blocks, uncounted)
	files, _ := sources(t)
	for _, s := range files {
		if _, measured := c.files[s.name]; !measured && needsCoverage(s) {
			t.Errorf("%s was not measured: no test has it in it", s.name)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(c.packages)) {
		fmt.Printf("coverage: %5.1f %%  of %5d statements  %s\n", c.packages[dir].percent(), c.packages[dir].all, dir)
	}
	for _, fault := range judge(c, coverageFloor, uncounted) {
		t.Error(fault)
	}
}
