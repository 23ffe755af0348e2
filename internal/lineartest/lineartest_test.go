package lineartest

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// register is the smallest thing of which a history can be right or wrong.
var register = Model[int, string, int]{
	Init: func(string) int { return 0 },
	Step: func(_ *History[string, int], s int, op *Operation[string, int]) []int {
		switch {
		case op.In == "add" && op.Unknown:
			return []int{s, s + 1}
		case op.In == "add" && op.Out == s+1, op.In == "read" && op.Out == s:
			return []int{op.Out}
		}
		return nil
	},
}

func op(in string, out int, call, end int64) Operation[string, int] {
	return Operation[string, int]{Key: "k", In: in, Out: out, Call: call, Return: end, Unknown: end == math.MaxInt64}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	const never = math.MaxInt64
	for name, c := range map[string]struct {
		ops []Operation[string, int]
		bad bool
	}{
		"one after the other":           {ops: []Operation[string, int]{op("add", 1, 1, 2), op("read", 1, 3, 4)}},
		"the read before":               {ops: []Operation[string, int]{op("add", 1, 1, 5), op("read", 0, 2, 3), op("read", 1, 4, 6)}},
		"forgotten":                     {ops: []Operation[string, int]{op("add", 1, 1, 2), op("read", 0, 3, 4)}, bad: true},
		"there and gone":                {ops: []Operation[string, int]{op("add", 1, 1, 9), op("read", 1, 2, 3), op("read", 0, 4, 5)}, bad: true},
		"given twice":                   {ops: []Operation[string, int]{op("add", 1, 1, 3), op("add", 1, 2, 4)}, bad: true},
		"unknown and done":              {ops: []Operation[string, int]{op("add", 0, 1, never), op("read", 0, 2, 3), op("read", 1, 4, 5)}},
		"unknown and never done":        {ops: []Operation[string, int]{op("add", 0, 1, never), op("read", 0, 2, 3)}},
		"unknown, done before its call": {ops: []Operation[string, int]{op("read", 1, 1, 2), op("add", 0, 3, never)}, bad: true},
	} {
		h := History[string, int]{Operations: c.ops}
		if found := register.Check(&h); (len(found) > 0) != c.bad {
			t.Errorf("%s: %v", name, found)
		}
		if first := register.first(&h, "k"); c.bad && first.In == "add" && first.Out == 0 {
			t.Errorf("%s: first is %+v", name, first)
		}
	}
}

// TestRecord: what was recorded before a kill is read back: an operation without its answer is of
// unknown outcome, and half a line is none.
func TestRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := NewBoard(filepath.Join(dir, "board"), 2, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	m := Member{Process: 7, Board: filepath.Join(dir, "board"), File: filepath.Join(dir, "history")}
	rec, err := Record[string, int](m, func(o int) bool { return o == 99 })
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range []int{5, 99} {
		if _, err := rec.Do(1, "k", "add", func() int { return out }); err != nil {
			t.Fatal(err)
		}
	}
	if b.Done() != 2 || !b.Over() || b.Clock(0).Now() != time.Hour+2*time.Second {
		t.Errorf("%d done, over %t, clock at %v", b.Done(), b.Over(), b.Clock(0).Now())
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = rec.Do(1, "k", "add", func() int { panic("killed") })
	}()
	data, err := os.ReadFile(m.File)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.File, append(data, `{"n":4,"process":7`...), 0o600); err != nil {
		t.Fatal(err)
	}
	ended := [Clocks]int64{1, 2, 3, 4}
	ops, err := read[string, int](m.File, ended)
	if err != nil || len(ops) != 3 {
		t.Fatalf("%d operations, %v", len(ops), err)
	}
	for i, want := range []bool{false, true, true} {
		o := ops[i]
		if o.Unknown != want || o.N != int64(i+1) || o.Process != 7 || want != (o.Return == math.MaxInt64) || want != (o.To == ended) ||
			!want && (o.Out != 5 || o.Return < o.Call) {
			t.Errorf("operation %d: %+v", i+1, o)
		}
	}
}

// TestKept: a history that was saved is the one that is loaded.
func TestKept(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "h.json")
	h := History[string, int]{Model: "register", Seed: 1 << 63, Ahead: map[int64]int64{1: 5},
		Operations: []Operation[string, int]{op("add", 1, 1, 2), op("read", 0, 3, math.MaxInt64)}}
	if err := h.save(file); err != nil {
		t.Fatal(err)
	}
	got, err := Load[string, int](file)
	if err != nil || got.Model != h.Model || got.Seed != h.Seed || got.Ahead[1] != 5 || !slices.Equal(got.Operations, h.Operations) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := os.WriteFile(file, []byte(`{"operations":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load[string, int](file); err == nil || !strings.Contains(err.Error(), "no operations") {
		t.Errorf("an empty history: %v", err)
	}
}
