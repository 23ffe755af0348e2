package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"interlock/internal/sandbox/cgroup"
	"interlock/internal/sandbox/confine"
	"interlock/internal/sandbox/confine/seccomp"
)

// Floors of level Full. Landlock needs ABI 6 where the network is the host's, because only from
// there on abstract sockets outside are out of reach.
const (
	kernelMajor, kernelMinor = 5, 19
	landlockAlone            = 3 // at level Landlock, where no read-only mount stops a truncation
	landlockScopes           = 6
)

// Facts is what this machine can do. It marshals to JSON with a "fit" entry per level.
type Facts struct {
	Kernel       string // release, as uname prints it
	Bwrap        string // path of bubblewrap, "" if there is none
	BwrapVersion string
	UserNS       error  // why bubblewrap could not start a program when it was tried; nil: it could
	NoNesting    bool   // bubblewrap can forbid further user namespaces inside
	Landlock     int    // ABI, 0 if absent
	Seccomp      error  // why system calls cannot be filtered; nil: they can
	Cgroup       string // cgroup v2 directory in which sessions get theirs, "" if that cannot be
	CgroupReason string // why not

	// The cgroup directories, of either version, in which the limits of sessions can be held; ""
	// and a reason where that cannot be.
	Tasks, Memory             string
	TasksReason, MemoryReason string
}

// UnfitError: this machine cannot give the level that was asked for.
type UnfitError struct {
	Level  Level  `json:"-"`
	Reason string `json:"reason"`
	Remedy string `json:"remedy"` // a command, or what to change
}

// Error is the reason and the remedy in one line.
func (e *UnfitError) Error() string {
	return fmt.Sprintf("sandbox level %s: %s; %s", e.Level, e.Reason, e.Remedy)
}

// Inspect tries what this machine can do; bubblewrap is run, not only looked for.
func Inspect(ctx context.Context) Facts {
	f := Facts{Kernel: kernelRelease(), Landlock: confine.ABI(), Seccomp: seccomp.Supported()}
	place, why := cgroup.Find()
	f.Cgroup, f.Tasks, f.Memory = place.Main, place.Tasks, place.Memory
	f.CgroupReason, f.TasksReason, f.MemoryReason = why.Main, why.Tasks, why.Memory
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return f
	}
	f.Bwrap = path
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if out, err := brief(ctx, path, "--version"); err == nil {
		f.BwrapVersion = strings.TrimPrefix(strings.TrimSpace(out), "bubblewrap ")
	}
	f.NoNesting = true
	if f.UserNS = f.try(ctx); f.UserNS != nil {
		f.NoNesting = false
		f.UserNS = f.try(ctx)
	}
	return f
}

// try runs true behind the very mounts and namespaces that a session gets.
func (f Facts) try(ctx context.Context) error {
	argv, err := f.enter(Policy{Level: Full, Network: "none"}, []string{"/usr/bin/true"})
	if err != nil {
		return err
	}
	_, err = brief(ctx, argv[0], argv[1:]...)
	return err
}

func brief(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errs cappedBuffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if text := strings.TrimSpace(errs.String()); text != "" {
			return "", errors.New(strconv.QuoteToGraphic(text))
		}
		return "", err
	}
	return out.String(), nil
}

// cappedBuffer keeps the first 4 KiB.
type cappedBuffer struct{ bytes.Buffer }

func (b *cappedBuffer) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, 4096-b.Len()))])
	return len(p), nil
}

func kernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// place is where a session gets its cgroups.
func (f Facts) place() cgroup.Place {
	return cgroup.Place{Main: f.Cgroup, Tasks: f.Tasks, Memory: f.Memory}
}

