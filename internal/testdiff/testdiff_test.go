package testdiff_test

import (
	"slices"
	"strings"
	"testing"

	"interlock/internal/testdiff"
)

func TestLook(t *testing.T) {
	t.Parallel()
	goTest := "package a\n\nfunc TestA(t *testing.T) {\n\tif f() != 1 {\n\t\tt.Error(1)\n\t}\n\tt.Fatal(2)\n}\n\nfunc TestB(t *testing.T) {\n\tassert.Equal(t, 1, f())\n}\n\nfunc same(t *testing.T) { t.Fatal(3) }\n"
	py := "import pytest\n\ndef test_a():\n    assert f() == 1\n    assert f() == 2\n\nclass TestC:\n    def test_b(self):\n        self.assertEqual(1, f())\n\ndef same(x):\n    assert x\n"
	js := "describe('s', () => {\n  it('adds', () => {\n    expect(f()).toBe(1)\n    assert.equal(f(), 1)\n  })\n  it(\"takes\", () => { expect(2).toBe(2) })\n})\n"
	rs := "fn f() {}\n\n#[test]\nfn adds() {\n    assert_eq!(1, f());\n}\n\n#[tokio::test]\nasync fn waits() {\n    assert!(f());\n}\n"
	java := "class ATest {\n  @Test\n  void adds() {\n    assertEquals(1, f());\n  }\n}\n"
	for name, c := range map[string]struct {
		path, old, new string
		want           []string
	}{
		"nothing":         {"a_test.go", goTest, strings.Replace(goTest, "f() != 1", "f() != 5", 1), nil},
		"more":            {"a_test.go", goTest, goTest + "\nfunc TestC(t *testing.T) { t.Error() }\n", nil},
		"go removed":      {"a_test.go", goTest, strings.Replace(goTest, "func TestB(", "func helpB(", 1), []string{"test removed: `TestB` in `a_test.go`"}},
		"go skipped":      {"a_test.go", goTest, strings.Replace(goTest, "\tassert.", "\tt.Skip()\n\tassert.", 1), []string{"test is skipped now: `TestB` in `a_test.go`"}},
		"go fewer":        {"a_test.go", goTest, strings.Replace(goTest, "\tt.Fatal(2)\n", "", 1), []string{"assertions fell from 2 to 1: `TestA` in `a_test.go`"}},
		"go emptied":      {"a_test.go", goTest, strings.Replace(goTest, "assert.Equal(t, 1, f())", "f()", 1), []string{"test asserts nothing any more (it had 1): `TestB` in `a_test.go`"}},
		"go commented":    {"a_test.go", goTest, strings.Replace(goTest, "\tassert", "\t// assert", 1), []string{"test asserts nothing any more (it had 1): `TestB` in `a_test.go`"}},
		"go returns":      {"a_test.go", goTest, strings.Replace(goTest, "\tassert", "\treturn\n\tassert", 1), []string{"test returns at once now: `TestB` in `a_test.go`"}},
		"go outside":      {"a_test.go", goTest, strings.Replace(goTest, "{ t.Fatal(3) }", "{}", 1), []string{"assertions outside of tests fell from 1 to 0 in `a_test.go`"}},
		"go build":        {"a_test.go", goTest, "//go:build ignore\n\n" + goTest, []string{"build constraint now `ignore` in `a_test.go`"}},
		"go deleted":      {"a_test.go", goTest, "", []string{"test file deleted: `a_test.go`, with `TestA`, `TestB`"}},
		"go no test file": {"a.go", goTest, "", nil},
		"py removed":      {"test_a.py", py, strings.Replace(py, "def test_b", "def tst_b", 1), []string{"test removed: `test_b` in `test_a.py`"}},
		"py skipped":      {"test_a.py", py, strings.Replace(py, "def test_a", "@pytest.mark.skip\ndef test_a", 1), []string{"test is skipped now: `test_a` in `test_a.py`"}},
		"py xfail":        {"test_a.py", py, strings.Replace(py, "    def test_b", "    @pytest.mark.xfail(reason=\"x\")\n    def test_b", 1), []string{"test is skipped now: `test_b` in `test_a.py`"}},
		"py module":       {"test_a.py", py, strings.Replace(py, "\n\n", "\npytestmark = pytest.mark.skip\n\n", 1), []string{"tests are skipped now in `test_a.py`"}},
		"py fewer":        {"test_a.py", py, strings.Replace(py, "    assert f() == 2\n", "", 1), []string{"assertions fell from 2 to 1: `test_a` in `test_a.py`"}},
		"py returns":      {"test_a.py", py, strings.Replace(py, "    assert f() == 1", "    return\n    assert f() == 1", 1), []string{"test returns at once now: `test_a` in `test_a.py`"}},
		"js removed":      {"a.test.js", js, strings.Replace(js, "it(\"takes\"", "if (\"takes\"", 1), []string{"test removed: `takes` in `a.test.js`"}},
		"js skip":         {"a.test.js", js, strings.Replace(js, "it('adds'", "it.skip('adds'", 1), []string{"test is skipped now: `adds` in `a.test.js`"}},
		"js xit":          {"a.spec.ts", js, strings.Replace(js, "it('adds'", "xit('adds'", 1), []string{"test is skipped now: `adds` in `a.spec.ts`"}},
		"js only":         {"a.spec.ts", js, strings.Replace(js, "it('adds'", "it.only('adds'", 1), []string{"test is skipped now: `adds` in `a.spec.ts`"}},
		"js describe":     {"test/a.js", js, strings.Replace(js, "describe(", "describe.skip(", 1), []string{"tests are skipped now in `test/a.js`"}},
		"js emptied":      {"a.test.js", js, strings.Replace(js, "expect(2).toBe(2)", "", 1), []string{"test asserts nothing any more (it had 1): `takes` in `a.test.js`"}},
		"rust ignored":    {"src/lib.rs", rs, strings.Replace(rs, "#[test]", "#[test]\n#[ignore]", 1), []string{"test is skipped now: `adds` in `src/lib.rs`"}},
		"rust no test":    {"src/lib.rs", rs, strings.Replace(rs, "#[tokio::test]\n", "", 1), []string{"test removed: `waits` in `src/lib.rs`"}},
		"rust emptied":    {"src/lib.rs", rs, strings.Replace(rs, "assert!(f())", "f()", 1), []string{"test asserts nothing any more (it had 1): `waits` in `src/lib.rs`"}},
		"java disabled":   {"src/test/ATest.java", java, strings.Replace(java, "@Test", "@Disabled(\"x\")\n  @Test", 1), []string{"test is skipped now: `adds` in `src/test/ATest.java`"}},
		"java no test":    {"src/test/ATest.java", java, strings.Replace(java, "@Test", "", 1), []string{"test removed: `adds` in `src/test/ATest.java`"}},
		"ruby":            {"a_spec.rb", "it 'adds' do\n  expect(1).to eq 1\nend\n", "xit 'adds' do\n  expect(1).to eq 1\nend\n", []string{"test is skipped now: `adds` in `a_spec.rb`"}},
		"bats":            {"a.bats", "@test \"adds\" {\n  [ 1 = 1 ]\n}\n", "@test \"adds\" {\n  skip\n  [ 1 = 1 ]\n}\n", []string{"test is skipped now: `adds` in `a.bats`"}},
		"pytest.ini":      {"pytest.ini", "[pytest]\n", "[pytest]\naddopts = -k fast\n", []string{"configuration of tests changed: `pytest.ini`"}},
		"package.json":    {"package.json", "{\"scripts\":\n{\"test\": \"jest\"},\n\"version\": 1}", "{\"scripts\":\n{\"test\": \"true\"},\n\"version\": 1}", []string{"configuration of tests changed: `package.json`"}},
		"its version":     {"package.json", "{\"scripts\":\n{\"test\": \"jest\"},\n\"version\": 1}", "{\"scripts\":\n{\"test\": \"jest\"},\n\"version\": 2}", nil},
		"hostile name":    {"a.test.js", "it('a`b\x1b[2J', () => { expect(1) })\n", "// none\n", []string{"test removed: `a'b\x1b[2J` in `a.test.js`"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := testdiff.File{Path: c.path, Old: []byte(c.old), New: []byte(c.new)}
			if c.new == "" {
				f.New = nil
			}
			got := testdiff.Look([]testdiff.File{f}, nil)
			same := len(got) == len(c.want)
			for i := range got {
				same = same && strings.HasPrefix(got[i], c.want[i])
			}
			if !same {
				t.Errorf("found %q, want %q", got, c.want)
			}
			if again := testdiff.Look([]testdiff.File{{Path: c.path, Old: f.New, New: f.New}}, nil); len(again) != 0 {
				t.Errorf("unchanged: %q", again)
			}
		})
	}
}

