// Package sandbox turns a policy into a confined, supervised process tree, and proves that such a
// tree is gone. It knows nothing of runs, leases or forges.
package sandbox

import "time"

// Level names how strongly a tree is confined.
type Level string

// The levels.
const (
	Full     Level = "full"     // bubblewrap namespaces, Landlock and a system call filter inside, no capabilities
	Landlock Level = "landlock" // the same without namespaces: see Gaps; must be asked for by this word
	None     Level = "none"     // supervised, not confined; must be asked for by this word
)

// Mount makes a path of the host visible inside. At the levels landlock and none, Target is ignored
// and the path inside is Source itself; ask Policy.Inside.
type Mount struct {
	Source string `json:"source"`
	Target string `json:"target"` // absolute path inside
	Write  bool   `json:"write,omitempty"`
}

// Policy is what a tree may see and touch, and what it runs.
type Policy struct {
	Level   Level    `json:"level"`
	Mounts  []Mount  `json:"mounts"`  // beside the system directories and tool chains
	Tools   []Mount  `json:"tools"`   // detected tool chains, see Toolchains
	Home    string   `json:"home"`    // private directory on the host; HOME inside is HomeInside
	Temp    string   `json:"temp"`    // private directory on the host; TMPDIR inside is /tmp
	Dir     string   `json:"dir"`     // working directory, as a host path under one of the mounts
	Network string   `json:"network"` // "host" or "none"
	Env     []string `json:"env"`     // NAME=value; the whole environment, nothing is inherited
	Argv    []string `json:"argv"`    // argv[0] is looked up in PATH inside
}

// Limits bound a session. Zero means no limit of that kind.
type Limits struct {
	Total time.Duration `json:"total"`
	Idle  time.Duration `json:"idle"` // neither output nor a change in a watched directory
	Log   int64         `json:"log"`  // bytes of output kept; the rest is counted and dropped

	// These two are held by cgroups; where Facts has none for them they are not held.
	Tasks  int64 `json:"tasks"`  // processes and threads at once
	Memory int64 `json:"memory"` // bytes in all
}

// Identity is what proves, later and from another process, that a tree is gone.
type Identity struct {
	Session string `json:"session"`
	Way     string `json:"way"`              // "cgroup", "cgroup1", "pidns" or "subreaper"
	Cgroup  string `json:"cgroup,omitempty"` // absolute path of its cgroup v2 directory
	Tasks   string `json:"tasks,omitempty"`  // of the cgroup v1 directory that bounds its tasks
	Memory  string `json:"memory,omitempty"` // of the one that bounds its memory
	PID     int    `json:"pid"`              // the supervisor
	Start   uint64 `json:"start"`            // its start time, field 22 of /proc/PID/stat
	Boot    string `json:"boot"`
	Init    int    `json:"init,omitempty"`       // way "pidns": the namespace's first process
	InitAt  uint64 `json:"init_start,omitempty"` // its start time
	Record  string `json:"record,omitempty"`     // way "subreaper": file in which the end is confirmed
}

// Result is how a session ended.
type Result struct {
	Exit    int           `json:"exit"` // -1 when ended by a signal
	Signal  string        `json:"signal,omitempty"`
	Why     string        `json:"why"`     // "exit", "total", "idle", "tasks", "memory", "stopped", "engine gone" or "supervisor gone"
	Tree    string        `json:"tree"`    // how the end of the whole tree was confirmed
	Dropped int64         `json:"dropped"` // bytes of output over Limits.Log
	Took    time.Duration `json:"took"`
}
