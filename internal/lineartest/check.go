package lineartest

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkTime bounds the judgement of one key; a right one takes milliseconds. What is not decided by
// then fails the test, too. enough is how many keys that cannot be explained are looked for.
const (
	checkTime = 20 * time.Second
	enough    = 10
)

// Model says what one operation may do. Step returns the states in which the key may be when op was
// done in state s with the answer that it got; none when that answer is wrong. S is compared by ==.
type Model[S comparable, I, O any] struct {
	Init func(key string) S
	Step func(h *History[I, O], s S, op *Operation[I, O]) []S
}

// Anomaly is a key whose history cannot be explained.
type Anomaly struct {
	Key       string
	Undecided bool // no order was found in time, which may still exist
}

func (m Model[S, I, O]) porcupine(h *History[I, O], key string) porcupine.Model {
	nm := porcupine.NondeterministicModel{
		Init: func() []any { return []any{m.Init(key)} },
		Step: func(s, in, _ any) []any {
			var next []any
			for _, n := range m.Step(h, s.(S), in.(*Operation[I, O])) {
				next = append(next, n)
			}
			return next
		},
		DescribeOperation: func(in, _ any) string {
			op := in.(*Operation[I, O])
			if op.Unknown {
				return fmt.Sprintf("%+v: unknown", op.In)
			}
			return fmt.Sprintf("%+v: %+v", op.In, op.Out)
		},
		DescribeState: func(s any) string { return fmt.Sprintf("%+v", s) },
	}
	return nm.ToModel()
}

func operations[I, O any](ops []*Operation[I, O]) []porcupine.Operation {
	var all []porcupine.Operation
	clients := map[string]int{} // porcupine counts them from 0
	for _, op := range ops {
		name := fmt.Sprint(op.Process, ".", op.Client)
		if op.Unknown {
			name += fmt.Sprint(".", op.N) // whoever asked it goes on beside it
		}
		if _, ok := clients[name]; !ok {
			clients[name] = len(clients)
		}
		all = append(all, porcupine.Operation{ClientId: clients[name], Input: op, Call: op.Call, Return: op.Return})
	}
	return all
}

// Check judges a history, key by key, and returns the keys that no order of their operations explains,
// enough of them if there are many.
func (m Model[S, I, O]) Check(h *History[I, O]) []Anomaly {
	keys := map[string][]*Operation[I, O]{}
	for i := range h.Operations {
		op := &h.Operations[i]
		keys[op.Key] = append(keys[op.Key], op)
	}
	todo := make(chan string)
	var mu sync.Mutex
	var found []Anomaly
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for key := range todo {
				mu.Lock()
				done := len(found) >= enough
				mu.Unlock()
				if done {
					continue
				}
				res := porcupine.CheckOperationsTimeout(m.porcupine(h, key), operations(keys[key]), checkTime)
				if res == porcupine.Ok {
					continue
				}
				mu.Lock()
				found = append(found, Anomaly{key, res == porcupine.Unknown})
				mu.Unlock()
			}
		})
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		todo <- key
	}
	close(todo)
	wg.Wait()
	slices.SortFunc(found, func(a, b Anomaly) int { return cmp.Compare(a.Key, b.Key) })
	return found
}

// first returns the first answer of a key's history that nothing explains: what had been answered
// before it, and what was under way, can be put in order without it.
func (m Model[S, I, O]) first(h *History[I, O], key string) Operation[I, O] {
	ops := h.only([]string{key}).Operations
	slices.SortStableFunc(ops, func(a, b Operation[I, O]) int { return cmp.Compare(a.Return, b.Return) })
	n := sort.Search(len(ops), func(n int) bool {
		part := *h
		part.Operations = slices.Clone(ops[:n+1])
		for _, op := range ops[n+1:] {
			if op.Call <= ops[n].Return {
				op.Unknown, op.Return = true, math.MaxInt64
				part.Operations = append(part.Operations, op)
			}
		}
		return len(m.Check(&part)) > 0
	})
	return ops[min(n, len(ops)-1)]
}

