// Package cgroup gives a session control groups of its own: one of version 2 by which its whole
// tree is ended, and those that bound its tasks and its memory, of version 2 where the machine has
// the controllers there, else of version 1. It never touches a cgroup that it did not make.
package cgroup

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// prefix begins the name of every cgroup made here; nothing else is ever killed.
const prefix = "interlock-"

// Place is where sessions get their cgroups on this machine. Each is a directory, "" if it cannot
// be had.
type Place struct {
	Main   string `json:"main"`   // version 2
	Tasks  string `json:"tasks"`  // where tasks are bounded: Main, or a directory of version 1
	Memory string `json:"memory"` // where memory is bounded, likewise
}

// Find tries what this process may make. why says for each that cannot be had what is in the way.
func Find() (p Place, why Reasons) {
	p.Main, why.Main = findMain()
	have := []string{}
	if p.Main != "" {
		have = enabled(p.Main)
	}
	for _, c := range []struct {
		name, file string
		dir        *string
		why        *string
	}{{"pids", "pids.max", &p.Tasks, &why.Tasks}, {"memory", "memory.limit_in_bytes", &p.Memory, &why.Memory}} {
		if slices.Contains(have, c.name) {
			*c.dir = p.Main
			continue
		}
		dir, err := findFirst(c.name, c.file)
		if err != nil {
			*c.why = fmt.Sprintf("no %s controller for its cgroups: not in version 2 (%s), and in version 1: %v", c.name, orElse(why.Main, "it is not enabled for "+p.Main), err)
		}
		*c.dir = dir
	}
	return p, why
}

// Reasons say what is in the way of each part of a Place.
type Reasons struct{ Main, Tasks, Memory string }

func orElse(s, other string) string {
	if s != "" {
		return s
	}
	return other
}

// findMain is the own cgroup of version 2. Where that gives its children no controllers, the one
// above is taken if it does and is ours to use, as in a scope of systemd --user.
func findMain() (dir, why string) {
	own, err := own("", "cgroup2")
	if err != nil {
		return "", err.Error()
	}
	if err := try(own, "cgroup.kill", "cgroup.procs"); err != nil {
		return "", err.Error()
	}
	above := filepath.Dir(own)
	if len(enabled(own)) < 2 && len(enabled(above)) == 2 && try(above, "cgroup.kill", "pids.max", "memory.max") == nil {
		return above, ""
	}
	return own, ""
}

// enabled are those of the two controllers that the children of a cgroup of version 2 get.
func enabled(dir string) []string {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(strings.Fields(string(b)), func(c string) bool { return c != "pids" && c != "memory" })
}

// findFirst is the own cgroup in the hierarchy of version 1 that has a controller.
func findFirst(controller, file string) (string, error) {
	dir, err := own(controller, "cgroup")
	if err != nil {
		return "", err
	}
	return dir, try(dir, file, "tasks")
}

// try makes a cgroup below base and removes it again.
func try(base string, files ...string) error {
	dir, err := makeIn(base, name("try"), files...)
	if err != nil {
		return err
	}
	return remove(dir)
}

// name is a fresh name that tells people which session it is for.
func name(session string) string {
	var salt [4]byte
	rand.Read(salt[:]) // never fails
	return prefix + plain(session) + "-" + hex.EncodeToString(salt[:])
}

// makeIn creates a cgroup and checks that what it is for can be written. Starting a process in it
// needs write access to the list of the one above as well.
func makeIn(base, name string, files ...string) (string, error) {
	dir := filepath.Join(base, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	need := []string{filepath.Join(base, "cgroup.procs")}
	for _, f := range files {
		need = append(need, filepath.Join(dir, f))
	}
	for _, path := range need {
		if err := unix.Access(path, unix.W_OK); err != nil {
			return "", errors.Join(fmt.Errorf("%s in %s: %w", filepath.Base(path), base, err), os.Remove(dir))
		}
	}
	return dir, nil
}

func plain(s string) string {
	out := []byte(s)
	for i, c := range out {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' {
			out[i] = '_'
		}
	}
	return string(out[:min(len(out), 64)])
}

// own is the directory of the calling process in a hierarchy, wherever that is mounted: of the
// controller in version 1, or with "" that of version 2.
func own(controller, kind string) (string, error) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	path := ""
	for line := range strings.Lines(string(b)) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		names, at, ok := strings.Cut(rest, ":")
		if ok && slices.Contains(strings.Split(names, ","), controller) {
			path = at
		}
	}
	if path == "" {
		return "", fmt.Errorf("this process is in no %s hierarchy", strings.TrimSpace(kind+" "+controller))
	}
	root, point, err := mounted(controller, kind)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(root, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", fmt.Errorf("own cgroup %s is outside of what is mounted at %s", path, point)
	}
	return filepath.Join(point, rel), nil
}

// mounted finds a hierarchy in mountinfo: the path inside it that is mounted, and where.
func mounted(controller, kind string) (root, point string, err error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		left, right, _ := strings.Cut(s.Text(), " - ")
		fields, of := strings.Fields(left), strings.Fields(right)
		if len(fields) < 5 || len(of) < 3 || of[0] != kind {
			continue
		}
		if controller == "" || slices.Contains(strings.Split(of[2], ","), controller) {
			return unescape(fields[3]), unescape(fields[4]), nil
		}
	}
	if err := s.Err(); err != nil {
		return "", "", err
	}
	return "", "", fmt.Errorf("no %s file system is mounted", strings.TrimSpace(kind+" "+controller))
}

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
