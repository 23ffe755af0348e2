package command

import (
	"slices"
	"strings"
)

// gitReads are commands of git that change nothing, but with options in gitReadsBut.
var gitReads = set(`status log diff show rev-parse ls-files ls-tree blame annotate grep describe cat-file rev-list shortlog name-rev merge-base
	for-each-ref show-ref whatchanged diff-tree diff-index diff-files var version help count-objects verify-commit check-ignore check-attr range-diff cherry`)

// gitReadsBut are options with which they write or run something.
var gitReadsBut = hasOption("--output", "--ext-diff", "--textconv", "--open-files-in-pager", "-O", "--filters", "--upload-pack")

// gitPublishes are commands of git that send something somewhere.
var gitPublishes = set("push send-pack http-push send-email request-pull imap-send")

// gitLists are commands of git that only read while nothing is named.
var gitLists = set("branch tag remote stash worktree notes config reflog")

// gitChanges are the others that are git's own; what is none of them may be an alias.
var gitChanges = set(`add am apply archive bisect bundle checkout cherry-pick clean clone commit commit-tree fast-export fast-import fetch filter-branch
	format-patch fsck gc hash-object init lfs maintenance merge mergetool difftool mv pack-refs prune pull read-tree rebase repack replace reset restore
	revert rm sparse-checkout submodule switch symbolic-ref update-index update-ref write-tree checkout-index unpack-objects rerere mktree mktag`)

// git reads the options before the command of git, and then that.
func (r *reader) git(_ string, words []word, depth int) {
	aliases := map[string]string{}
	for len(words) > 0 && words[0].known && strings.HasPrefix(words[0].text, "-") {
		words = r.gitOption(words, aliases)
	}
	switch {
	case len(words) == 0:
		return
	case !words[0].known:
		r.find(Opaque, "git", "which command of git it is cannot be told")
		return
	}
	sub := words[0].text
	args, known := texts(words[1:])
	alias, ok := aliases[sub]
	if !ok {
		r.gitCommand(sub, args, known)
		return
	}
	if text, runs := strings.CutPrefix(alias, "!"); runs {
		r.shell(text, depth+1)
	} else {
		r.shell("git "+alias, depth+1)
	}
}

// gitOption reads one option of git itself, notes an alias that it sets, and returns what follows.
func (r *reader) gitOption(words []word, aliases map[string]string) []word {
	name, value, joined := strings.Cut(words[0].text, "=")
	words = words[1:]
	takes := name == "-C" || name == "--git-dir" || name == "--work-tree" || name == "--namespace" || name == "-c" || name == "--config-env"
	if takes && !joined && len(words) > 0 {
		value, words = words[0].text, words[1:]
	}
	switch name {
	case "-c", "--config-env":
		r.find(Changes, "git", "it is given settings, which can run programs")
		if key, alias, ok := strings.Cut(value, "="); ok && strings.HasPrefix(strings.ToLower(key), "alias.") {
			aliases[key[len("alias."):]] = alias
		}
	case "--exec-path", "-p", "--paginate":
		r.find(Changes, "git", "it may run other programs")
	}
	return words
}

func (r *reader) gitCommand(sub string, args []string, known bool) {
	switch {
	case publishes(sub, plain(args)):
		r.find(Forbidden, "git "+sub, "publishes; Interlock alone publishes what was done")
	case gitReads[sub]:
		if !known || gitReadsBut(args) {
			r.find(Changes, "git "+sub, "may write or run something, with these arguments")
		}
	case gitLists[sub]:
		if !known || !lists(sub, args) {
			r.find(Changes, "git "+sub, "may change the repository, with these arguments")
		}
	case gitChanges[sub]:
		r.find(Changes, "git "+sub, "changes the repository")
	default:
		r.find(Opaque, "git "+sub, "is no command of git itself, so it may be an alias")
	}
}

// publishes reports whether a command of git sends something somewhere.
func publishes(sub string, rest []string) bool {
	switch sub {
	case "lfs", "subtree", "annex":
		return slices.Contains(rest, "push")
	case "svn":
		return slices.Contains(rest, "dcommit")
	case "p4":
		return slices.Contains(rest, "submit")
	}
	return gitPublishes[sub]
}

// listsBut are options with which even a list changes something.
var listsBut = hasOption("-d", "-D", "-m", "-M", "-c", "-C", "-e", "-u", "--unset", "--edit", "--delete", "--move", "--copy")

// lists reports whether a command that may change something only lists what there is.
func lists(sub string, args []string) bool {
	rest := plain(args)
	switch len(rest) {
	case 0:
		return sub != "stash" && !listsBut(args)
	case 1:
		return rest[0] == "list" || rest[0] == "show"
	}
	return false
}
