package view

import (
	"fmt"
	"strings"

	"interlock/internal/store"
	"interlock/internal/text"
)

// State is a report on the state directory for people.
func State(r store.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "whole: %s\n", text.Line(r.Path))
	fmt.Fprintf(&b, "  size      %d bytes, log %d bytes\n", r.Bytes, r.LogBytes)
	fmt.Fprintf(&b, "  version   %d\n  runs      %d\n", r.Version, r.Runs)
	fmt.Fprintf(&b, "  fences    up to %d; every new one is above %d\n", r.Fence, r.Above)
	fmt.Fprintf(&b, "  epoch     %s\n  install   %s\n", text.Line(r.Epoch), text.Line(r.Installation))
	if r.Raised != "" {
		fmt.Fprintf(&b, "  raised    %s\n", text.Line(r.Raised))
	}
	for _, c := range r.Copies {
		fmt.Fprintf(&b, "  kept      %s\n", text.Line(c))
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "  warning   %s\n", text.Line(w))
	}
	return b.String()
}

// Restored says for people what putting a copy back did.
func Restored(r store.Restored) string {
	var b strings.Builder
	fmt.Fprintf(&b, "restored from %s\n", text.Line(r.From))
	if r.Kept != "" {
		fmt.Fprintf(&b, "  kept      %s\n", text.Line(r.Kept))
	}
	fmt.Fprintf(&b, "  raised    %s\n", text.Line(r.Raised))
	return b.String()
}
