package store_test

import (
	"strings"
	"testing"

	"interlock/internal/run"
	"interlock/internal/store"
)

// TestKey: issues and repositories never share a key, and who holds one is named for people.
func TestKey(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, repo := range []string{"local:1", "local:11"} {
		for _, issue := range []int64{1, 11, 111} {
			key := store.Key(repo, issue)
			if seen[key] {
				t.Errorf("%s twice", key)
			}
			seen[key] = true
		}
	}
	err := &store.HeldError{Lease: run.Lease{Key: store.Key("r", 7), Holder: run.Holder{PID: 4711, Host: "there"}}}
	for _, part := range []string{"r#7", "4711", "there"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %s", err, part)
		}
	}
}
