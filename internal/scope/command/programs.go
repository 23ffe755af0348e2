package command

import (
	"path"
	"slices"
	"strings"
)

// shells run the text that they are given.
var shells = set("sh bash dash ash zsh ksh mksh fish rbash")

// interpreters run programs in languages that are not read here.
var interpreters = set("python python2 python3 node nodejs deno bun ruby perl php lua luajit tclsh expect irb ipython gdb sqlite3 psql mysql ed ex vi vim nano emacs less more man")

// forges speak to a forge in somebody's name.
var forges = set("gh glab tea fj hub berg az bb")

// readers change nothing, whatever their arguments are, but for those in readersBut.
var readers = set(`ls cat head tail wc cmp stat file which type pwd echo printf test [ true false : uname whoami id groups nproc df du
	cut tr basename dirname realpath readlink seq sleep grep egrep fgrep sha256sum sha1sum md5sum cksum jq comm paste nl od strings column
	expand fold rev tac cd exit return export set unset shift wait read local hash ulimit umask dirs pushd popd getconf locale arch tty printenv
	diff sort uniq tree rg fd find date hostname sed nm objdump size ldd`)

// readersBut are arguments with which a reader does more.
var readersBut = map[string]func(args []string) bool{
	"sort":     hasOption("-o", "--output", "--compress-program", "-T"),
	"tree":     hasOption("-o"),
	"rg":       hasOption("--pre", "--hostname-bin"),
	"fd":       hasOption("-x", "-X", "--exec", "--exec-batch"),
	"date":     hasOption("-s", "--set"),
	"uniq":     func(args []string) bool { return len(plain(args)) > 1 },
	"hostname": func(args []string) bool { return len(args) > 0 },
	"diff":     hasOption("--to-file", "-l", "--paginate"),
	"sed":      func(args []string) bool { return !onlyPrints(args) },
	"ldd":      func([]string) bool { return true }, // may run what it looks at
}

// wrappers run the command that their arguments end with. The value has the options that take the
// next word, how many words of their own come before the command, and whether nothing is run where
// there is none.
var wrappers = map[string]struct {
	options  string
	own      int
	harmless bool
}{
	"sudo": {"-u -g -h -p -C -r -t -T -U", 0, false}, "doas": {"-u -C", 0, false}, "nice": {"-n --adjustment", 0, false}, "ionice": {"-c -n -p", 0, false}, "nohup": {"", 0, false},
	"timeout": {"-s -k --signal --kill-after", 1, true}, "time": {"-f -o", 0, true}, "command": {"", 0, true}, "builtin": {"", 0, false}, "exec": {"-a", 0, true},
	"setsid": {"", 0, false}, "stdbuf": {"-i -o -e", 0, false}, "chrt": {"", 1, false}, "taskset": {"", 1, false}, "unshare": {"", 0, false}, "busybox": {"", 0, false}, "toybox": {"", 0, false},
	"xargs": {"-I -n -P -L -d -E -s -a", 0, true}, "parallel": {"-j", 0, false}, "watch": {"-n", 0, false}, "flock": {"-w -E", 1, false}, "strace": {"-e -o -p", 0, false},
	"chroot": {"", 1, false},
}

// run reads one command.
func (r *reader) run(words []word, depth int) {
	if depth > depthMost {
		r.find(Opaque, "", "commands that run commands go too deep")
		return
	}
	if r.runs++; r.runs > runsMost {
		r.find(Opaque, "", "it runs too many commands to be looked at")
		return
	}
	if len(words) == 0 {
		return
	}
	if !words[0].known || words[0].text == "" {
		r.find(Opaque, "", "which program it runs cannot be told")
		return
	}
	name := path.Base(words[0].text)
	if look, ok := looks[kindOf(name)]; ok {
		look(r, name, words[1:], depth)
		return
	}
	if args, known := texts(words[1:]); readers[name] {
		if but := readersBut[name]; but != nil && (!known || but(args)) {
			r.find(Changes, name, "may write, with these arguments")
		}
		return
	}
	r.find(Changes, name, "may change something")
}

