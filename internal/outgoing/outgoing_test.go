package outgoing_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"interlock/internal/forge"
	"interlock/internal/git"
	"interlock/internal/outgoing"
	"interlock/internal/run"
)

// body is that of a token; the prefix is put in front when the test runs, so that none stands here.
const body = "kD8sLq27ZxVb91MnTpWc40RyGhJfEuAoQi35"

var token = "ghp_" + body

// site is a guard with a repository of the engine's.
type site struct {
	t     testing.TB
	guard *outgoing.Guard
	repo  *git.Repo
	base  string
	plan  run.Plan
	said  []string
}

func newSite(t testing.TB, env ...string) *site {
	t.Helper()
	g, err := git.Find(t.Context())
	must(t, err)
	s := &site{t: t}
	s.repo, err = g.Engine(t.Context(), filepath.Join(t.TempDir(), "r.git"))
	must(t, err)
	key, err := outgoing.Key(t.TempDir())
	must(t, err)
	s.guard = &outgoing.Guard{Repo: s.repo, Env: env, Key: key, Say: func(_ run.Run, kind, format string, args ...any) {
		s.said = append(s.said, kind+": "+fmt.Sprintf(format, args...))
	}}
	s.base = s.commit("base", map[string]string{"a": "a\n"})
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *site) commit(message string, files map[string]string, parents ...string) string {
	s.t.Helper()
	all := map[string][]byte{}
	for name, text := range files {
		all[name] = []byte(text)
	}
	hash, err := s.repo.WriteCommit(s.t.Context(), git.CommitSpec{Files: all, Parents: parents, Message: message, When: time.Unix(1, 0)})
	must(s.t, err)
	return hash
}

// unended makes a commit whose message has no end of line.
func (s *site) unended(message string) string {
	s.t.Helper()
	tree := s.commit("m", map[string]string{"a": "z\n"}, s.base)
	c, err := s.repo.Resolve(s.t.Context(), tree)
	must(s.t, err)
	text := fmt.Sprintf("tree %s\nparent %s\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\n%s", c.Tree, s.base, message)
	out, err := s.repo.Run(s.t.Context(), git.Command{Args: []string{"hash-object", "-t", "commit", "-w", "--stdin"}, Stdin: []byte(text)})
	must(s.t, err)
	return strings.TrimSpace(string(out.Stdout))
}

func (s *site) check(head, title string) run.Event {
	s.t.Helper()
	ev, err := s.guard.Check(s.t.Context(), run.Run{
		ID: "1-a", Issue: 1, Attempt: 2, Branch: "interlock/issue-1", Task: run.Task{Title: title}, Plan: s.plan,
		Base: run.Base{Branch: "main", Commit: run.Commit{Hash: s.base}}, Head: run.Commit{Hash: head},
	})
	must(s.t, err)
	return ev
}

// failed demands an attempt that failed with a text, which no secret is in.
func (s *site) failed(ev run.Event, says string, secrets ...string) {
	s.t.Helper()
	f, is := ev.(run.Failed)
	if !is || !strings.Contains(f.Reason, says) || f.Findings == "" {
		s.t.Fatalf("%#v, want an attempt that failed by %q", ev, says)
	}
	for _, secret := range append(secrets, token) {
		if strings.Contains(f.Reason+f.Findings+strings.Join(s.said, "\n"), secret) {
			s.t.Errorf("a secret is repeated in %q", f.Findings)
		}
	}
}

