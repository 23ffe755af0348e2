package lineartest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
)

// Operation is what one client of one process asked for and was told.
type Operation[I, O any] struct {
	N       int64         `json:"n"` // of its process
	Process int           `json:"process"`
	Client  int           `json:"client"`
	Key     string        `json:"key"` // histories of two keys say nothing of each other
	Boot    int64         `json:"boot"`
	Call    int64         `json:"call"`   // CLOCK_MONOTONIC in nanoseconds
	Return  int64         `json:"return"` // math.MaxInt64 when it was never answered
	From    [Clocks]int64 `json:"from"`   // the injected clocks before the call
	To      [Clocks]int64 `json:"to"`     // and after the answer, or after the end of its process
	In      I             `json:"in"`
	Out     O             `json:"out"`
	// Unknown: the process was killed, or was told that the outcome is open. It may have happened, as
	// a whole, at any time from Call on, or not at all.
	Unknown bool `json:"unknown,omitempty"`
}

// Recorder writes down each operation before it is begun and when it was answered, one line each, by
// one write(2) each: what a process had recorded before it was killed is there.
type Recorder[I, O any] struct {
	Board   Board
	Process int
	// Open reports whether an answer leaves open what has happened.
	Open func(O) bool

	mu   sync.Mutex
	file *os.File
	n    atomic.Int64
}

// Do does one operation and records it.
func (r *Recorder[I, O]) Do(client int, key string, in I, do func() O) (O, error) {
	op := Operation[I, O]{
		N: r.n.Add(1), Process: r.Process, Client: client, Key: key, Boot: r.Board.boot.Load(), In: in,
		Return: math.MaxInt64, Unknown: true, From: r.Board.Now(),
	}
	op.Call = monotonic()
	if err := r.write(op); err != nil {
		return op.Out, err
	}
	op.Out = do()
	op.To = r.Board.Now()
	op.Return = monotonic()
	if op.Unknown = r.Open(op.Out); op.Unknown {
		op.Return = math.MaxInt64
	}
	err := r.write(op)
	r.Board.tick()
	return op.Out, err
}

func (r *Recorder[I, O]) write(op Operation[I, O]) error {
	line, err := json.Marshal(op)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err = r.file.Write(append(line, '\n'))
	return err
}

// read reads what one process has recorded. ended are the clocks when it was seen to be gone.
func read[I, O any](path string, ended [Clocks]int64) ([]Operation[I, O], error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var ops []Operation[I, O]
	at := map[int64]int{}
	for line := range bytes.Lines(data) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it was killed while it wrote this: the answer was not heard, or the call not made
		}
		var op Operation[I, O]
		if err := json.Unmarshal(line, &op); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		i, again := at[op.N]
		if !again {
			i, at[op.N] = len(ops), len(ops)
			ops = append(ops, op)
		}
		if op.Unknown {
			op.To = ended
		}
		ops[i] = op
	}
	return ops, nil
}

// History is all that was done, or what was done to the keys that are in question, and what has to be
// known to judge it.
type History[I, O any] struct {
	Model      string            `json:"model"`
	Why        string            `json:"why,omitempty"` // what is wrong with it
	Seed       uint64            `json:"seed"`
	Ahead      map[int64]int64   `json:"ahead,omitempty"` // by boot: store time minus the clock
	Operations []Operation[I, O] `json:"operations"`
}

// Load reads a history that was kept.
func Load[I, O any](path string) (h History[I, O], err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return h, err
	}
	if err := json.Unmarshal(data, &h); err != nil {
		return h, fmt.Errorf("%s: %w", path, err)
	}
	if len(h.Operations) == 0 {
		return h, fmt.Errorf("%s has no operations", path)
	}
	return h, nil
}

// only is the history of some keys.
func (h History[I, O]) only(keys []string) History[I, O] {
	h.Operations = slices.DeleteFunc(slices.Clone(h.Operations), func(op Operation[I, O]) bool { return !slices.Contains(keys, op.Key) })
	return h
}

// save writes a history, one operation a line, so that it can be read and cut by hand.
func (h History[I, O]) save(path string) error {
	ops := h.Operations
	h.Operations = nil
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	head, ok := bytes.CutSuffix(head, []byte("null}"))
	if !ok {
		return errors.New("a history does not end with its operations")
	}
	var b bytes.Buffer
	b.Write(head)
	b.WriteString("[")
	for i, op := range ops {
		line, err := json.Marshal(op)
		if err != nil {
			return err
		}
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n")
		b.Write(line)
	}
	b.WriteString("\n]}\n")
	return os.WriteFile(path, b.Bytes(), 0o600)
}
