package cli_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The corpus is testdata/hostile: each file is one attack. Its second line says in one line what it
// tries and what must happen; it runs as the agent, after the prelude. Lines that begin with "#: "
// say what to prepare, and what is to come of it (see attack).
const (
	corpus      = "testdata/hostile"
	attackBound = 3 * time.Minute // of one command; they take one or two seconds where nobody else works
	leastNumber = 80              // attacks: a corpus that is not found must not pass
)

// attack is one file of the corpus. Words of its lines "#: WORD REST":
type attack struct {
	name, about, script string

	exit   int      // exit N: of `interlock run`, default 0
	state  string   // state S: of the run, default "in review", "parked" where exit is not 0; none: there is no run
	files  []string // file NAME, as git quotes it: all that the change may touch, default "answer"
	says   []string // says TEXT: all must be in what was printed
	args   []string // args ...: more for `interlock run`
	checks []string // check LINE: default that "answer" is fixed
	base   []string // base LINE: of a script that makes the base branch hostile, before the issue is filed
	branch string   // branch NAME: the base branch, default main
	title  string   // title, body: of the issue, Go strings
	body   string   //
	then   bool     // then: the change is accepted and an ordinary issue worked after it
	beside bool     // beside: an ordinary issue is worked while the agent of this one runs
}

func TestHostile(t *testing.T) {
	t.Parallel()
	attacks := readCorpus(t)
	if len(attacks) < leastNumber {
		t.Fatalf("%d attacks in %s, want %d at least", len(attacks), corpus, leastNumber)
	}
	plain := attack{name: "plain"}
	plain.defaults()
	template := newHostile(t, plain, "").dir
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			h := newHostile(t, a, template)
			h.attack()
			took := time.Since(begin)
			for _, wrong := range h.wrongs() {
				t.Errorf("%s\n%s: %s", a.about, a.name, wrong)
			}
			t.Logf("exit %d after %.1fs: %s", h.code, took.Seconds(), a.about)
			if t.Failed() {
				t.Logf("interlock run printed:\n%s\nthe agent printed:\n%.4000q", h.out, h.agentLog())
			}
		})
	}
}

// TestHostileSees: what TestHostile looks for, it finds when it is there. The agent of this test is
// confined by nothing, and does everything that it wants.
func TestHostileSees(t *testing.T) {
	t.Parallel()
	a := parseAttack(t, "unconfined", `#!/bin/sh
# Does by itself what every attack tries to have done: all of it is seen.
#: args --sandbox none
#: file innocent
touch "$MARK"
cat "$FOREIGN/secret"
fix
cp "$FOREIGN/secret" stolen
git add answer stolen
git commit -q -m 'fix'
git -C "$REPO" tag new main
git -C "$REPO" config user.name Mallory
`)
	h := newHostile(t, a, "")
	h.level = "none"
	h.attack()
	h.out += "\x1b[2J"
	daemon := exec.Command("sleep", "60")
	daemon.Dir, daemon.Env = h.dir, append(os.Environ(), "LEFT="+h.dir)
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = daemon.Process.Kill(); _ = daemon.Wait() })
	h.patience = 100 * time.Millisecond
	all := strings.Join(h.wrongs(), "\n")
	for _, want := range []string{
		"the marker is there", "the secret of the foreign repository is in", "an object of the foreign repository",
		"processes are left", "the change touches", "was changed", "harmful",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("not seen: %q\nin:\n%s", want, all)
		}
	}
}

func readCorpus(t *testing.T) []attack {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpus, "*.sh"))
	if err != nil {
		t.Fatal(err)
	}
	var all []attack
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, parseAttack(t, strings.TrimSuffix(filepath.Base(f), ".sh"), string(text)))
	}
	return all
}

