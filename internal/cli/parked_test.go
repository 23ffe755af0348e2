package cli_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"interlock/internal/store/sqlite"
)

// quick does the work at once.
const quick = "#!/bin/sh\necho fixed > answer\n"

// next is the command line that works the first eligible issue.
func (p *project) next(more ...string) []string {
	args := p.work(more...)
	return append(args[:3:3], append([]string{"--next"}, args[5:]...)...)
}

// file files another issue.
func (p *project) file(title string) {
	p.t.Helper()
	p.must(0, "issue", "new", "--repo", p.repo, "--title", title)
}

// plant puts an issue under a number as any other writer of the repository can.
func (p *project) plant(number, document string) {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), "issue.json")
	p.write(file, document, 0o600)
	blob := p.git("-C", p.repo, "hash-object", "-w", file)
	list := filepath.Join(p.t.TempDir(), "tree")
	p.write(list, "100644 blob "+blob+"\tissue.json\n", 0o600)
	in, err := os.Open(list)
	if err != nil {
		p.t.Fatal(err)
	}
	defer in.Close()
	tree := p.gitFrom(in, "-C", p.repo, "mktree")
	commit := p.git("-C", p.repo, "-c", "user.name=T", "-c", "user.email=t@localhost", "commit-tree", tree, "-m", "planted")
	p.git("-C", p.repo, "update-ref", "refs/interlock/issues/"+number, commit)
}

const document = `{"format":1,"issue":{"number":1,"title":TITLE,"body":BODY,"state":"open","labels":[],"assignees":[],"author":"x",
"comments":[],"created":"2020-01-01T00:00:00Z","updated":"2020-01-01T00:00:00Z"}}`

// TestSecretTitle: an issue that was parked before a session keeps nobody from the next one, on whatever
// base, and is worked when the settings that it was parked by are others.
func TestSecretTitle(t *testing.T) {
	t.Parallel()
	p := newProject(t, quick, "")
	p.must(0, "issue", "close", "1", "--repo", p.repo)
	p.file("Use ghp_" + "kD8sLq27ZxVb91MnTpWc40RyGhJfEuAoQi35")
	p.file("The other one")
	entry := regexp.MustCompile("fingerprint:[0-9a-f]{16}").FindString(p.must(1, p.next()...))
	p.commit("other", "text\n")
	if a := p.why("2"); a.State != "parked" || a.Startable || !strings.Contains(a.Why, "nothing it depends on has changed") {
		t.Errorf("parked: %+v", a)
	}
	if out := p.must(0, p.next()...); !strings.Contains(out, "issue 3: in review") || !strings.Contains(out, "a secret would be published: GitHub token") {
		t.Errorf("the next one:\n%s", out)
	}
	if rows := p.runs(); len(rows) != 2 {
		t.Errorf("runs: %+v, want one for each issue", rows)
	}
	if out := p.must(0, p.next("--allow-secret", entry)...); !strings.Contains(out, "issue 2: in review") {
		t.Errorf("allowed:\n%s", out)
	}
}

// TestImpossibleIssue: an issue that nobody could work keeps nobody from the next one, and says why.
func TestImpossibleIssue(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 200<<10)
	for name, text := range map[string]string{
		"no JSON":            "{",
		"a title of nothing": strings.NewReplacer("TITLE", `"\u200b\u2060"`, "BODY", `"b"`).Replace(document),
		"no room for a mark": strings.NewReplacer("TITLE", `"t"`, "BODY", `"`+long+long[:len(long)/50]+`"`).Replace(document),
		"a huge body":        strings.NewReplacer("TITLE", `"t"`, "BODY", `"`+long+`"`).Replace(document),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, quick, "possible")
			p.file("The other one")
			p.plant("1", text)
			_, first := p.interlock(p.next()...)
			_, second := p.interlock(p.next()...)
			if got := p.refs("refs/interlock/changes/"); len(got) == 0 {
				t.Errorf("nothing was done:\n%s\n%s", first, second)
			}
			if out := first + second; !strings.Contains(out, "issue 1") && !strings.Contains(out, "change 1") {
				t.Errorf("not a word of issue 1:\n%s", out)
			}
			for _, r := range p.runs() {
				if r.State != "in review" && r.State != "parked" && r.State != "canceled" {
					t.Errorf("run %+v neither rests nor is parked", r)
				}
			}
		})
	}
}

// alter changes the database behind the store's back. While it is open it is not compared with what
// was sealed: so a row looks whose page went bad in use.
func (p *project) alter(change string) {
	p.t.Helper()
	s, err := sqlite.Open(p.t.Context(), p.state, sqlite.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = s.Close() })
	db, err := sql.Open("sqlite", filepath.Join(p.state, "state.db"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer db.Close()
	if _, err = db.Exec(change); err != nil {
		p.t.Fatal(err)
	}
}

// TestDamagedRow: a row of the database that cannot be read stops its own issue, whatever state its
// run is in, and no other.
func TestDamagedRow(t *testing.T) {
	t.Parallel()
	effect := "INSERT INTO effects (run, kind, key, text, status, at, place) SELECT id, 'nonsense', 'k', '', 'pending', 0, 9 FROM runs"
	for _, row := range []struct{ name, state, change string }{
		{"record", "parked", "UPDATE runs SET data = '{'"},
		{"record", "live", `UPDATE runs SET data = '{"id":"x"}'`},
		{"state", "parked", "UPDATE runs SET state = 'nonsense'"},
		{"effect", "live", effect},
		{"lease", "live", "UPDATE leases SET identity = '{'"},
		{"session", "live", "UPDATE sessions SET handle = '{', ended = 0"},
	} {
		t.Run(row.name+" "+row.state, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, "#!/bin/sh\nfalse\n", "worked once")
			if row.state == "live" {
				p.write(p.agent, slowAgent, 0o755)
				first := p.start(p.work()...)
				first.signal(syscall.SIGKILL)
				first.wait()
				p.dead()
			} else {
				p.must(8, p.work("--attempts", "1")...)
			}
			p.file("The other one")
			p.alter(row.change)
			p.write(p.agent, quick, 0o755)
			out := p.must(0, p.next("--attempts", "2")...)
			if !strings.Contains(out, "issue 1  passed over") || len(p.refs("refs/heads/interlock/issue-2")) != 1 || len(p.refs("refs/heads/interlock/")) != 1 {
				t.Errorf("issue 1 was not passed over, or issue 2 not worked:\n%s", out)
			}
			if code, out := p.interlock(p.work()...); code == 0 || !strings.Contains(out, "next: interlock ") {
				t.Errorf("issue 1: exit %d\n%s", code, out)
			}
		})
	}
}
