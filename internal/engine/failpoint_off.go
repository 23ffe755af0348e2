//go:build !failpoint

package engine

// failpoint does nothing in a normal build; see failpoint_on.go.
func failpoint(string) {}
