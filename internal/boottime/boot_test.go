package boottime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoBootID: where the boot cannot be named there is no clock, and that is said.
func TestNoBootID(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "boot_id")
	if _, err := of(file); err == nil || !strings.Contains(err.Error(), "mount /proc") {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(file, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := of(file); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("an empty file: %v", err)
	}
}