// looks has how the words behind each kind of program are looked at. It is filled at the start,
// because most of them lead back to it.
var looks map[string]func(r *reader, name string, words []word, depth int)

func init() {
	looks = map[string]func(r *reader, name string, words []word, depth int){
		"wrapper": (*reader).wrapped, "env": (*reader).env, "shell": (*reader).shellProgram, "text": (*reader).text, "git": (*reader).git, "find": (*reader).findProgram,
		"interpreter": (*reader).interpreter, "interlock": (*reader).interlock, "jj": (*reader).jj,
		"file": func(r *reader, name string, _ []word, _ int) { r.find(Opaque, name, "runs a file") },
		"forge": func(r *reader, name string, _ []word, _ int) {
			r.find(Forbidden, name, "speaks to a forge; Interlock alone publishes what was done")
		},
	}
}

// kindOf returns the kind of a program that is looked at in a way of its own.
func kindOf(name string) string {
	switch _, wraps := wrappers[name]; {
	case name == "env", name == "git", name == "find", name == "jj", name == "interlock":
		return name
	case name == "interlock-gate":
		return "interlock"
	case name == "eval", name == "trap", name == "alias":
		return "text"
	case name == "source", name == ".":
		return "file"
	case wraps:
		return "wrapper"
	case shells[name]:
		return "shell"
	case interpreters[name]:
		return "interpreter"
	case forges[name]:
		return "forge"
	}
	return ""
}

// jj is git with other words.
func (r *reader) jj(name string, words []word, _ int) {
	if args, _ := texts(words); slices.Contains(args, "push") {
		r.find(Forbidden, name, "publishes; Interlock alone publishes what was done")
		return
	}
	r.find(Changes, name, "may change something")
}

// texts returns what is known of words; ok is false when one is not.
func texts(words []word) (all []string, ok bool) {
	ok = true
	for _, w := range words {
		all = append(all, w.text)
		ok = ok && w.known
	}
	return all, ok
}

// wrapped skips the options of a wrapper, and reads the command behind them.
func (r *reader) wrapped(name string, words []word, depth int) {
	w := wrappers[name]
	options := strings.Fields(w.options)
	for len(words) > 0 && words[0].known && strings.HasPrefix(words[0].text, "-") {
		option := words[0].text
		words = words[1:]
		if option == "--" {
			break
		}
		if name == "command" && (option == "-v" || option == "-V") {
			return // says where a program is
		}
		if slices.Contains(options, option) && len(words) > 0 {
			words = words[1:]
		}
	}
	switch words = words[min(w.own, len(words)):]; {
	case len(words) > 0:
		r.run(words, depth+1)
	case !w.harmless:
		r.find(Interactive, name, "runs a shell or nothing")
	}
}

// env is a wrapper with variables before the command, and with -S, which splits a text into words.
func (r *reader) env(_ string, words []word, depth int) {
	for len(words) > 0 {
		w := words[0]
		switch {
		case !w.known:
			r.find(Opaque, "env", "which program it runs cannot be told")
			return
		case w.text == "-S", w.text == "--split-string":
			if len(words) > 1 {
				rest, _ := texts(words[1:])
				r.shell(strings.Join(rest, " "), depth+1)
			}
			return
		case strings.HasPrefix(w.text, "-S"), strings.HasPrefix(w.text, "--split-string="), strings.HasPrefix(w.text, "-vS"):
			_, text, _ := strings.Cut(w.text, map[bool]string{true: "=", false: "S"}[strings.HasPrefix(w.text, "--")])
			rest, _ := texts(words[1:])
			r.shell(strings.Join(append([]string{text}, rest...), " "), depth+1)
			return
		case w.text == "-u" || w.text == "-C" || w.text == "--unset" || w.text == "--chdir":
			words = words[min(2, len(words)):]
			continue
		case strings.HasPrefix(w.text, "-"):
		case strings.Contains(w.text, "="):
			r.find(Changes, "env", "it sets variables for a command")
		default:
			r.run(words, depth+1)
			return
		}
		words = words[1:]
	}
}

