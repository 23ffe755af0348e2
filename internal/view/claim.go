package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"interlock/internal/claim"
	"interlock/internal/text"
)

// Claims prints claims as a table.
func Claims(w io.Writer, found []claim.Sight) error {
	t := text.NewTable(w, "ISSUE", "STATE", "GENERATION", "HOLDER", "INSTALLATION", "UNMOVED", "RUN")
	for _, s := range found {
		t.Row(number(s.Issue), claimState(s), number(s.Generation), text.Short(s.Holder, 40), claimWhose(s), unmoved(s), s.Run)
	}
	return t.Flush()
}

// Claim is a claim for people. next is the command that breaks it, "" when there is nothing to break.
func Claim(s claim.Sight, next string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "claim of issue %d: %s\n", s.Issue, claimState(s))
	field(&b, "holder", s.Holder)
	field(&b, "installation", claimWhose(s))
	field(&b, "generation", number(s.Generation))
	field(&b, "run", s.Run)
	field(&b, "ref", s.Ref)
	field(&b, "hash", s.Hash)
	field(&b, "damage", s.Damage)
	if s.Alive {
		field(&b, "process", fmt.Sprintf("%d of this machine, alive", s.PID))
	}
	if s.Free() {
		return b.String()
	}
	field(&b, "unmoved", unmoved(s))
	if s.Dead {
		field(&b, "process", fmt.Sprintf("%d of this machine, gone: the next run from this state directory takes the claim at once", s.PID))
		return b.String()
	}
	if s.Left > 0 {
		field(&b, "watched", fmt.Sprintf("taken over by the next run if it does not move for %s more", seconds(s.Left)))
	} else if s.Damage == "" {
		field(&b, "watched", "abandoned: the next run takes it over")
	}
	if next != "" {
		fmt.Fprintf(&b, "if its holder is gone for good: %s\n", text.Line(next))
	}
	return b.String()
}

func claimState(s claim.Sight) string {
	switch {
	case s.Damage != "":
		return "damaged"
	case s.Wiped:
		return "held, wiped from the forge"
	case s.Released:
		return "released"
	}
	return "held"
}

func claimWhose(s claim.Sight) string {
	if s.Ours {
		return s.Installation + " (ours)"
	}
	return s.Installation
}

func unmoved(s claim.Sight) string {
	if s.Free() {
		return ""
	}
	return seconds(s.Unmoved)
}

func seconds(n int64) string { return (time.Duration(n) * time.Second).String() }
