package confine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"interlock/internal/sandbox/confine"
)

// TestLookPath: the PATH that counts is the command's, not ours; directories, files that cannot be
// executed and relative places are passed over, and the codes are the shell's.
func TestLookPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"first/tool": 0o600, "second/tool": 0o700, "third/tool": 0o700} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "zeroth/tool"), 0o700); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=/x", fmt.Sprintf("PATH=%[1]s/none::.:%[1]s/zeroth:%[1]s/first:%[1]s/second:%[1]s/third", dir)}
	for _, c := range []struct {
		argv, env []string
		want      string
		code      int
	}{
		{[]string{"tool", "x"}, env, dir + "/second/tool", 0},
		{[]string{"./first/tool"}, env, "./first/tool", 0},
		{[]string{"sh"}, nil, "", 0}, // where it is depends on the machine
		{[]string{"sh"}, []string{"PATH=" + dir}, "", 127},
		{[]string{"nosuch"}, env, "", 127},
		{[]string{""}, env, "", 126},
		{nil, env, "", 126},
	} {
		got, err := confine.LookPath(c.argv, c.env)
		if c.want != "" && got != c.want || (err != nil) != (c.code != 0) || err != nil && confine.StartCode(err) != c.code {
			t.Errorf("%q: %q, %v", c.argv, got, err)
		}
	}
}

// TestEncode: the order is one line, whatever is in it: the stage reads a line, then waits.
func TestEncode(t *testing.T) {
	t.Parallel()
	want := confine.Order{Argv: []string{"a\nb", "go\n"}, Env: []string{"X=\n"}, Dir: "/d\n", Read: []string{"/"}, Landlock: confine.ABI()}
	line, err := want.Encode()
	if err != nil || bytes.Count(line, []byte("\n")) != 1 || line[len(line)-1] != '\n' {
		t.Fatalf("%q, %v", line, err)
	}
	var got confine.Order
	if err := json.Unmarshal(line, &got); err != nil || !cmp.Equal(want, got) {
		t.Errorf("%v, %v", err, cmp.Diff(want, got))
	}
}
