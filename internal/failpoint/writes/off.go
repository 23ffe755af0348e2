//go:build !failpoint

package writes

import (
	"interlock/internal/forge"
	"interlock/internal/store"
)

// Store returns s in a normal build; see on.go.
func Store(s store.Store) store.Store { return s }

// Forge returns f in a normal build; see on.go.
func Forge(f forge.Forge) forge.Forge { return f }