// Unheld says which of the limits would not be held on this machine, and what could be done about
// it; "" if all would be.
func (f Facts) Unheld(l Limits) string {
	var names, why []string
	if l.Tasks > 0 && f.Tasks == "" {
		names, why = append(names, "tasks"), append(why, f.TasksReason)
	}
	if l.Memory > 0 && f.Memory == "" {
		names, why = append(names, "memory"), append(why, f.MemoryReason)
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("the limit of %s is not held on this machine: %s; %s", strings.Join(names, " and "), strings.Join(why, "; "), limitRemedy)
}

// limitRemedy gives the controllers to whoever starts the program.
const limitRemedy = "start it where cgroups are delegated: systemd-run --user --scope -p Delegate=yes interlock ..."

// Check says whether the level can be had on this machine with the host's network, as
// *UnfitError.
func (f Facts) Check(level Level) error { return f.CheckNetwork(level, "host") }

// CheckNetwork is Check for a policy's network, "host" or "none".
func (f Facts) CheckNetwork(level Level, network string) error {
	refuse := func(reason, remedy string) error {
		return &UnfitError{Level: level, Reason: reason, Remedy: remedy}
	}
	if network != "host" && network != "none" {
		return refuse(fmt.Sprintf("the network %q is unknown", network), "use host or none")
	}
	switch level {
	case None:
		if network == "none" {
			return refuse("it cannot take the network away", "use level full, or the network host")
		}
		return nil
	case Full:
		return f.checkFull(network, refuse)
	case Landlock:
		return f.checkLandlock(network, refuse)
	}
	return refuse("there is no such level", "use full, landlock or none")
}

func (f Facts) checkFull(network string, refuse func(reason, remedy string) error) error {
	if !kernelAtLeast(f.Kernel, kernelMajor, kernelMinor) {
		return refuse(fmt.Sprintf("kernel %s is older than %d.%d", f.Kernel, kernelMajor, kernelMinor),
			"boot a newer kernel")
	}
	if f.Bwrap == "" {
		return refuse("bubblewrap is not installed", "apt-get install bubblewrap")
	}
	if f.UserNS != nil {
		return refuse("bubblewrap cannot start a program here: "+f.UserNS.Error(), namespaceRemedy())
	}
	if f.Landlock < confine.Floor {
		return refuse("the kernel's Landlock is not active",
			"add landlock to the lsm= list of the kernel command line and restart")
	}
	if f.Landlock < landlockScopes && network == "host" {
		return refuse(fmt.Sprintf("Landlock ABI %d leaves abstract sockets of the host reachable", f.Landlock),
			"boot kernel 6.12 or newer, or use the network none")
	}
	return f.checkSeccomp(refuse)
}

func (f Facts) checkSeccomp(refuse func(reason, remedy string) error) error {
	if f.Seccomp != nil {
		return refuse(f.Seccomp.Error(), "boot a kernel with CONFIG_SECCOMP_FILTER, on amd64 or arm64")
	}
	return nil
}

// checkLandlock needs neither bubblewrap nor namespaces. Before ABI 3 files of others could be
// emptied, which is too little to be called confined.
func (f Facts) checkLandlock(network string, refuse func(reason, remedy string) error) error {
	if network == "none" {
		return refuse("it cannot take the network away", "use level full, or the network host")
	}
	if f.Landlock == 0 {
		return refuse("the kernel's Landlock is not active",
			"add landlock to the lsm= list of the kernel command line and restart")
	}
	if f.Landlock < landlockAlone {
		return refuse(fmt.Sprintf("Landlock ABI %d does not keep files from being truncated", f.Landlock), "boot kernel 6.2 or newer")
	}
	return f.checkSeccomp(refuse)
}

// kernelAtLeast compares the first two numbers of a release. One that cannot be read is too old.
func kernelAtLeast(release string, major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(release, "%d.%d", &a, &b); n != 2 {
		return false
	}
	return a > major || a == major && b >= minor
}

// namespaceRemedy names the switch that most likely forbids user namespaces.
func namespaceRemedy() string {
	if sysctl("kernel/unprivileged_userns_clone") == "0" {
		return "sysctl kernel.unprivileged_userns_clone=1"
	}
	if sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1" {
		return "allow bwrap in AppArmor (a profile with 'userns,'), " +
			"or sysctl kernel.apparmor_restrict_unprivileged_userns=0"
	}
	if sysctl("user/max_user_namespaces") == "0" {
		return "sysctl user.max_user_namespaces=15000"
	}
	return "run outside of the container, or let it create user, mount and pid namespaces"
}

func sysctl(name string) string {
	b, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// MarshalJSON adds "fit": per level {"ok": true} or the reason and the remedy.
func (f Facts) MarshalJSON() ([]byte, error) {
	type fitness struct {
		OK bool `json:"ok"`
		*UnfitError
	}
	fit := map[Level]fitness{}
	for _, level := range []Level{Full, Landlock, None} {
		var unfit *UnfitError
		errors.As(f.Check(level), &unfit)
		fit[level] = fitness{OK: unfit == nil, UnfitError: unfit}
	}
	userns := ""
	if f.UserNS != nil {
		userns = f.UserNS.Error()
	}
	refused := ""
	if f.Seccomp != nil {
		refused = f.Seccomp.Error()
	}
	return json.Marshal(map[string]any{
		"kernel": f.Kernel, "bwrap": f.Bwrap, "bwrap_version": f.BwrapVersion, "userns_refused": userns,
		"no_nesting": f.NoNesting, "landlock": f.Landlock, "cgroup": f.Cgroup, "cgroup_refused": f.CgroupReason,
		"seccomp_refused": refused, "tasks": f.Tasks, "tasks_refused": f.TasksReason, "memory": f.Memory, "memory_refused": f.MemoryReason,
		"fit": fit,
	})
}