// keepVariable names the directory in which failing histories are kept.
const keepVariable = "INTERLOCK_HISTORY"

// Judge fails the test when a history has anomalies, and keeps what is needed to see why: the history
// of those keys, and a picture of each of the first few.
func (m Model[S, I, O]) Judge(t *testing.T, h *History[I, O]) []Anomaly {
	t.Helper()
	found := m.Check(h)
	if len(found) == 0 {
		return nil
	}
	dir := os.Getenv(keepVariable)
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "interlock-history-"); err != nil {
			t.Fatal(err)
		}
	} else if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, a := range found {
		keys = append(keys, a.Key)
	}
	bad := h.only(keys)
	op := m.first(&bad, keys[0])
	bad.Why = fmt.Sprintf("%s: nothing explains that process %d, which asked %+v, was told %+v", op.Key, op.Process, op.In, op.Out)
	file := filepath.Join(dir, fmt.Sprintf("%s-%d.json", h.Model, h.Seed))
	if err := bad.save(file); err != nil {
		t.Fatal(err)
	}
	for i, key := range keys[:min(len(keys), 3)] {
		m.draw(t, &bad, key, filepath.Join(dir, fmt.Sprintf("%s-%d-%d.html", h.Model, h.Seed, i+1)))
	}
	undecided := 0
	for _, a := range found {
		if a.Undecided {
			undecided++
		}
	}
	t.Errorf("seed %d: %d keys have a history that no order of their operations explains (%d undecided after %v); %s\n"+
		"kept in %s, beside pictures of it; judge it again with\n\t%s=%s go test -run TestLinearReplay -v .",
		h.Seed, len(found), undecided, checkTime, bad.Why, file, replayVariable, file)
	return found
}

func (m Model[S, I, O]) draw(t *testing.T, h *History[I, O], key, file string) {
	t.Helper()
	one := h.only([]string{key})
	var ops []*Operation[I, O]
	for i := range one.Operations {
		ops = append(ops, &one.Operations[i])
	}
	model := m.porcupine(&one, key)
	_, info := porcupine.CheckOperationsVerbose(model, operations(ops), checkTime)
	if err := porcupine.VisualizePath(model, info, file); err != nil {
		t.Error(err)
	}
}

// replayVariable names a history that is judged again.
const replayVariable = "INTERLOCK_REPLAY"

// Replay judges histories that were kept: the one that the environment names, else those of testdata.
// The name of each of the latter says what must be found: in "good-..." nothing, in "bad-..." that the
// last operation cannot have been answered so.
func (m Model[S, I, O]) Replay(t *testing.T, name string) {
	if file := os.Getenv(replayVariable); file != "" {
		h, err := Load[I, O](file)
		if err != nil {
			t.Fatal(err)
		}
		if h.Model != name {
			t.Skipf("%s is a history of model %q, this is %q", file, h.Model, name)
		}
		for _, a := range m.Check(&h) {
			t.Errorf("%s: no order explains what happened to %s (undecided: %t)", file, a.Key, a.Undecided)
		}
		t.Logf("%s: %d operations judged", file, len(h.Operations))
		return
	}
	files, err := filepath.Glob(filepath.Join("testdata", "linear", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	bad, good := 0, 0
	for _, file := range files {
		h, err := Load[I, O](file)
		if err != nil {
			t.Fatal(err)
		}
		found := m.Check(&h)
		switch base := filepath.Base(file); {
		case strings.HasPrefix(base, "bad-"):
			bad++
			if len(found) == 0 || found[0].Undecided {
				t.Errorf("%s is accepted: %s", file, h.Why)
			}
			h.Operations = h.Operations[:len(h.Operations)-1]
			if found := m.Check(&h); len(found) != 0 {
				t.Errorf("%s is refused without its last operation, too, which is what is wrong with it: %s", file, h.Why)
			}
		case len(found) != 0:
			t.Errorf("%s is refused: %v", file, found)
		default:
			good++
		}
	}
	if bad == 0 || good == 0 {
		t.Errorf("%d bad and %d good histories in testdata/linear: the judge is not seen to do both", bad, good)
	}
}