func parseAttack(t *testing.T, name, text string) attack {
	t.Helper()
	a := attack{name: name, script: text}
	a.defaults()
	lines := strings.Split(text, "\n")
	if len(lines) < 3 || lines[0] != "#!/bin/sh" || !strings.HasPrefix(lines[1], "# ") || !strings.Contains(lines[1], ": ") {
		t.Fatalf("%s: the first lines have to be #!/bin/sh and one comment, \"what it tries: what must happen\"", name)
	}
	a.about = lines[1][2:]
	for _, line := range lines[2:] {
		rest, ok := strings.CutPrefix(line, "#: ")
		if !ok {
			continue
		}
		word, rest, _ := strings.Cut(rest, " ")
		if err := a.declare(word, rest); err != nil {
			t.Fatalf("%s: %q: %v", name, line, err)
		}
	}
	if a.exit != 0 && len(a.says) == 0 {
		t.Fatalf("%s: it has to say why it is refused, else it may be for another reason", name)
	}
	if a.state == "" {
		a.state = map[bool]string{true: "in review", false: "parked"}[a.exit == 0]
	}
	if len(a.files) == 0 {
		a.files = []string{"answer"}
	}
	if len(a.checks) == 0 {
		a.checks = []string{"grep -qx fixed answer"}
	}
	return a
}

func (a *attack) defaults() {
	a.branch, a.title, a.body = "main", "The answer is wrong", "It should be fixed."
}

func (a *attack) declare(word, rest string) (err error) {
	switch word {
	case "exit":
		a.exit, err = strconv.Atoi(rest)
	case "state":
		a.state = rest
	case "file":
		a.files = append(a.files, rest)
	case "says":
		a.says = append(a.says, rest)
	case "args":
		a.args = append(a.args, strings.Fields(rest)...)
	case "check":
		a.checks = append(a.checks, rest)
	case "base":
		a.base = append(a.base, rest)
	case "branch":
		a.branch = rest
	case "title":
		a.title, err = strconv.Unquote(`"` + rest + `"`)
	case "body":
		a.body, err = strconv.Unquote(`"` + rest + `"`)
	case "then":
		a.then = true
	case "beside":
		a.beside = true
	default:
		err = errors.New("no such word")
	}
	return err
}

// hostile is one attack with the repository it is on, and a foreign one beside it.
type hostile struct {
	*project
	a        attack
	dir      string            // holds all of the project
	mark     string            // a file that no session can see
	foreign  string            // the repository of somebody else
	secret   string            // what is in it, and what is in the operator's environment
	objects  []string          // its commit, tree and blob
	token    string            // a credential in the operator's environment
	before   map[string]string // refs of the target
	files    map[string]string // all else of the target, by what it holds
	code     int
	out      string
	patience time.Duration // for the last process to be gone
	problems []string
}

