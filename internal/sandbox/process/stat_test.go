package process

import "testing"

// TestParseStat: a process chooses its own name, which may look like the fields after it; a line
// that is not understood is an error, never a wrong process.
func TestParseStat(t *testing.T) {
	t.Parallel()
	const rest = " 1 9 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 99"
	for line, want := range map[string]stat{
		"77 (sh) S" + rest:               {pid: 77, parent: 1, state: 'S', start: 4711},
		"77 (a) Z 5 (b) c) R" + rest:     {pid: 77, parent: 1, state: 'R', start: 4711},
		"77 (\n) 78 (x) T" + rest + "\n": {pid: 77, parent: 1, state: 'T', start: 4711},
		"77 () D" + rest:                 {pid: 77, parent: 1, state: 'D', start: 4711},
	} {
		if got, err := parseStat([]byte(line)); err != nil || got != want {
			t.Errorf("%q: %+v, %v", line, got, err)
		}
	}
	for _, line := range []string{
		"", "77", "77 (sh", "(sh) S" + rest, "77 )sh( S" + rest, "x (sh) S" + rest, "77 (sh) SS" + rest, "77 (sh) S 1 2 3",
		"77 (sh) S x 9 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711", "77 (sh) S 1 9 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 -4711",
	} {
		if got, err := parseStat([]byte(line)); err == nil {
			t.Errorf("%q is taken for %+v", line, got)
		}
	}
}
