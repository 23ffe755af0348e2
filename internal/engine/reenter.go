package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"interlock/internal/git"
	"interlock/internal/run"
)

// snapshotWord is the hidden first argument by which our own binary, inside the sandbox, takes a
// snapshot of a workspace.
const snapshotWord = "__snapshot"

// snapshotResult is the answer of that binary.
type snapshotResult struct {
	Hash    string `json:"hash"`
	Changed bool   `json:"changed"`
	Err     string `json:"err,omitempty"`
}

// Reenter runs the hidden subcommand of this package, if the arguments name it. Main calls it
// before anything else.
func Reenter(args []string) (code int, handled bool) {
	if len(args) != 7 || args[0] != snapshotWord {
		return 0, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), run.GitTotal)
	defer cancel()
	hash, changed, err := git.Snapshot(ctx, git.SnapshotSpec{
		GitDir: args[1], WorkTree: args[2], Objects: args[3], Parent: args[4], Message: args[5],
	})
	res := snapshotResult{Hash: hash, Changed: changed}
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