// newHostile copies the repositories in template, or makes them where it is "".
func newHostile(t *testing.T, a attack, template string) *hostile {
	t.Helper()
	dir := t.TempDir()
	h := &hostile{
		project: &project{
			t: t, repo: filepath.Join(dir, "repo"), agent: filepath.Join(dir, "agent.sh"), state: filepath.Join(dir, "state"),
			level: sandboxLevel(t),
		},
		a: a, dir: dir, mark: filepath.Join(dir, "marks", a.name), foreign: filepath.Join(dir, "foreign"),
		patience: 10 * time.Second,
	}
	if err := os.Mkdir(filepath.Dir(h.mark), 0o777); err != nil {
		t.Fatal(err)
	}
	plain := attack{}
	plain.defaults()
	if template == "" {
		h.makeRepositories()
	} else if out, err := exec.Command("cp", "-a", filepath.Join(template, "repo"), filepath.Join(template, "foreign"), dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	h.objects = strings.Fields(h.git("-C", h.foreign, "rev-parse", "HEAD", "HEAD^{tree}", "HEAD:secret"))
	secret, err := os.ReadFile(filepath.Join(h.foreign, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	h.secret, h.token = strings.TrimSpace(string(secret)), "token-"+word(t)
	if a.branch != plain.branch {
		h.git("-C", h.repo, "branch", "-m", a.branch)
	}
	if len(a.base) > 0 {
		h.shell(h.repo, strings.Join(a.base, "\n"))
		h.shell(h.repo, "git add -A && git -c user.name=T -c user.email=t@localhost commit -q --allow-empty -m base")
	}
	if a.title != plain.title || a.body != plain.body {
		h.git("-C", h.repo, "update-ref", "-d", "refs/interlock/issues/1")
		h.git("-C", h.repo, "update-ref", "-d", "refs/interlock/issues/2")
		h.fileIssues()
	}
	h.write(h.agent, "#!/bin/sh\n"+h.prelude()+a.script, 0o755)
	h.before, h.files = h.allRefs(), h.holds()
	return h
}

// makeRepositories makes the operator's repository with two issues, and the foreign one.
func (h *hostile) makeRepositories() {
	h.t.Helper()
	h.git("init", "-q", "-b", "main", h.foreign)
	other := project{t: h.t, repo: h.foreign}
	other.commit("secret", "canary-"+word(h.t)+"\n")
	h.git("init", "-q", "-b", "main", h.repo)
	h.commit("answer", "wrong\n")
	h.git("-C", h.repo, "branch", "other")
	h.git("-C", h.repo, "tag", "v1")
	h.git("-C", h.repo, "update-ref", "refs/notes/commits", "HEAD")
	h.fileIssues()
}

func (h *hostile) fileIssues() {
	h.t.Helper()
	for _, title := range []string{h.a.title, "Something ordinary"} {
		h.must(0, "issue", "new", "--repo", h.repo, "--title", title, "--body", h.a.body)
	}
}

// prelude is what every attack knows: where everything is on the host.
func (h *hostile) prelude() string {
	text, err := os.ReadFile(filepath.Join(corpus, "prelude"))
	if err != nil {
		h.t.Fatal(err)
	}
	var b strings.Builder
	for _, v := range [][2]string{
		{"MARK", h.mark}, {"REPO", h.repo}, {"STATE", h.state}, {"FOREIGN", h.foreign}, {"FCOMMIT", h.objects[0]},
		{"FTREE", h.objects[1]}, {"FBLOB", h.objects[2]}, {"BASE", h.git("-C", h.repo, "rev-parse", "HEAD")},
	} {
		b.WriteString(v[0] + "='" + v[1] + "'\n")
	}
	return b.String() + string(text)
}

// shell runs a script of the operator's, as it would be typed.
func (h *hostile) shell(dir, script string) {
	h.t.Helper()
	cmd := exec.Command("sh", "-ec", h.prelude()+script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		h.t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// attack works issue 1 with the attack as its agent.
func (h *hostile) attack() {
	h.t.Helper()
	args := []string{"run", "--repo", h.repo, "--issue", "1", "--attempts", "1", "--command", h.agent, "--sandbox", h.level}
	for _, c := range h.a.checks {
		args = append(args, "--checks", c)
	}
	args = append(args, h.a.args...)
	if !h.a.beside {
		h.code, h.out = h.bounded(args...)
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.code, h.out = h.bounded(args...)
	}()
	defer func() { <-done }()
	h.eventually("the agent works", func() bool { return strings.Contains(h.agentLog(), "WORKING") })
	h.ordinary()
}

// bounded runs one command, which has to end by itself.
func (h *hostile) bounded(args ...string) (int, string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), attackBound)
	defer cancel()
	cmd, out := h.command([]string{"GITHUB_TOKEN=" + h.token, "OPERATOR_SECRET=" + h.token}, args...)
	bound := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	bound.Env, bound.Stdout, bound.Stderr, bound.WaitDelay = cmd.Env, out, out, cmd.WaitDelay
	code := h.end(bound, bound.Run())
	if ctx.Err() != nil {
		h.bad("interlock %s did not end within %s", args[0], attackBound)
	}
	return code, out.String()
}

// ordinary works issue 2, which nobody means harm by.
func (h *hostile) ordinary() {
	h.t.Helper()
	code, out := h.bounded("run", "--repo", h.repo, "--issue", "2", "--command", "echo more > more", "--checks", "grep -qx more more",
		"--sandbox", h.level)
	if code != 0 {
		h.bad("an ordinary issue cannot be worked: exit %d\n%s", code, out)
	}
}
