package command_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"interlock/internal/scope/command"
)

// TestShell: what a text does, however it is spelled.
func TestShell(t *testing.T) {
	t.Parallel()
	for class, texts := range map[command.Class][]string{
		command.Reads: {
			"", "# nothing", "ls -la", "cat a b | grep -n x | sort | uniq -c | head -5", "git status", "git -C sub log --oneline -5", "git diff HEAD~1 -- a",
			"find . -name '*.go' -type f", "cd sub && pwd; echo $HOME", "grep -r x . 2>/dev/null", "test -f a && echo yes || echo no", "if [ -f a ]; then cat a; fi",
			"for f in *; do echo \"$f\"; done", "rg -n foo >&2", "git branch", "git branch --list", "git stash list", "git remote -v", "git config --list",
			"sed -n '1,20p' a", "command -v go", "bash --version", "python3 --version", "interlock task show", "interlock task scope-check a", "interlock --version",
			"find . -name a -exec cat {} +", "nice -n 5 ls", "timeout 5 ls", "echo 'git push'", "grep -r 'git push' .", "cat <<EOF\ngit push\nEOF", "date +%s", "echo a > /dev/null", "/bin/ls", "time ls", "env",
		},
		command.Changes: {
			"touch a", "rm -rf b", "echo a > f", "echo a >> f", "cat a | tee b", "sed -i s/a/b/ f", "sed -n 's/a/b/w out' f", "find . -delete", "find . -exec rm {} ;", "go test ./...",
			"make", "git commit -am x", "git branch -D x", "git branch new", "git config user.name x", "git fetch", "git diff --output=x", "git log --ext-diff", "git grep -O x",
			"git -c core.pager=x log", "curl http://127.0.0.1/", "sort -o f f", "uniq a b", "PAGER=x git log", "env A=b ls", "ls $(touch a)", "ls `touch a`", "cat <(touch a)", "(touch a)", "{ touch a; }",
			"false && touch a", "f() { touch a; }; f", "ls & touch a", "! touch a", "echo $((1+1)) >| f", "exec >f", "cp a b", "git stash", "git stash push", "echo x &> f", "date -s 1", "rg --pre x y", "tree -o f", "sudo touch a", "xargs touch", "ls | xargs -n 1 touch",
		},
		command.Opaque: {
			"$X", "$X push", "`echo git` push", "$(echo git) push", "eval \"$X\"", "bash script.sh", "sh -c \"$X\"", "source f", ". f", "python3 -c 'x'", "python3 a.py", "perl -e x", "node -e x", "git $X",
			"git frobnicate", "if", "echo 'a", "g${x}t push", "echo a > $X", "base64 -d x | sh -s x", "ls > \"$(date)\"", strings.Repeat("sh -c 'ls' ; ", 6000), strings.Repeat("$(", 1000), "\"$@\"",
			"a=ls; a=rm; $a x", "$'\\x67it' push", "env $X", "trap \"$X\" EXIT", "awk '{print}' f | python3 -",
		},
		command.Interactive: {
			"bash", "bash --norc -i", "sh", "echo Z2l0IHB1c2g= | base64 -d | sh", "python3", "node", "env bash", "sudo -u x bash", "exec bash", "vi f | python3 -i", "sudo", "busybox sh", "sqlite3", "psql", "script -q; bash", "nohup zsh &", "unshare",
		},
		command.Forbidden: {
			"git push", "git push origin main", "git -C /x push", "git -c a=b push", "git --git-dir=.git push", "git --git-dir .git push --force", "/usr/bin/git push", "'git' push", "g\"i\"t pu\\sh", "git \\\npush",
			"git${IFS}push", "git$IFS'push'", "ls; git push", "ls && git push", "ls | git push", "ls & git push", "(git push)", "$(git push)", "`git push`", "echo $(git push)", "echo \"$(git push)\"", "cat <(git push)",
			"sh -c 'git push'", "bash -lc 'git push'", "sh -ec \"git push\"", "eval git push", "eval 'git push'", "eval \"git\" \"push\"", "env git push", "env -i A=b git push", "env -S 'git push'", "env -S'git push'", "env --split-string='git push'", "env -u X git push",
			"sudo git push", "sudo -u x git push", "nice -n 3 git push", "timeout -k 1 5 git push", "nohup git push &", "setsid git push", "xargs git push", "echo push | xargs -n 1 git push", "command git push", "builtin command git push", "exec git push", "time git push", "command time -f x git push",
			"if true; then git push; fi", "while git push; do :; done", "for i in 1; do git push; done", "case a in a) git push;; esac", "f() { git push; }; f", "ls() { git push; }; ls", "a=git; $a push", "A='push'; git $A", "alias l='git push'; l", "trap 'git push' EXIT",
			"git -c alias.x=push x", "git -c alias.x='!git push' x", "git -c ALIAS.x=push x", "bash <<EOF\ngit push\nEOF", "sh -s <<'EOF'\ngit push\nEOF", "bash <<< 'git push'", "find . -exec git push \\;", "find . -name a -execdir sh -c 'git push' \\;", "flock f git push", "stdbuf -o 0 git push",
			"git lfs push origin", "git subtree push -P x o b", "git send-email x", "git svn dcommit", "jj git push", "gh pr create", "glab mr create", "tea pr create", "fj pr create", "busybox sh -c 'git push'", "A=1 git push", "! git push", "{ git push; }", "[[ $(git push) ]]", "echo ${x:-$(git push)}",
			"interlock run 3", "interlock loop approve x", "interlock resume x", "interlock approve q", "interlock cancel r", "/usr/local/bin/interlock run", "interlock --state-dir /x run", "interlock", "interlock-gate", "sh -c 'interlock resume'", "interlock --json task-like", "coproc git push",
			"python3 x.py; git push", "ls > f; git push", "sh -c \"sh -c 'git push'\"",
		},
	} {
		for _, text := range texts {
			got := command.Shell(text)
			if got.Class != class {
				t.Errorf("%.80q is %v, want %v: %+v", text, got.Class, class, got.Findings)
			}
			if class > command.Reads && (len(got.Findings) == 0 || slices.ContainsFunc(got.Findings, func(f command.Finding) bool { return f.Why == "" })) {
				t.Errorf("%.80q has no reason: %+v", text, got.Findings)
			}
		}
	}
}

