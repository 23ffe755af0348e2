package forge

import (
	"errors"
	"fmt"
	"strings"
)

// ErrLost: the claim is not ours any more, or never was. Nothing was moved by the call that
// returns it. It comes as a *LostError.
var ErrLost = errors.New("the claim is no longer ours")

// Claim is a claim ref as it was read: the newest commit of a chain in which each commit is the
// child of the last and Generation is the parent's plus one.
type Claim struct {
	Issue        int64  `json:"issue"`
	Ref          string `json:"ref"`
	Hash         string `json:"hash"`
	Nonce        string `json:"nonce"`
	Installation string `json:"installation"`
	Holder       string `json:"holder"` // for people: host and process; safe to print
	Generation   int64  `json:"generation"`
	Released     bool   `json:"released"`
	// Damage says why the ref cannot be read as a claim; "" if it can. A damaged claim is held,
	// by a writer nobody knows: it is never free.
	Damage string `json:"damage,omitempty"`
	// Process is who wrote this commit, in the writer's own form (Claims.Process); "" if not told.
	Process string `json:"process,omitempty"`
	// Wiped: the ref is gone from the remote. This is what was last seen there, and it was held:
	// its holder is going to restore it, or it is abandoned.
	Wiped bool `json:"wiped,omitempty"`
}

// Free reports whether the claim may be taken by anybody.
func (c Claim) Free() bool { return c.Released && c.Damage == "" }

// HeldError says that the claim of an issue is somebody else's.
type HeldError struct {
	Issue int64
	Claim Claim
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("issue %d is claimed by %s", e.Issue, e.Claim.who())
}

// LostError says how a claim of ours was lost. Claim is what is there now; it is empty when
// nothing is.
type LostError struct {
	Issue int64
	Claim Claim
	Why   string
}

func (e *LostError) Error() string { return fmt.Sprintf("issue %d: %v: %s", e.Issue, ErrLost, e.Why) }

// Unwrap makes it an ErrLost.
func (e *LostError) Unwrap() error { return ErrLost }

// who names the holder for a person.
func (c Claim) who() string {
	if c.Damage != "" {
		return fmt.Sprintf("an unknown writer (%s at %.12s cannot be read as a claim: %s)", c.Ref, c.Hash, c.Damage)
	}
	if c.Holder == "" {
		return "installation " + c.Installation
	}
	return c.Holder
}

// same reports whether both are one and the same commit in the same condition.
func (c Claim) same(o Claim) bool {
	return c.Hash == o.Hash && c.Wiped == o.Wiped && c.Damage == o.Damage
}

// space is the namespace that the claim's ref is in.
func (c Claim) space() int {
	if strings.HasPrefix(c.Ref, Namespaces[1]) {
		return 1
	}
	return 0
}