// TestCheck: where a secret can be, and what is told of it.
func TestCheck(t *testing.T) {
	t.Parallel()
	s := newSite(t, "MODEL_KEY=own-value-4711", "OTHER=other-value-42", "PATH=/usr/bin")
	s.plan.Env = []string{"MODEL_KEY"}
	fine := s.commit("m", map[string]string{"a": "a\n", "b": "b\n"}, s.base)
	if ev := s.check(fine, "T"); ev != nil {
		t.Fatalf("nothing is wrong, and %#v", ev)
	}
	s.failed(s.check(s.commit("m", map[string]string{"a": "a\n", "b": "1\n2 " + token + "\n"}, s.base), "T"), "attempt 2: a secret would be pushed: GitHub token in b line 2 of commit ")
	once := s.commit("m", map[string]string{"a": "a\n", "b": token}, s.base)
	s.failed(s.check(s.commit("m", map[string]string{"a": "a\n", "c": "c"}, once), "T"), "GitHub token in b line 1 of commit "+once[:12])
	s.failed(s.check(s.commit("why\n\nbecause "+token, map[string]string{"a": "b\n"}, s.base), "T"), " itself (its message or its author) (fingerprint:")
	s.failed(s.check(s.unended(token), "T"), "in line 6 of commit ")
	s.failed(s.check(s.commit("m", map[string]string{"a": "a\n", "x-" + token: "c"}, s.base), "T"), "the name of the file 'x-[redacted]' of commit ")
	s.failed(s.check(s.commit("m", map[string]string{"a": "own-value-4711\n"}, s.base), "T"), "value of MODEL_KEY in a line 1", "own-value-4711")
	if ev := s.check(s.commit("m", map[string]string{"a": "other-value-42\n"}, s.base), "T"); ev != nil {
		t.Errorf("what is neither handed over nor a secret by its name: %#v", ev)
	}
	many := strings.Repeat("x "+token+"\n", 50)
	s.failed(s.check(s.commit("m", map[string]string{"a": many}, s.base), "T"), "(50 in all)")
	s.failed(s.check(s.commit("m", map[string]string{"AGENTS.md": "x", "b": token}, s.base), "T"), "out of scope")
	// What was there before, and is only moved, is not the agent's.
	s.base = s.commit("m", map[string]string{"old": token + "\n"}, s.base)
	if ev := s.check(s.commit("m", map[string]string{"new": token + "\n"}, s.base), "T"); ev != nil {
		t.Errorf("a file was moved: %#v", ev)
	}
	if ev := s.check(s.commit("m", map[string]string{"old": token + "\nmore\n"}, s.base), "T"); ev != nil {
		t.Errorf("a line beside it was added: %#v", ev)
	}
}

// TestWords: a secret in the title parks the run: it is no agent's fault.
func TestWords(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	head := s.commit("m", map[string]string{"b": "b"}, s.base)
	p, is := s.check(head, "Use "+token).(run.ParkedBecause)
	if !is || !strings.Contains(p.Reason, "GitHub token in the issue's title (fingerprint:") || strings.Contains(p.Reason+p.Say+p.Next+p.Then, body) ||
		p.Exit != run.ExitRefused || p.Next == "" || strings.Contains(p.Say, "fingerprint") {
		t.Errorf("%#v", p)
	}
	entry := p.Reason[strings.Index(p.Reason, "fingerprint:"):]
	s.plan.AllowSecrets = []string{strings.TrimSuffix(entry, ")")}
	if ev := s.check(head, "Use "+token); ev != nil {
		t.Errorf("allowed, and %#v", ev)
	}
	s.plan.AllowSecrets = []string{"**"}
	if p, is := s.check(head, "T").(run.ParkedBecause); !is || p.Exit != run.ExitUsage {
		t.Errorf("an entry that cannot be read: %#v", p)
	}
}

// TestAllow: a pattern lifts shapes in files, never an own value, nor what is in a message.
func TestAllow(t *testing.T) {
	t.Parallel()
	s := newSite(t, "MODEL_KEY=own-value-4711")
	s.plan.Env, s.plan.AllowSecrets = []string{"MODEL_KEY"}, []string{"testdata-*"}
	if ev := s.check(s.commit("m", map[string]string{"testdata-a": token}, s.base), "T"); ev != nil {
		t.Errorf("allowed, and %#v", ev)
	}
	s.failed(s.check(s.commit("m", map[string]string{"testdata-a": token, "b": token}, s.base), "T"), "in b line 1")
	s.failed(s.check(s.commit("m", map[string]string{"testdata-a": "own-value-4711"}, s.base), "T"), "value of MODEL_KEY", "own-value-4711")
	s.failed(s.check(s.commit(token, map[string]string{"testdata-a": token}, s.base), "T"), " itself ")
}

