// Package forgetest is the conformance suite of forges: what every driver of forge.Forge, and the
// claims on its git side, must do under races, repeats, lost answers and damage. It is used by
// tests only and knows no driver.
package forgetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"interlock/internal/forge"
	"interlock/internal/git"
)

// Fixture is one fresh repository on the forge under test, with at least one commit on Base.
type Fixture struct {
	Git    *git.Git
	Remote string // what git pushes to
	Base   string // the default branch

	// Open returns a client that shares nothing in memory with the others.
	Open func(t testing.TB) forge.Forge
	// NewIssue files an issue as a person.
	NewIssue func(t testing.TB, title, body string, labels ...string) int64
	// CloseIssue closes it.
	CloseIssue func(t testing.TB, issue int64)
	// Hook makes a shell script a hook of the remote and returns what takes it off. nil where the
	// remote's hooks cannot be set: then what needs them is skipped.
	Hook func(t testing.TB, name, script string) (undo func())
}

type test struct {
	name string
	test func(*testing.T, *room)
}

// Run runs the whole suite. The function makes a fixture for each test.
func Run(t *testing.T, fresh func(t *testing.T) Fixture) {
	RunClaims(t, fresh)
	RunForge(t, fresh)
}

// RunClaims runs the part that needs only git refs.
func RunClaims(t *testing.T, fresh func(t *testing.T) Fixture) {
	run(t, fresh, []test{
		{"ClaimRace", claimRace},
		{"ClaimAdopt", claimAdopt},
		{"ClaimRelease", claimRelease},
		{"ClaimRenew", claimRenew},
		{"ClaimForced", claimForced},
		{"ClaimGarbage", claimGarbage},
		{"ClaimAnswerLost", claimAnswerLost},
		{"ClaimTakeOver", claimTakeOver},
		{"ClaimSuccessor", claimSuccessor},
		{"ClaimBreak", claimBreak},
		{"ClaimWiped", claimWiped},
		{"ClaimFallback", claimFallback},
		{"ClaimFallbackTakeOver", claimFallbackTakeOver},
		{"ClaimFallbackYields", claimFallbackYields},
		{"ClaimFallbackRace", claimFallbackRace},
		{"PushWith", pushWith},
		{"PushWithStale", pushWithStale},
		{"PushWithRace", pushWithRace},
		{"PushWithAnswerLost", pushWithAnswerLost},
		{"Refused", refused},
	})
}

// RunForge runs the part that needs issues and changes.
func RunForge(t *testing.T, fresh func(t *testing.T) Fixture) {
	run(t, fresh, []test{
		{"Base", base},
		{"Issues", issues},
		{"IssueText", issueText},
		{"Mark", mark},
		{"MarkOfOthers", markOfOthers},
		{"CommentOnce", commentOnce},
		{"CommentRace", commentRace},
		{"Propose", propose},
		{"ProposeRace", proposeRace},
		{"ProposeText", proposeText},
	})
}

func run(t *testing.T, fresh func(t *testing.T) Fixture, tests []test) {
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, &room{T: t, Fixture: fresh(t), ctx: t.Context()})
		})
	}
}

// room is a fixture in the hands of one test.
type room struct {
	*testing.T
	Fixture
	ctx   context.Context
	mu    sync.Mutex
	repos int
}

// engine makes an engine's repository, as an installation has one.
func (r *room) engine() *git.Repo {
	r.Helper()
	r.mu.Lock()
	r.repos++
	dir := filepath.Join(r.TempDir(), fmt.Sprintf("engine%d.git", r.repos))
	r.mu.Unlock()
	repo, err := r.Git.Engine(r.ctx, dir)
	r.must(err)
	return repo
}

// claims makes the claims of an installation with a fresh engine's repository.
func (r *room) claims(installation string) *forge.Claims {
	return &forge.Claims{Repo: r.engine(), Remote: r.Remote, Installation: installation, Git: r.Git}
}

func (r *room) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// refs reads refs of the remote.
func (r *room) refs(names ...string) map[string]string {
	r.Helper()
	refs, err := r.Git.LsRemote(r.ctx, r.Remote, names...)
	r.must(err)
	return refs
}

// commit writes a commit with one file on top of the base, in an engine's repository.
func (r *room) commit(repo *git.Repo, text string) string {
	r.Helper()
	tip, err := repo.FetchBranch(r.ctx, r.Remote, r.Base, "refs/interlock/test/base")
	r.must(err)
	hash, err := repo.WriteCommit(r.ctx, git.CommitSpec{
		Files: map[string][]byte{"text": []byte(text)}, Parents: []string{tip.Hash}, Message: "change the text\n",
	})
	r.must(err)
	return hash
}

// branch makes a branch of the remote at a new commit on top of the base.
func (r *room) branch(name, text string) string {
	r.Helper()
	repo := r.engine()
	hash := r.commit(repo, text)
	r.force(repo, "refs/heads/"+name, hash)
	return hash
}

// force moves a ref of the remote as any writer of the repository can. "" deletes it.
func (r *room) force(repo *git.Repo, ref, hash string) {
	r.Helper()
	_, err := r.Git.Run(r.ctx, git.Command{Dir: repo.Dir(), Args: []string{"push", "--quiet", "--force", "file://" + r.Remote, hash + ":" + ref}})
	r.must(err)
}

// raw runs git in an engine's repository and returns the first word it prints.
func (r *room) raw(repo *git.Repo, stdin string, args ...string) string {
	r.Helper()
	out, err := r.Git.Run(r.ctx, git.Command{Dir: repo.Dir(), Args: args, Stdin: []byte(stdin)})
	r.must(err)
	return strings.TrimSpace(string(out.Stdout))
}

// hook sets a hook of the remote, or skips.
func (r *room) hook(name, script string) (undo func()) {
	r.Helper()
	if r.Hook == nil {
		r.Skip("the hooks of this remote cannot be set")
	}
	return r.Hook(r, name, script)
}

// rounds is how often a race is run: a few times, unless the environment says more (make races).
func rounds(t *testing.T, few int) int {
	t.Helper()
	text := os.Getenv("INTERLOCK_ROUNDS")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return max(few, n/10) // each is 16 repositories
}

// together runs f in n goroutines that begin at the same moment.
func together(n int, f func(i int)) {
	var begin, done sync.WaitGroup
	begin.Add(1)
	for i := range n {
		done.Go(func() {
			begin.Wait()
			f(i)
		})
	}
	begin.Done()
	done.Wait()
}
