package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"interlock/internal/sandbox"
)

// TestExposedPlaces: what lies below a directory that every session is shown is refused, also
// through a symbolic link; what only lies beside it is not.
func TestExposedPlaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, d := range []string{"opt/bin", "opt/state", "option/state"} {
		must(t, os.MkdirAll(filepath.Join(dir, d), 0o700))
	}
	must(t, os.Symlink(filepath.Join(dir, "opt"), filepath.Join(dir, "link")))
	tools := []sandbox.Mount{{Source: filepath.Join(dir, "opt"), Target: filepath.Join(dir, "opt")}}
	for place, exposed := range map[string]bool{
		dir + "/opt/state": true, dir + "/opt": true, dir + "/link/state": true, "/usr/lib": true,
		dir + "/option/state": false, dir: false, dir + "/nosuch": false,
	} {
		err := sandbox.Exposed(sandbox.Full, tools, place)
		if got := errors.As(err, new(*sandbox.UnfitError)); got != exposed {
			t.Errorf("%s: %v", place, err)
		}
	}
}