// TestTooBig: what cannot be looked at is refused, as it would be too big the next time as well.
func TestTooBig(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	big := strings.Repeat("0123456789abcde\n", 1<<19) + token
	s.failed(s.check(s.commit("m", map[string]string{"big": big}, s.base), "T"), "GitHub token in big line 524289")
}

func TestValues(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(file, nil, 0o600))
	var got []string
	for _, v := range outgoing.Values([]string{
		"MODEL_KEY=a", "API_TOKEN=b", "DB_PASSWORD=c", "NPM_PAT=d", "GOOGLE_CREDENTIALS=" + file, "PATH=/usr/bin", "KEYBOARD=e", "SPAT=f",
		"HANDED=g", "MODEL_BASE_URL=https://api.company.io", "MODEL_NAME=h", "HTTPS_PROXY=http://me:i@proxy:3128", "BROKEN=http://%%", "EMPTY",
	}, []string{"HANDED", "MODEL_BASE_URL", "MODEL_NAME"}) {
		got = append(got, v.Name+"="+v.Text)
	}
	want := []string{"HANDED=g", "MODEL_KEY=a", "API_TOKEN=b", "DB_PASSWORD=c", "NPM_PAT=d", "HTTPS_PROXY=i"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestKey: of many who make it at once all get the same, and nobody else can read it.
func TestKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys := make([]string, 8)
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			key, err := outgoing.Key(dir)
			if err != nil {
				t.Error(err)
			}
			keys[i] = string(key)
		})
	}
	all.Wait()
	if slices.Sort(keys); len(keys[0]) < 32 || keys[0] != keys[7] {
		t.Errorf("%d different keys", len(slices.Compact(keys)))
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
	info, err := os.Stat(filepath.Join(dir, "secret.key"))
	must(t, err)
	if len(entries) != 1 || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, mode %v", entries, info.Mode())
	}
	must(t, os.WriteFile(filepath.Join(dir, "secret.key"), []byte("short"), 0o600))
	if _, err := outgoing.Key(dir); err == nil {
		t.Error("a damaged key is taken")
	}
	if _, err := outgoing.Key(filepath.Join(dir, "none")); err == nil {
		t.Error("no directory, and no error")
	}
}

// heard keeps what is said to a forge.
type heard struct {
	forge.Forge
	said []string
}

func (h *heard) Comment(_ context.Context, _ int64, _, body string) (forge.Comment, error) {
	h.said = append(h.said, body)
	return forge.Comment{Body: body}, nil
}

func (h *heard) SetMark(_ context.Context, _ int64, m forge.Mark) error {
	h.said = append(h.said, m.Text)
	return nil
}

type restoring struct{ heard }

func (*restoring) Restore(context.Context, *git.Repo) ([]string, error) {
	return []string{"restored"}, nil
}

// TestRedacting: what is said on a forge has no secret in it, also not one that only an earlier agent was
// handed.
func TestRedacting(t *testing.T) {
	t.Parallel()
	s := newSite(t, "HANDED=own-value-4711", "LATER=other-value-42")
	h := &heard{}
	f := s.guard.Redacting(h)
	s.guard.Known(run.Plan{Env: []string{"HANDED"}})
	s.guard.Known(run.Plan{Env: []string{"LATER"}})
	_, err := f.Comment(t.Context(), 1, "k", "a own-value-4711 b "+token)
	must(t, err)
	must(t, f.SetMark(t.Context(), 1, forge.Mark{Text: "other-value-42."}))
	if want := []string{"a [redacted] b [redacted]", "[redacted]."}; !slices.Equal(h.said, want) {
		t.Errorf("said %q", h.said)
	}
	if said, err := f.(forge.Restorer).Restore(t.Context(), s.repo); said != nil || err != nil {
		t.Errorf("%q, %v of a forge that restores nothing", said, err)
	}
	if said, err := s.guard.Redacting(&restoring{}).(forge.Restorer).Restore(t.Context(), s.repo); len(said) != 1 || err != nil {
		t.Errorf("%q, %v", said, err)
	}
	if got := s.guard.Values(run.Plan{Env: []string{"HANDED"}}); !slices.Equal(got, []string{"own-value-4711"}) {
		t.Errorf("values %q", got)
	}
}
