package sandbox

import (
	"path/filepath"

	"interlock/internal/sandbox/confine"
)

// order is what the last stage does for this policy. At level Full all that is mounted may be read,
// for nothing else is there.
func (p Policy) order(abi int) confine.Order {
	o := confine.Order{Argv: p.Argv, Env: p.Env, Dir: p.workDir(), Write: p.writable(), Landlock: abi}
	if o.Alone = p.Level == Landlock; o.Alone {
		o.Read = p.readable()
	} else {
		o.Read = []string{"/"}
	}
	return o
}

// readable are the paths that may be read and executed at level Landlock: the system, the tool
// chains, our own program, the policy's own mounts. What is not there is left out, and links are followed, as for
// the mounts of level Full.
func (p Policy) readable() []string {
	paths := append([]string{"/proc"}, SystemDirs...)
	for _, name := range etcVisible {
		paths = append(paths, "/etc/"+name)
	}
	if self, err := ownBinary(); err == nil {
		paths = append(paths, self)
	}
	for _, m := range append(append([]Mount(nil), p.Tools...), p.Mounts...) {
		paths = append(paths, m.Source)
	}
	out := make([]string, 0, len(paths))
	for _, path := range paths {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			out = append(out, real)
		}
	}
	return out
}