// shellProgram is a shell: with -c it runs a text, with a file that file, with neither what is typed.
func (r *reader) shellProgram(name string, words []word, depth int) {
	args, known := texts(words)
	for i, a := range args {
		if !strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "+") {
			r.find(Opaque, name, "runs a file")
			return
		}
		if strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.Contains(a, "c") {
			if i+1 == len(args) || !known {
				r.find(Opaque, name, "runs a text that cannot be told")
				return
			}
			r.shell(args[i+1], depth+1)
			return
		}
		if a == "--version" || a == "--help" {
			return
		}
	}
	r.find(Interactive, name, "runs what is typed into it later")
}

// text is a command of the shell that runs its arguments as a text, now or later.
func (r *reader) text(name string, words []word, depth int) {
	args, known := texts(words)
	switch {
	case !known:
		r.find(Opaque, name, "runs a text that cannot be told")
	case name == "eval":
		r.shell(strings.Join(args, " "), depth+1)
	case name == "trap" && len(args) > 1:
		r.shell(args[0], depth+1)
	case name == "alias":
		for _, a := range args {
			if _, value, ok := strings.Cut(a, "="); ok {
				r.shell(value, depth+1)
			}
		}
	}
}

func (r *reader) interpreter(name string, words []word, _ int) {
	args, _ := texts(words)
	switch {
	case len(args) > 0 && (args[0] == "--version" || args[0] == "-V" || args[0] == "--help"):
	case len(plain(args)) > 0 || hasOption("-c", "-e", "-m", "--eval", "-r", "-E", "-p")(args):
		r.find(Opaque, name, "runs a program in a language that is not looked at")
	default:
		r.find(Interactive, name, "runs what is typed into it later")
	}
}

// interlock allows an agent to ask about its task, and nothing else.
func (r *reader) interlock(name string, words []word, _ int) {
	args, _ := texts(words)
	rest := plain(args)
	switch {
	case name == "interlock" && len(rest) > 0 && rest[0] == "task":
	case name == "interlock" && len(rest) == 0 && hasOption("--version", "--help", "-h")(args):
	default:
		r.find(Forbidden, name, "controls runs and loops, which is for people; an agent may call interlock task")
	}
}

// findProgram is find, which reads unless it deletes, writes or runs something.
func (r *reader) findProgram(_ string, words []word, depth int) {
	for i := 0; i < len(words); i++ {
		switch w := words[i]; w.text {
		case "-delete", "-fprint", "-fprint0", "-fprintf", "-fls":
			r.find(Changes, "find", "deletes or writes with "+w.text)
		case "-exec", "-execdir", "-ok", "-okdir":
			end := slices.IndexFunc(words[i+1:], func(w word) bool { return w.text == ";" || w.text == "+" })
			if end < 0 {
				end = len(words) - i - 1
			}
			r.run(words[i+1:i+1+end], depth+1)
			i += end // what it runs has words of its own
		}
	}
}

// plain returns the arguments that are no options.
func plain(args []string) []string {
	var rest []string
	for _, a := range args {
		if !strings.HasPrefix(a, "-") || a == "-" {
			rest = append(rest, a)
		}
	}
	return rest
}

// hasOption reports whether one of these options is among the arguments, also joined with its value,
// and a short one also among others.
func hasOption(options ...string) func([]string) bool {
	return func(args []string) bool {
		return slices.ContainsFunc(args, func(a string) bool {
			name, _, _ := strings.Cut(a, "=")
			return slices.ContainsFunc(options, func(o string) bool {
				short := len(o) == 2 && o[0] == '-' && o[1] != '-'
				return name == o || short && len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.IndexByte(a, o[1]) > 0
			})
		})
	}
}

// onlyPrints reports whether sed is given nothing but lines to print.
func onlyPrints(args []string) bool {
	rest := plain(args)
	if len(rest) == 0 || len(rest[0]) > 100 || !strings.HasSuffix(rest[0], "p") || strings.Trim(rest[0], "0123456789,$p ") != "" {
		return false
	}
	return !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") && a != "-n" && a != "-E" && a != "-r" })
}

func set(names string) map[string]bool {
	s := map[string]bool{}
	for _, n := range strings.Fields(names) {
		s[n] = true
	}
	return s
}
