package secret_test

import (
	"strings"
	"testing"

	"interlock/internal/secret"
)

func TestAllow(t *testing.T) {
	t.Parallel()
	a, err := secret.ParseAllow([]string{"testdata/**/*.pem", "docs/", "fingerprint:0123456789abcdef", "a?c.txt", "**/fixtures/*"})
	if err != nil {
		t.Fatal(err)
	}
	shape, own := secret.Hit{Kind: "k", Fingerprint: "ffffffffffffffff"}, secret.Hit{Kind: "v", Own: true, Fingerprint: "ffffffffffffffff"}
	for path, want := range map[string]bool{
		"testdata/x.pem": true, "testdata/a/b/x.pem": true, "testdata/a/b/x.pem2": false, "x/testdata/x.pem": false, "testdata/x/pem": false,
		"docs/a": true, "docs/a/b": true, "docs": true, "docs2/a": false, "abc.txt": true, "a/c.txt": false, "ac.txt": false,
		"fixtures/a": true, "x/y/fixtures/a": true, "fixtures/a/b": false, "": false,
	} {
		if got := a.Covers(shape, path); got != want {
			t.Errorf("%q: %t, want %t", path, got, want)
		}
		if a.Covers(own, path) {
			t.Errorf("%q allows a value of this installation", path)
		}
	}
	own.Fingerprint = "0123456789abcdef"
	if !a.Covers(own, "anywhere") || !a.Covers(own, "") || !a.Fingerprint(own) || a.Fingerprint(shape) || a.Covers(shape, "") {
		t.Error("fingerprints")
	}
	for _, bad := range []string{"", "/", "/etc", "a//b", "../x", "a/../b", ".", "*", "**", "**/*", "*/**/", "???", "a**", "[", "fingerprint:", "fingerprint:0123", "fingerprint:0123456789ABCDEF", "fingerprint:0123456789abcdef0"} {
		if _, err := secret.ParseAllow([]string{"ok", bad}); err == nil {
			t.Errorf("ParseAllow took %q", bad)
		}
	}
	long, err := secret.ParseAllow([]string{strings.Repeat("**/a*/", 500) + "x"})
	if err != nil {
		t.Fatal(err)
	}
	if long.Covers(shape, strings.Repeat("a/", 2000)+"y") { // many stars take no more than the product of both
		t.Error("matches what it does not")
	}
}
