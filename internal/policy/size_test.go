package policy_test

import (
	"strings"
	"testing"

	"interlock/internal/policy"
)

func TestSizeBytes(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int64{"0": 0, "17": 17, "17B": 17, "1KiB": 1 << 10, "3M": 3 << 20, "2GB": 2 << 30, "5TiB": 5 << 40, "999999999999G": 1 << 60, "999999999999T": 1 << 60} {
		if n, err := policy.SizeBytes(s); err != nil || n != want {
			t.Errorf("%s: %d, %v, want %d", s, n, err, want)
		}
	}
	for _, s := range []string{"", "50%", "-1", "1.5GiB", "1 GiB", "1gib", "1000000000000"} {
		if n, err := policy.SizeBytes(s); err == nil {
			t.Errorf("%q: %d", s, n)
		}
	}
}

// TestRetentionIsTheOperators: how long things stay, and how full a disk gets, is not a repository's to
// say, nor that of a section for one repository.
func TestRetentionIsTheOperators(t *testing.T) {
	t.Parallel()
	const text = "retention:\n  workspaces: 0s\n  logs: 1h\ndisk:\n  least-free: 5GiB\n  most: 0\n"
	f, err := policy.Parse("own", policy.General, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	set := policy.Settle(policy.Layers{General: f.Values})
	if set.Span("retention.workspaces") != 0 || set.Span("retention.logs").Hours() != 1 || set.Text("disk.least-free") != "5GiB" || set.Text("disk.most") != "0" {
		t.Errorf("%+v", f.Values)
	}
	for name, c := range map[string]struct {
		whose policy.Whose
		text  string
		says  string
	}{
		"repository": {policy.Repository, text, "it decides what of the operator's state is removed"},
		"section":    {policy.General, "repositories:\n  /r:\n    disk:\n      most: 1GiB\n", "disk"},
		"share":      {policy.General, "disk:\n  most: 50%\n", "a size as in 8GiB"},
		"span":       {policy.General, "retention:\n  logs: 31d\n", "wanted is a duration"},
	} {
		if _, err := policy.Parse("file", c.whose, []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
