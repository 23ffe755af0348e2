package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"interlock/internal/run"
)

// word is the hidden first argument by which our own binary, inside the sandbox, takes a
// snapshot of a workspace.
const word = "__snapshot"

// answer is what that binary writes.
type answer struct {
	Hash    string `json:"hash"`
	Changed bool   `json:"changed"`
	Err     string `json:"err,omitempty"`
}

// ErrContent: the files that an agent left uncommitted cannot be taken in.
var ErrContent = errors.New("files that were left uncommitted cannot be taken in")

// Argv is the command by which binary, a copy of this program inside the sandbox, takes a snapshot
// and writes its answer to out. All paths are those inside.
func Argv(binary string, s Spec, out string) []string {
	return []string{binary, word, s.GitDir, s.WorkTree, s.Objects, s.Parent, s.Message, out}
}

// ReadAnswer reads what that command wrote. changed is false when there was nothing to commit.
// ErrContent when git could not take in what is there, or the answer is none.
func ReadAnswer(file string) (changed bool, err error) {
	out, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	var said answer
	if err := json.Unmarshal(out, &said); err != nil {
		return false, fmt.Errorf("%w: the answer cannot be read: %.200q", ErrContent, out)
	}
	if said.Err != "" {
		return false, fmt.Errorf("%w: %.500q", ErrContent, said.Err)
	}
	return said.Changed, nil
}

// Reenter runs the hidden subcommand of this package, if the arguments name it. Main calls it
// before anything else.
func Reenter(args []string) (code int, handled bool) {
	if len(args) != 7 || args[0] != word {
		return 0, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), run.GitTotal)
	defer cancel()
	hash, changed, err := Take(ctx, Spec{
		GitDir: args[1], WorkTree: args[2], Objects: args[3], Parent: args[4], Message: args[5],
	})
	res := answer{Hash: hash, Changed: changed}
	if err != nil {
		res.Err = err.Error()
	}
	data, err := json.Marshal(res)
	if err == nil {
		err = os.WriteFile(args[6], data, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "interlock: snapshot:", err)
		return 1, true
	}
	return 0, true
}
