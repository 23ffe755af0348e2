package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"interlock/internal/sandbox/confine"
	"interlock/internal/sandbox/confine/seccomp"
)

// uploadSeconds is the last resort against an upload-pack that hangs, for instance on a FIFO in
// place of a file. The caller's own deadline is shorter, and ends it too.
const uploadSeconds = 15 * 60

// uploadArgv serves a repository that a hostile tree could write: no replace refs, no lazy
// fetch, no configuration but that of the repository itself.
var uploadArgv = []string{"git", "-c", "safe.directory=*", "upload-pack"}

// uploadPolicy is what the file for __exec holds.
type uploadPolicy struct {
	Policy   Policy `json:"policy"`
	Bwrap    string `json:"bwrap"`
	Landlock int    `json:"landlock"`
}

// UploadPack writes specFile (0600) and returns the shell command for git's --upload-pack: it
// runs git upload-pack for the path that git appends, which is a path inside. All mounts are
// made read-only, home and temp are empty and its own (at level Landlock not there), and there is no
// network at level Full; p.Argv, if set,
// replaces the command. At level None nothing is confined.
func UploadPack(p Policy, specFile string) (command string, err error) {
	f := Facts{Kernel: kernelRelease(), Landlock: confine.ABI(), Seccomp: seccomp.Supported()}
	switch p.Level {
	case Full:
		p.Network, p.Home, p.Temp = "none", "", ""
		if f.Bwrap, err = exec.LookPath("bwrap"); err != nil {
			f.Bwrap = ""
		}
	case Landlock:
		p.Network, p.Home, p.Temp = "host", "", "" // it writes nothing, and cannot lose the network
	}
	if err := f.CheckNetwork(p.Level, p.Network); err != nil {
		return "", err
	}
	mounts := make([]Mount, len(p.Mounts))
	for i, m := range p.Mounts {
		m.Write = false
		mounts[i] = m
	}
	p.Mounts = mounts
	if len(p.Argv) == 0 {
		p.Argv = uploadArgv
	}
	p.Env = append([]string{
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_NO_LAZY_FETCH=1",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
	}, p.Env...)
	self, err := ownBinary()
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(uploadPolicy{p, f.Bwrap, f.Landlock})
	if err != nil {
		return "", fmt.Errorf("upload-pack: %w", err)
	}
	spec, err := filepath.Abs(specFile)
	if err != nil {
		return "", fmt.Errorf("upload-pack: %w", err)
	}
	if err := os.WriteFile(spec, b, 0o600); err != nil {
		return "", fmt.Errorf("upload-pack: %w", err)
	}
	return shellQuote(self) + " " + execArg + " " + shellQuote(spec), nil
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// execMain is __exec: it replaces itself by the policy's command with the further arguments
// appended. Descriptors 0 to 2 stay those of the caller.
func execMain(args []string) error {
	runtime.LockOSThread()
	if len(args) < 1 {
		return errors.New("wants a policy file")
	}
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("descriptors: %w", err)
	}
	b, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var u uploadPolicy
	if err := json.Unmarshal(b, &u); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	p := u.Policy
	p.Argv = append(append([]string(nil), p.Argv...), args[1:]...)
	// The alarm survives exec; its signal ends whatever this process has become by then.
	alarm := unix.Itimerval{Value: unix.Timeval{Sec: uploadSeconds}}
	if _, err := unix.Setitimer(unix.ITIMER_REAL, alarm); err != nil {
		return fmt.Errorf("alarm: %w", err)
	}
	if p.Level == None {
		path, err := confine.LookPath(p.Argv, p.Env)
		if err != nil {
			return err
		}
		return fmt.Errorf("exec %s: %w", path, syscall.Exec(path, p.Argv, p.Env))
	}
	return enterConfined(Facts{Bwrap: u.Bwrap, Landlock: u.Landlock}, p)
}

// enterConfined becomes the confined stage, at level Full inside of bubblewrap, which finds what to do in a
// file of memory: no other process is left to tell it.
func enterConfined(f Facts, p Policy) error {
	line, err := p.order(f.Landlock).Encode()
	if err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("order", 0) // without close-on-exec: it is for the stage
	if err != nil {
		return fmt.Errorf("memfd: %w", err)
	}
	if _, err := unix.Pwrite(fd, append(line, confine.Release...), 0); err != nil {
		return fmt.Errorf("memfd: %w", err)
	}
	argv, err := f.stage(p, []string{confineArg, strconv.Itoa(fd), "-1"})
	if err != nil {
		return err
	}
	env := []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	return fmt.Errorf("exec %s: %w", argv[0], syscall.Exec(argv[0], argv, env))
}
