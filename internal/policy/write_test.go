package policy_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"interlock/internal/policy"
)

// setting is a commented line that sets something or opens a group.
var setting = regexp.MustCompile(`(?m)^# ?( *(?:[a-z-]+|~/src/example):(?: .*)?)$`)

// prose are lines that look like a setting and are none.
var prose = regexp.MustCompile(`(?m)^# +(?:propose|full): .*\n`)

// TestCommentedIsTrue: the file as it is written holds what was found; with every line in force it
// is sound, sets every key that its owner may set, and each default is the default.
func TestCommentedIsTrue(t *testing.T) {
	t.Parallel()
	fill := map[string]policy.Fill{
		"base":   {Value: "feature/x", Remark: []string{"Found: it."}},
		"checks": {Value: []string{"true", "go test ./...", "a: \"b\" \\ # c\n\tü"}},
	}
	for _, whose := range []policy.Whose{policy.Repository, policy.General} {
		text := policy.Commented(whose, fill)
		f, err := policy.Parse("f", whose, []byte(text))
		if err != nil {
			t.Fatalf("%s: %v\n%s", whose, err, text)
		}
		got := map[string]any{}
		for name, v := range f.Values {
			got[name] = v.Value
		}
		if diff := cmp.Diff(map[string]any{"base": fill["base"].Value, "checks": fill["checks"].Value}, got); diff != "" {
			t.Errorf("%s (-filled +read):\n%s", whose, diff)
		}
		whole := setting.ReplaceAllString(prose.ReplaceAllString(policy.Commented(whose, nil), ""), "$1")
		f, err = policy.Parse("f", whose, []byte(whole))
		if err != nil {
			t.Fatalf("%s, all in force: %v\n%s", whose, err, whole)
		}
		for _, k := range policy.Keys() {
			may := whose == policy.General || k.Right != policy.Operator && k.Right != policy.Machine
			v, has := f.Values[k.Name]
			if has != may {
				t.Errorf("%s: %s is there %t, may be set %t", whose, k.Name, has, may)
			}
			if has && k.Default != "" && policy.Show(v.Value) != k.Default {
				t.Errorf("%s: %s is %s, its default is %s", whose, k.Name, policy.Show(v.Value), k.Default)
			}
		}
		if whose == policy.General && len(f.Sections) != 1 {
			t.Errorf("the sample of a section is not there:\n%s", whole)
		}
	}
}

// TestSchemaIsCommitted: the files under schema/ are those of the program.
func TestSchemaIsCommitted(t *testing.T) {
	t.Parallel()
	for name, whose := range map[string]policy.Whose{"config.schema.json": policy.Repository, "operator.schema.json": policy.General} {
		want, err := policy.Schema(whose)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("..", "..", "schema", name)
		if *update {
			if err := os.WriteFile(path, want, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("schema/%s is not what interlock config schema prints; go test ./internal/policy -run Schema -update:\n%s", name, diff)
		}
	}
}

// accepts reports whether a schema accepts a file.
func accepts(t *testing.T, whose policy.Whose, text string) error {
	t.Helper()
	data, err := policy.Schema(whose)
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if data, err = json.Marshal(v); err != nil { // an editor sees JSON's values
		t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(data, &plain); err != nil {
		t.Fatal(err)
	}
	return r.Validate(plain)
}

// TestSchema: an editor is told the same as Parse tells.
func TestSchema(t *testing.T) {
	t.Parallel()
	for text, sound := range map[string]bool{
		"base: main": true, "lane: merge": false, "cheks: [a]": false, "checks: [a]": true, "checks: a": false, "checks: [1]": false,
		"limits: {attempts: 3}": true, "limits: {attempts: 0}": false, "limits: {attempts: x}": false, "limits: {max-tasks: 0}": true,
		"limits: {agent-timeout: 30m}": true, "limits: {agent-timeout: 1h2m3.5s}": true, "limits: {agent-timeout: 30}": false,
		"limits: {agent-timeout: soon}": false, "limits: {max-memory: 75%}": true, "limits: {max-memory: 8GiB}": true, "limits: {max-memory: much}": false,
		"allow-no-tests: true": true, "allow-no-tests: 'true'": false, "limits: ": true, "": true, "- a": false,
		"sandbox: {level: none}": false, "agent: {env: [A]}": false, "agent: {command: x}": true, "state-dir: /a": false, "repositories: {}": false,
	} {
		_, perr := policy.Parse("f", policy.Repository, []byte(text))
		err := accepts(t, policy.Repository, text)
		if (err == nil) != sound || (perr == nil) != sound {
			t.Errorf("%q: the schema says %v, the program says %v", text, err, perr)
		}
	}
	for text, sound := range map[string]bool{
		"sandbox: {level: none}": true, "sandbox: {level: most}": false, "agent: {env: [A]}": true, "agent: {env: ['A=1']}": false, "state-dir: /a": true,
		"state-dir: a": false, "wait: 0": true, "wait: 20m": true, "repositories: {/a: {lane: build}}": true, "repositories: {/a: {state-dir: /b}}": false,
		"repositories: {a: {}}": false, "repositories: {~/a: }": true,
	} {
		_, perr := policy.Parse("f", policy.General, []byte(text))
		err := accepts(t, policy.General, text)
		if (err == nil) != sound || (perr == nil) != sound {
			t.Errorf("%q: the schema says %v, the program says %v", text, err, perr)
		}
	}
}

// TestOwner: a file that others could have written decides nothing.
func TestOwner(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "interlock")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "config.yaml")
	if _, err := policy.ReadOperator(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(path, []byte("lane: build\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	reads := func(what string, safe bool) {
		t.Helper()
		_, err := policy.ReadOperator(path)
		if safe != (err == nil) || !safe && !errors.Is(err, policy.ErrUnsafe) {
			t.Errorf("%s: %v", what, err)
		}
	}
	set := func(path string, mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	reads("0600", true)
	set(path, 0o644)
	reads("0644", true)
	set(path, 0o660)
	reads("writable for its group", false)
	set(path, 0o602)
	reads("writable for everybody", false)
	set(path, 0o600)
	set(dir, 0o777)
	reads("in a directory where everybody can replace it", false)
	set(dir, 0o777|os.ModeSticky)
	reads("in a sticky directory", true)
	set(dir, 0o700)
	if os.Geteuid() == 0 {
		if err := os.Chown(path, 4321, 0); err != nil {
			t.Fatal(err)
		}
		reads("of another account", false)
		if err := os.Chown(path, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	link := path + ".link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	set(path, 0o606)
	if _, err := policy.ReadOperator(link); !errors.Is(err, policy.ErrUnsafe) {
		t.Errorf("through a link: %v", err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{pipe, dir, "/dev/null"} {
		if _, err := policy.ReadOperator(p); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("%s: %v", p, err)
		}
	}
}

func TestOperatorPath(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{"/x", "/h", "/x/interlock/config.yaml"}, {"", "/h", "/h/.config/interlock/config.yaml"}, {"rel", "/h", "/h/.config/interlock/config.yaml"}, {"", "", ""},
	} {
		if got := policy.OperatorPath(c[0], c[1]); got != c[2] {
			t.Errorf("%q and %q: %s", c[0], c[1], got)
		}
	}
}
