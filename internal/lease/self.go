package lease

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"

	"interlock/internal/run"
	"interlock/internal/sandbox/process"
	"interlock/internal/store"
)

// Self is this process as a holder of leases of a store, so that its death can be proved later.
func Self(ctx context.Context, s store.Store) (run.Holder, error) {
	installation, err := s.Controls().Installation(ctx)
	if err != nil {
		return run.Holder{}, err
	}
	self, err := process.Self()
	if err != nil {
		return run.Holder{}, err
	}
	host, err := os.Hostname()
	if err != nil {
		return run.Holder{}, fmt.Errorf("name this machine: %w", err)
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return run.Holder{}, fmt.Errorf("name the pid namespace: %w", err)
	}
	return run.Holder{
		ID: rand.Text(), Namespace: namespace, Installation: installation, Host: host, PID: self.PID, Start: self.Start, Boot: self.Boot,
	}, nil
}
