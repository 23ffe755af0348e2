package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// elsewhere is the same project seen from another state directory.
func (p *project) elsewhere() *project {
	p.t.Helper()
	other := *p
	other.state = filepath.Join(p.t.TempDir(), "other")
	return &other
}

// age makes what this installation has seen of issue 1's claim older, as if time had passed on its
// clock.
func (p *project) age(by time.Duration) {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.state, "claims", "*", "1.json"))
	if err != nil || len(files) != 1 {
		p.t.Fatalf("what was seen of the claim: %q, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	var seen map[string]any
	if err == nil {
		err = json.Unmarshal(data, &seen)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	seen["since"] = int64(seen["since"].(float64)) - int64(by)
	if data, err = json.Marshal(seen); err != nil {
		p.t.Fatal(err)
	}
	p.write(files[0], string(data), 0o600)
}

// TestStoppedHolderIsTakenOver: the engine of one installation is stopped past all patience; another
// one takes its claim over and delivers; the first goes on, and nothing of it is pushed.
func TestStoppedHolderIsTakenOver(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "HURRY")
	first := p.start(p.work()...)
	first.signal(syscall.SIGSTOP)
	other := p.elsewhere()
	out := other.must(3, p.work()...)
	for _, want := range []string{"of installation ", "seen unmoved for 0s", "taken over in 16m0s", "next: interlock claim show 1"} {
		if !strings.Contains(out, want) {
			t.Errorf("the refusal does not say %q:\n%s", want, out)
		}
	}
	other.age(15 * time.Minute)
	out = other.must(3, p.work()...)
	if !strings.Contains(out, "taken over in 1m0s") && !strings.Contains(out, "taken over in 5") {
		t.Errorf("after 15 minutes:\n%s", out)
	}
	other.age(time.Minute - 4*time.Second)
	out = other.must(0, append(p.work(), "--wait", "60s")...) // waits for the rest of it
	if !strings.Contains(out, "had not moved for 16m0s") {
		t.Errorf("not a word of the take-over:\n%s", out)
	}
	head := p.git("-C", p.repo, "rev-parse", "interlock/issue-1")
	claim := p.git("-C", p.repo, "rev-parse", "refs/interlock/claims/1")
	first.signal(syscall.SIGCONT)
	if code := first.wait(); code != 9 {
		t.Errorf("the first ended with %d, want 9\n%s", code, first.out)
	}
	if !strings.Contains(first.out.String(), "claim on the forge was lost") {
		t.Errorf("it does not say why:\n%s", first.out)
	}
	if now := p.git("-C", p.repo, "rev-parse", "interlock/issue-1"); now != head {
		t.Errorf("the branch was moved to %s", now)
	}
	if now := p.git("-C", p.repo, "rev-parse", "refs/interlock/claims/1"); now != claim {
		t.Errorf("the claim was moved to %s", now)
	}
	other.once()
	p.dead()
}

// sight is what these tests read of a claim.
type sight struct {
	Hash       string `json:"hash"`
	Generation int64  `json:"generation"`
	Released   bool   `json:"released"`
	Wiped      bool   `json:"wiped"`
	Ours       bool   `json:"ours"`
	Alive      bool   `json:"alive"`
	Run        string `json:"run"`
}

func (p *project) claim() sight {
	p.t.Helper()
	var s sight
	p.json(&s, "claim", "show", "1", "--repo", p.repo)
	return s
}

// TestClaimBreak: a person breaks what he has looked at, and nothing that lives.
func TestClaimBreak(t *testing.T) {
	t.Parallel()
	p := newProject(t, slowAgent, "slowly")
	first := p.start(p.work()...)
	other := p.elsewhere()
	mine, theirs := p.claim(), other.claim()
	if !mine.Ours || !mine.Alive || mine.Run == "" || theirs.Ours || !theirs.Alive || theirs.Run != "" || theirs.Hash != mine.Hash {
		t.Errorf("ours %+v, seen from elsewhere %+v", mine, theirs)
	}
	cut := func(hash string) []string {
		return []string{"claim", "break", "1", "--repo", p.repo, "--hash", hash, "--reason", "that machine was sold"}
	}
	if out := p.must(3, cut(mine.Hash)...); !strings.Contains(out, "next: interlock cancel "+mine.Run) {
		t.Errorf("a live holder of our own:\n%s", out)
	}
	if out := other.must(3, cut(mine.Hash)...); !strings.Contains(out, "alive") || !strings.Contains(out, "interlock cancel 1 --state-dir") {
		t.Errorf("a live holder of this machine:\n%s", out)
	}
	first.signal(syscall.SIGKILL)
	first.wait()
	p.dead()
	if out := other.must(1, cut(strings.Repeat("0", 39)+"1")...); !strings.Contains(out, "next: interlock claim show 1") {
		t.Errorf("another hash:\n%s", out)
	}
	if out := other.must(0, "claim", "show", "1", "--repo", p.repo); !strings.Contains(out, "interlock claim break 1 --hash "+mine.Hash) {
		t.Errorf("show does not say how to break it:\n%s", out)
	}
	other.must(0, cut(mine.Hash)...)
	other.must(0, cut(mine.Hash)...) // the same again is settled
	if s := other.claim(); !s.Released || s.Generation != mine.Generation+1 {
		t.Errorf("broken: %+v after %+v", s, mine)
	}
	other.must(1, cut(other.claim().Hash)...)
	labels, assignees, comments := p.issue()
	told := 0
	for _, c := range comments {
		if strings.Contains(c, "that machine was sold") {
			told++
		}
	}
	if told != 1 || len(labels) != 0 || len(assignees) != 0 {
		t.Errorf("told %d times; labels %q, assignees %q, comments %q", told, labels, assignees, comments)
	}
	if out := p.must(9, p.work()...); !strings.Contains(out, "given up by") {
		t.Errorf("the broken holder goes on:\n%s", out)
	}
	other.must(0, strings.Split(strings.Replace(strings.Join(p.work(), "\x00"), p.agent, "echo fixed > answer", 1), "\x00")...)
}
