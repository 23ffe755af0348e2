//go:build !failpoint

package failpoint

import "time"

// Here does nothing in a normal build; see on.go.
func Here(string) {}

// Fault returns nil in a normal build; see on.go.
func Fault(string) error { return nil }

// IsFault is false in a normal build; see on.go.
func IsFault(error) bool { return false }

// Sooner returns d in a normal build; see on.go.
func Sooner(_ string, d time.Duration) time.Duration { return d }
