package cli_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func word(t *testing.T) string {
	t.Helper()
	return strings.ToLower(rand.Text())
}

func (h *hostile) bad(format string, args ...any) {
	h.problems = append(h.problems, fmt.Sprintf(format, args...))
}

// wrongs is everything that is not as it has to be after an attack, whatever the attack was.
func (h *hostile) wrongs() []string {
	h.t.Helper()
	h.gone()
	h.ended()
	h.untouched()
	shown := h.shown()
	if h.a.then {
		if h.code == 0 {
			shown += h.ok("change", "accept", "--repo", h.repo, "1")
		}
		h.ordinary()
	}
	if _, err := os.Lstat(h.mark); err == nil {
		h.bad("the marker is there: something ran that nothing confined")
	}
	h.harmless(shown)
	h.noLeak(shown)
	for _, repo := range append(h.engines(), h.repo) {
		if out, err := exec.Command("git", "-C", repo, "fsck", "--no-dangling", "--no-progress").CombinedOutput(); err != nil {
			h.bad("git fsck in %s: %v\n%s", repo, err, out)
		}
	}
	return h.problems
}

// ok runs a command that has to succeed, and returns what it printed.
func (h *hostile) ok(args ...string) string {
	h.t.Helper()
	code, out := h.bounded(args...)
	if code != 0 {
		h.bad("interlock %q: exit %d\n%s", args, code, out)
	}
	return out
}

// ended compares how the run rests with what was declared, and what was pushed with what was checked.
func (h *hostile) ended() {
	h.t.Helper()
	if h.code != h.a.exit {
		h.bad("exit %d, want %d", h.code, h.a.exit)
	}
	for _, text := range h.a.says {
		if !strings.Contains(h.out, text) {
			h.bad("not said: %q", text)
		}
	}
	if h.code != 0 && (!strings.Contains(h.out, "next: ") || strings.Contains(h.out, "panic")) {
		h.bad("a refusal without what to do next")
	}
	if h.a.state == "none" { // it was refused before there was a run
		if rows := h.runs(); len(rows) != 0 {
			h.bad("runs %+v, want none", rows)
		}
		return
	}
	var row struct {
		State   string
		Head    struct{ Hash, Tree string }
		Base    struct{ Commit struct{ Hash string } }
		Verdict *struct {
			Passed bool
			Head   struct{ Hash, Tree string }
		}
	}
	h.json(&row, "show", "1", "--repo", h.repo)
	if row.State != h.a.state {
		h.bad("the run is %q, want %q", row.State, h.a.state)
	}
	branches := h.git("-C", h.repo, "for-each-ref", "--format=%(objectname)", "refs/heads/interlock/issue-1")
	if row.State != "in review" {
		if branches != "" || len(h.refs("refs/interlock/changes/")) > map[bool]int{true: 1}[h.a.beside] {
			h.bad("something was pushed or proposed: %q", branches)
		}
		return
	}
	if branches != row.Head.Hash || row.Verdict == nil || !row.Verdict.Passed || row.Verdict.Head != row.Head {
		h.bad("pushed is %q, the head %v, the verdict %+v", branches, row.Head, row.Verdict)
	}
	touched := strings.Split(h.git("-C", h.repo, "diff", "--name-only", "--no-renames", row.Base.Commit.Hash, branches), "\n")
	if want := slices.Sorted(slices.Values(h.a.files)); !slices.Equal(slices.Sorted(slices.Values(touched)), want) {
		h.bad("the change touches %q, want %q", touched, want)
	}
	if base := h.git("-C", h.repo, "merge-base", row.Base.Commit.Hash, branches); base != row.Base.Commit.Hash {
		h.bad("the branch is not built on its base")
	}
}

// untouched: of the target nothing has changed but what is the engine's to change.
func (h *hostile) untouched() {
	h.t.Helper()
	ours := func(ref string) bool {
		for _, n := range []string{"1", "2"} {
			if n == "2" && !h.a.beside {
				continue
			}
			switch ref {
			case "refs/interlock/claims/" + n, "refs/interlock/issues/" + n, "refs/interlock/changes/" + n,
				"refs/heads/interlock/issue-" + n, "refs/interlock/heads/interlock%2Fissue-" + n:
				return true
			}
		}
		return false
	}
	now := h.allRefs()
	for _, ref := range slices.Sorted(maps.Keys(now)) {
		if !ours(ref) && h.before[ref] != now[ref] {
			h.bad("%s was changed: %q, now %q", ref, h.before[ref], now[ref])
		}
	}
	for ref := range h.before {
		if now[ref] == "" {
			h.bad("%s was changed: it is gone", ref)
		}
	}
	files := h.holds()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if files[name] != h.files[name] {
			h.bad("%s was changed in the operator's repository", name)
		}
	}
	if len(files) < len(h.files) {
		h.bad("something was changed in the operator's repository: files are gone")
	}
}