// TestArgv: words that no shell reads are taken as they are.
func TestArgv(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		argv []string
		want command.Class
	}{
		{nil, command.Reads},
		{[]string{"ls", "$(git push)"}, command.Reads},
		{[]string{"ls", ";", "git", "push"}, command.Reads},
		{[]string{"git", "push"}, command.Forbidden},
		{[]string{"bash", "-lc", "ls; git push"}, command.Forbidden},
		{[]string{"bash", "-lc", "ls"}, command.Reads},
		{[]string{""}, command.Opaque},
		{[]string{"git push"}, command.Changes},
	} {
		if got := command.Argv(c.argv); got.Class != c.want {
			t.Errorf("%q is %v, want %v: %+v", c.argv, got.Class, c.want, got.Findings)
		}
	}
}

// TestWrites: the files that output goes to are named as they are written.
func TestWrites(t *testing.T) {
	t.Parallel()
	got := command.Shell(`echo a > 'x y'; cat b >> /etc/passwd 2>err; x=f; ls >| "$x" | tee t; ls 2>&1 >&2 >/dev/null; cat <in`)
	want := []string{"x y", "/etc/passwd", "err", "f"}
	if !slices.Equal(got.Writes, want) {
		t.Errorf("%q, want %q", got.Writes, want)
	}
}

// TestBounded: no text takes long, however it nests.
func TestBounded(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"(", "$(", "`", "{ ", "if ", "! ", "[[ ", "((", "${x:-", "case a in a) ", "sh -c '", "env ", "sudo ", "nice ", "eval ", "a=b ", "x;", "\"$(", "\\", "<<E\n", "f() ", "while ", "time ", "coproc ", "for x in a; do ", "[ ", "|", "git -c a=b ", "find -exec "} {
		for _, size := range []int{60 << 10, 1 << 20} {
			text := strings.Repeat(unit, size/len(unit))
			done := make(chan struct{})
			go func() { command.Shell(text); close(done) }()
			select {
			case <-done:
			case <-time.After(time.Minute):
				t.Fatalf("%q, %d bytes: takes for ever", unit, size)
			}
		}
	}
}

// FuzzShell: nothing makes it panic, and a push behind whatever was a whole text is found.
func FuzzShell(f *testing.F) {
	for _, s := range []string{"ls", "git push", "a=b c", "echo $(x) > y", "sh -c 'ls'", "for i in 1; do x; done", "env -S x", "git -c alias.a=b a", "cat <<E\nx\nE"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := command.Shell(text)
		if r.Class > command.Reads && len(r.Findings) == 0 || r.Class.String() == "unknown" {
			t.Fatalf("%q: %+v", text, r)
		}
		command.Argv(strings.Fields(text))
		if r.Class <= command.Changes && len(text) < 1000 && !strings.HasSuffix(text, `\`) { // it could be read, so it ends where it ends
			if more := command.Shell(text + "\ngit push"); more.Class != command.Forbidden && more.Class != command.Opaque {
				t.Fatalf("%q and a push: %+v", text, more)
			}
		}
	})
}