// TestMoved: a test that is elsewhere now is not gone; a file renamed to what no runner looks at is.
func TestMoved(t *testing.T) {
	t.Parallel()
	text := []byte("func TestA(t *testing.T) { t.Fatal() }\n")
	moved := []testdiff.File{{Path: "a_test.go", Old: text, New: []byte("package a\n")}, {Path: "b_test.go", New: text}}
	if got := testdiff.Look(moved, nil); len(got) != 0 {
		t.Errorf("moved: %q", got)
	}
	moved[0].New = nil
	if got := testdiff.Look(moved, nil); len(got) != 0 {
		t.Errorf("moved, and the file is gone: %q", got)
	}
	if got := testdiff.Look([]testdiff.File{{OldPath: "a_test.go", Path: "b_test.go", Old: text, New: text}}, nil); len(got) != 0 {
		t.Errorf("renamed: %q", got)
	}
	for _, to := range []string{"a_test.go.txt", "a.go", "testdata/a_test.go", "_a/a_test.go"} {
		got := testdiff.Look([]testdiff.File{{OldPath: "a_test.go", Path: to, Old: text, New: text}}, nil)
		if len(got) == 0 || got[0] != "test file renamed to what is none: `a_test.go` is now `"+to+"`" {
			t.Errorf("renamed to %s: %q", to, got)
		}
	}
	if got := testdiff.Look([]testdiff.File{{Path: "a_test.go", Unread: true}}, nil); len(got) != 1 || !strings.Contains(got[0], "too large") {
		t.Errorf("not read: %q", got)
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line, file string
		want       bool
	}{
		{"./check.sh", "check.sh", true}, {"sh ci/check.sh -v", "ci/check.sh", true}, {"cd ci && ./check.sh", "ci/check.sh", true},
		{"make test", "Makefile", true}, {"make test", "sub/rules.mk", true}, {"npm run test", "package.json", true}, {"sh -c './check.sh'", "check.sh", true},
		{"go test ./...", "main.go", false}, {"./check.sh", "other.sh", false}, {"test -s answer", "answer", true}, {"go vet .", ".", false},
		{"./check.sh", "mycheck.sh", false},
	} {
		got := testdiff.Look([]testdiff.File{{Path: c.file, Old: []byte("a"), New: []byte("b")}}, []string{c.line})
		found := slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "the check ") })
		if found != c.want {
			t.Errorf("%s, %s changed: %q", c.line, c.file, got)
		}
	}
}

func FuzzLook(f *testing.F) {
	f.Add("a_test.go", "func TestA(t *testing.T) {\n\tt.Fatal()\n}\n", "func TestB(")
	f.Add("a.test.ts", "it(`x`, () => expect(1))", "xit('y')")
	f.Add("lib.rs", "#[test]\nfn a() { assert!(x) }", "#[")
	f.Fuzz(func(t *testing.T, name, old, new string) {
		testdiff.Look([]testdiff.File{{Path: name, Old: []byte(old), New: []byte(new)}}, []string{old})
		if got := testdiff.Look([]testdiff.File{{Path: name, Old: []byte(old), New: []byte(old)}}, nil); len(got) != 0 {
			t.Fatalf("unchanged, and yet %q", got)
		}
	})
}