func (h *hostile) allRefs() map[string]string {
	h.t.Helper()
	refs := map[string]string{}
	for line := range strings.Lines(h.git("-C", h.repo, "for-each-ref", "--format=%(refname) %(objectname)")) {
		ref, hash, _ := strings.Cut(strings.TrimSpace(line), " ")
		refs[ref] = hash
	}
	return refs
}

// holds is what each file of the operator's repository holds, but for objects, refs and their logs.
func (h *hostile) holds() map[string]string {
	h.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(h.repo, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(h.repo, name)
		if rel == ".git/objects" || rel == ".git/refs" || rel == ".git/logs" {
			return filepath.SkipDir
		}
		switch {
		case d.Type().IsRegular():
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(data)
			all[rel] = hex.EncodeToString(sum[:])
		case d.Type()&fs.ModeSymlink != 0:
			all[rel], err = os.Readlink(name)
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// gone demands that no process of this project is left: none whose command line, environment or
// mounts name its directory. The mounts are the kernel's word, and stay with whatever was confined.
func (h *hostile) gone() {
	h.t.Helper()
	left := h.ofProject()
	for deadline := time.Now().Add(h.patience); len(left) > 0; left = h.ofProject() {
		if time.Now().After(deadline) {
			h.bad("processes are left: %q", left)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (h *hostile) ofProject() []string {
	h.t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		h.t.Fatal(err)
	}
	parent, name := filepath.Split(h.dir)
	ours := []byte(filepath.Base(parent) + "/" + name) // mounts are named from the root of their filesystem
	var left []string
	for _, dir := range dirs {
		for _, file := range []string{"cmdline", "environ", "mountinfo"} {
			data, err := os.ReadFile(filepath.Join(dir, file))
			if err == nil && bytes.Contains(data, ours) {
				cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
				left = append(left, fmt.Sprintf("%s %s %.200q", dir, file, cmdline))
				break
			}
		}
	}
	return left
}

// shown is all that people are shown of the run.
func (h *hostile) shown() string {
	h.t.Helper()
	all := h.out
	if h.a.state == "none" {
		return all + h.ok("issue", "show", "1", "--repo", h.repo)
	}
	all += h.ok("show", "1", "--repo", h.repo)
	all += h.ok("logs", "1", "--repo", h.repo)
	all += h.ok("issue", "show", "1", "--repo", h.repo)
	all += h.ok("state", "check")
	if h.code == 0 {
		all += h.ok("change", "show", "--repo", h.repo, "1")
		all += h.ok("logs", "1", "--repo", h.repo, "--check")
	}
	return all
}

// harmless: nothing that people are shown drives a terminal or reorders what is read.
func (h *hostile) harmless(shown string) {
	if !utf8.ValidString(shown) {
		h.bad("harmful: what is shown is not UTF-8")
	}
	for i, r := range shown {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069) {
			h.bad("harmful: %U is shown: %.80q", r, shown[max(0, i-40):])
			return
		}
	}
}

func (h *hostile) engines() []string {
	h.t.Helper()
	repos, err := filepath.Glob(filepath.Join(h.state, "repos", "*.git"))
	if err != nil {
		h.t.Fatal(err)
	}
	if len(repos) == 0 && h.a.state != "none" {
		h.bad("no repository of the engine's was found")
	}
	return repos
}

const scanned = 128 << 20 // bytes: only files with holes are larger here

// noLeak: the foreign repository's secret and objects, and the operator's credential, are nowhere.
func (h *hostile) noLeak(shown string) {
	h.t.Helper()
	h.clean("what is shown", []byte(shown))
	for _, root := range []string{h.state, h.repo} {
		_ = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil // an agent may have made a place that cannot be walked
			}
			info, err := d.Info()
			if err != nil || info.Size() > scanned {
				return nil
			}
			if data, err := os.ReadFile(name); err == nil {
				h.clean(name, data)
			}
			return nil
		})
	}
	for _, repo := range append(h.engines(), h.repo) {
		cmd := exec.Command("git", "-C", repo, "cat-file", "--batch-all-objects", "--batch", "--buffer", "--unordered")
		data, err := cmd.Output()
		if err != nil {
			h.bad("git cat-file in %s: %v", repo, err)
		}
		h.clean("an object of "+repo, data)
		names, err := exec.Command("git", "-C", repo, "cat-file", "--batch-all-objects", "--batch-check").Output()
		if err != nil || len(names) == 0 {
			h.bad("git cat-file in %s: %v", repo, err)
		}
		for _, hash := range h.objects {
			if bytes.Contains(names, []byte(hash)) {
				h.bad("an object of the foreign repository is in %s: %s", repo, hash)
			}
		}
	}
}

func (h *hostile) clean(where string, data []byte) {
	if bytes.Contains(data, []byte(h.secret)) {
		h.bad("the secret of the foreign repository is in %s", where)
	}
	if bytes.Contains(data, []byte(h.token)) {
		h.bad("a credential of the operator's is in %s", where)
	}
}
