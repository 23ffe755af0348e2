//go:build !failpoint

package failpoint

// Here does nothing in a normal build; see on.go.
func Here(string) {}

// Fault returns nil in a normal build; see on.go.
func Fault(string) error { return nil }
