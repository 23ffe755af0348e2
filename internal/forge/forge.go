// Package forge says what Interlock needs from a forge, and holds the one implementation of
// claim refs that every driver uses. It never decides what to do with an issue.
package forge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"interlock/internal/git"
)

// The errors a caller decides by.
var (
	ErrNotFound = errors.New("not found on the forge")
	ErrClosed   = errors.New("the issue is closed")
	ErrExists   = errors.New("an open change for this head exists already")
	ErrDenied   = errors.New("the forge refuses")
	ErrInvalid  = errors.New("the forge calls the request invalid")
	// ErrDamaged: what the forge holds of this one issue or change cannot be read.
	ErrDamaged = errors.New("the forge's record is damaged")
	// ErrUnknown: the effect may or may not have happened. Probe before anything else.
	ErrUnknown = errors.New("outcome unknown")
	// ErrEmpty: the repository has no commit yet. ErrDetached: HEAD names no branch.
	ErrEmpty    = errors.New("the repository has no commit")
	ErrDetached = errors.New("HEAD names no branch")
)

// MissingError says which issue or change is not there. It is an ErrNotFound.
type MissingError struct {
	What   string // "issue" or "change"
	Number int64
}

func (e *MissingError) Error() string { return fmt.Sprintf("%s %d: %v", e.What, e.Number, ErrNotFound) }

// Unwrap returns ErrNotFound.
func (e *MissingError) Unwrap() error { return ErrNotFound }

// Issue is the forge's unit of work.
type Issue struct {
	Number    int64     `json:"number"`
	Title     string    `json:"title"`
	Body      string    `json:"body"`
	State     string    `json:"state"` // "open" or "closed"
	Labels    []string  `json:"labels"`
	Assignees []string  `json:"assignees"`
	Author    string    `json:"author"`
	Comments  []Comment `json:"comments"`
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"`
}

// Comment is one remark on an issue. Key is our marker: one comment per key, "" for people's.
type Comment struct {
	ID      int64     `json:"id"`
	Key     string    `json:"key,omitempty"`
	Author  string    `json:"author"`
	Body    string    `json:"body"`
	Created time.Time `json:"created"`
}

// Change is a proposed merge of the branch Head into the branch Base.
type Change struct {
	Number int64  `json:"number"`
	Issue  int64  `json:"issue"`
	Title  string `json:"title"`
	Body   string `json:"body"`
	State  string `json:"state"` // "open", "merged" or "closed"
	Head   string `json:"head"`
	HeadAt string `json:"head_at"` // the commit the branch is at now, "" if it is gone
	Base   string `json:"base"`
	BaseAt string `json:"base_at"` // the base commit it was verified on
	// Proposed is the commit the branch was at when the change was opened, where the forge keeps it.
	Proposed string    `json:"proposed,omitempty"`
	Author   string    `json:"author"`
	Marker   string    `json:"marker,omitempty"` // run id of ours, "" for people's
	Created  time.Time `json:"created"`
}

// Filter selects issues. State is "open", "closed" or "all"; "" means open. All labels must be there.
type Filter struct {
	State  string
	Labels []string
}

// LabelPrefix begins the labels that say where an issue stands with us. An issue has one of them:
// a new one takes the place of the last, and a closed issue has none.
const LabelPrefix = "interlock/"

// Mark is the visible sign of a claim: an assignee, a label and a comment, all keyed by Nonce.
type Mark struct {
	Nonce string
	Login string // who is shown as assigned
	Label string
	Text  string // the comment
}

// Forge is one repository on a forge. Methods may be called by many goroutines. A method that
// writes is safe to repeat with the same arguments: it looks first and adopts what is there.
// Errors wrap the sentinels above; a lost connection or a fault of the server is ErrUnknown.
type Forge interface {
	// Name names the kind of forge and the repository, for people.
	Name() string
	// Remote is the URL or path that git pushes to.
	Remote() string
	// Base returns the named branch, or the default branch for "": ErrEmpty, ErrDetached, ErrNotFound.
	Base(ctx context.Context, branch string) (name, hash string, err error)
	// Issue returns one issue with its comments. ErrNotFound.
	Issue(ctx context.Context, number int64) (Issue, error)
	// Issues returns all that match, lowest number first.
	Issues(ctx context.Context, f Filter) ([]Issue, error)
	// SetMark makes the claim visible. ErrClosed when the issue was closed.
	SetMark(ctx context.Context, issue int64, m Mark) error
	// ClearMark takes off what SetMark with the same nonce put there, and nothing else: an
	// assignee or label that was there before stays, and so does the comment, which is the
	// record. The label then, if not "", is put in its place, but not on a closed issue. Clearing
	// what is not there succeeds.
	ClearMark(ctx context.Context, issue int64, nonce, then string) error
	// Comment leaves one comment for a key, once; the one that is there is returned.
	Comment(ctx context.Context, issue int64, key, body string) (Comment, error)
	// Changes returns all changes for a head branch, every state, lowest number first; all
	// changes for "".
	Changes(ctx context.Context, head string) ([]Change, error)
	// Propose opens a change. ErrExists when an open one for the head is there (it is returned
	// with the error: adopt it), ErrNotFound when the head or base branch or the issue is not.
	// A HeadAt that is given must be where the head branch is: ErrInvalid.
	Propose(ctx context.Context, c Change) (Change, error)
}

// Restorer is a Forge whose issues and changes any writer of the repository can wipe, as git push
// --mirror from a clone does. Restore notes in the engine's repository what is there, and puts back
// what was seen there before and is gone or moved back. It returns what was done, and what somebody
// rewrote and was left as it is: one line each, safe to print. Doing it again does nothing.
type Restorer interface {
	Restore(ctx context.Context, repo *git.Repo) (said []string, err error)
}
