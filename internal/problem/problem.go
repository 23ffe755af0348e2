// Package problem maps the errors that come without words of their own to an exit code, to what is
// safe, and to the command to type next. It decides nothing but that, and never prints.
package problem

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"interlock/internal/agent"
	"interlock/internal/forge"
	"interlock/internal/git"
	"interlock/internal/run"
	"interlock/internal/store"
)

// What is safe, in the words of several errors.
const (
	NothingChanged = "nothing was changed"
	WorkKept       = "what was saved and committed is kept"
)

// kind is one row of the mapping of errors that say no more than which sort they are of.
type kind struct {
	is   error
	exit int
	safe string
	next string // "" means the same command again
}

// kinds is looked through from the top; the first that fits is taken.
var kinds = []kind{
	{store.ErrFenced, run.ExitLost, "nothing was written after the loss; " + WorkKept, ""},
	{forge.ErrLost, run.ExitLost, "nothing was written after the loss; " + WorkKept, ""},
	{store.ErrDuplicate, run.ExitHeld, NothingChanged, "interlock runs"},
	{store.ErrStale, run.ExitBusy, "nothing was written", ""},
	{store.ErrUnfit, run.ExitUnfit, NothingChanged, "interlock doctor"},
	{store.ErrNewer, run.ExitUsage, NothingChanged, "interlock version"},
	{store.ErrDamaged, run.ExitUnfit, "the files were left as they are; branches and issues are in their repositories", "interlock doctor"},
	{store.ErrFull, run.ExitUnfit, "what was saved before is whole; nothing half-written counts", "df -h"},
	{store.ErrBusy, run.ExitBusy, "nothing was written", ""},
	{store.ErrNotFound, run.ExitRefused, NothingChanged, "interlock runs"},
	{git.ErrUnfit, run.ExitUnfit, NothingChanged, "interlock doctor"},
	{git.ErrNotRepository, run.ExitUsage, NothingChanged, "interlock --help"},
	{git.ErrUnknown, run.ExitUnknown, "it is looked for in the world before anything is done again", ""},
	{git.ErrStaleRef, run.ExitBusy, "nothing was moved", ""},
	{git.ErrRefused, run.ExitRefused, "nothing was moved; " + WorkKept, "interlock doctor"},
	{forge.ErrUnknown, run.ExitUnknown, "it is looked for in the world before anything is done again", ""},
	{forge.ErrEmpty, run.ExitRefused, NothingChanged, "git commit --allow-empty -m 'First commit'"},
	{forge.ErrDetached, run.ExitUsage, NothingChanged, "git switch BRANCH"},
	{forge.ErrClosed, run.ExitRefused, NothingChanged, "interlock issue list"},
	{forge.ErrDenied, run.ExitRefused, NothingChanged, "interlock doctor"},
	{forge.ErrInvalid, run.ExitUsage, NothingChanged, "interlock --help"},
	{forge.ErrExists, run.ExitRefused, NothingChanged, "interlock change list"},
	{forge.ErrNotFound, run.ExitRefused, NothingChanged, "interlock issue list"},
	{agent.ErrMissing, run.ExitUsage, NothingChanged, "interlock run --help"},
	{syscall.ENOSPC, run.ExitUnfit, "what was saved before is whole; nothing half-written counts", "df -h"},
	{syscall.EDQUOT, run.ExitUnfit, "what was saved before is whole; nothing half-written counts", "quota"},
	{syscall.EROFS, run.ExitUnfit, NothingChanged, "interlock --state-dir DIR doctor"},
	{fs.ErrPermission, run.ExitUnfit, NothingChanged, "interlock doctor"},
	{fs.ErrNotExist, run.ExitUsage, NothingChanged, "interlock --help"},
	{context.DeadlineExceeded, run.ExitBusy, WorkKept, ""},
}

// Kind returns what an error is to a person; next "" means the same command again.
func Kind(err error) (exit int, safe, next string) {
	var storeHeld *store.HeldError
	var forgeHeld *forge.HeldError
	if errors.As(err, &storeHeld) || errors.As(err, &forgeHeld) {
		return run.ExitHeld, NothingChanged, "interlock runs"
	}
	if strings.Contains(err.Error(), "No space left on device") { // as git says it
		return run.ExitUnfit, "what was saved before is whole; nothing half-written counts", "df -h"
	}
	for _, k := range kinds {
		if errors.Is(err, k.is) {
			return k.exit, k.safe, k.next
		}
	}
	return run.ExitRefused, WorkKept, "interlock doctor"
}

// Exits lists the exit codes that errors of these kinds have.
func Exits() (all []int) {
	for _, k := range kinds {
		all = append(all, k.exit)
	}
	return all
}
